//! Files as devices: alignment, batches at depth, fallbacks, growth, and the lock against a second
//! process.

#[path = "common/traced.rs"]
mod traced;

use std::io::{BufRead, BufReader, IoSlice, IoSliceMut};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use millpond::internals::io::{OpenError, PageStore};
use millpond::internals::page::PageSize;
use millpond_base::rounds::rounds;
use millpond_device::{
    AlignedBuffer, Device, DeviceError, FileDevice, FileOptions, OpenFileError, ReadRequest,
    Submission, WriteRequest,
};
use traced::traced;

fn options(direct: bool, submission: Submission) -> FileOptions {
    FileOptions { direct, submission, ..FileOptions::default() }
}

fn all_options() -> impl Iterator<Item = FileOptions> {
    [true, false].into_iter().flat_map(|direct| {
        [Submission::Uring, Submission::Sync].map(|submission| options(direct, submission))
    })
}

fn new_file(folder: &Path, options: &FileOptions, length: u64) -> FileDevice {
    let device = FileDevice::create(&folder.join("device"), options).unwrap();
    device.grow(length).unwrap();
    device
}

/// Returns the number of warnings that this thread gives during `action`.
fn warnings_of<R>(action: impl FnOnce() -> R) -> (usize, R) {
    let (reported, answer) = traced(action);
    (reported.iter().filter(|reported| reported.level == tracing::Level::WARN).count(), answer)
}

#[test]
fn direct_io_moves_whole_blocks_and_copies_for_misaligned_memory() {
    for options in all_options() {
        let folder = tempfile::tempdir().unwrap();
        let device = new_file(folder.path(), &options, 1 << 20);
        if device.is_direct() != options.direct {
            println!("no direct I/O in {}: only the fallback is tested", folder.path().display());
        }
        let mut bytes = AlignedBuffer::new(8192 + 64);
        for shift in [0, 1, 8, 64] {
            let part = &mut bytes[shift..shift + 8192];
            part.fill(shift as u8 + 1);
            device.write(12288, part).unwrap();
            part.fill(0);
            device.read(12288, part).unwrap();
            assert!(part.iter().all(|&b| b == shift as u8 + 1), "{options:?}");
        }
        let block = device.alignment().offset;
        for (offset, length) in [(1, 4096), (0, 100), (511, 1)] {
            let answer = device.read(offset, &mut bytes[..length]);
            let is_refused = matches!(answer, Err(DeviceError::Misaligned { alignment, .. })
                if alignment == block);
            assert_eq!(is_refused, device.is_direct(), "{answer:?}");
        }
        let end = 1 << 20;
        for (offset, length) in [(end, 4096), (end - 4096, 8192), (u64::MAX - 4095, 4096)] {
            let error = device.read(offset, &mut bytes[..length]).unwrap_err();
            let DeviceError::PastEnd { device_length, .. } = error else { panic!("{error:?}") };
            assert_eq!(device_length, end);
            assert!(device.write(offset, &bytes[..length]).is_err());
        }
    }
}

#[test]
fn batches_deeper_than_the_queue_come_back_whole_from_several_threads() {
    for options in all_options() {
        let options = FileOptions { depth: 4, ..options };
        let folder = tempfile::tempdir().unwrap();
        let device = &new_file(folder.path(), &options, 16 << 20);
        assert_eq!(device.submission(), options.submission);
        std::thread::scope(|scope| {
            for thread in 0..12u64 {
                scope.spawn(move || {
                    // Requests of one to three pages of 4 KiB, this thread's own ones.
                    let base = thread << 20;
                    let mut pages: Vec<AlignedBuffer> =
                        (0..200).map(|_| AlignedBuffer::new(4096)).collect();
                    for (at, page) in pages.iter_mut().enumerate() {
                        page.fill((at as u64 * 7 + thread) as u8);
                    }
                    let slices: Vec<IoSlice<'_>> = pages.iter().map(|p| IoSlice::new(p)).collect();
                    let mut writes = Vec::new();
                    let mut at = 0;
                    while at < 200 {
                        let count = (at % 3 + 1).min(200 - at);
                        let (parts, offset) = (&slices[at..at + count], base + at as u64 * 4096);
                        writes.push(WriteRequest::new(offset, parts));
                        at += count;
                    }
                    writes.reverse();
                    device.write_batch(&mut writes);
                    assert!(writes.iter().all(|w| w.result.is_ok()));
                    let mut room: Vec<AlignedBuffer> =
                        (0..200).map(|_| AlignedBuffer::new(4096)).collect();
                    let mut slices: Vec<IoSliceMut<'_>> =
                        room.iter_mut().map(|p| IoSliceMut::new(p)).collect();
                    let mut reads: Vec<ReadRequest<'_, '_>> = slices
                        .chunks_mut(2)
                        .enumerate()
                        .map(|(at, parts)| ReadRequest::new(base + at as u64 * 8192, parts))
                        .collect();
                    device.read_batch(&mut reads);
                    assert!(reads.iter().all(|r| r.result.is_ok()));
                    assert!(room.iter().zip(&pages).all(|(a, b)| a[..] == b[..]));
                });
            }
        });
        device.sync_ranges(&[0..4096, 8192..12288]).unwrap();
    }
}

/// Ranges here and there, touching, overlapping, beyond the end and more than are synced one by
/// one: what was written is read, by another descriptor, too.
#[test]
fn any_ranges_of_a_file_can_be_synced() {
    for options in all_options() {
        let folder = tempfile::tempdir().unwrap();
        let device = new_file(folder.path(), &options, 64 << 20);
        println!("{options:?}: by ranges: {}", device.syncs_ranges());
        assert!(!(device.is_direct() && device.syncs_ranges()), "nothing is in the page cache");
        let page = AlignedBuffer::new(4096);
        let at = |number: u64| number * 8192..number * 8192 + 4096;
        for ranges in [
            vec![at(3)],
            vec![],
            vec![5..5, 7..7],
            (0..1000).map(at).collect(),
            vec![at(9), at(4), 4 * 8192..5 * 8192, at(2)],
            vec![at(1), 1 << 30..2 << 30],
            (0..8000).map(at).collect(),
        ] {
            ranges
                .iter()
                .filter(|range| range.end <= device.length() && !range.is_empty())
                .for_each(|range| device.write(range.start, &page).unwrap());
            device.sync_ranges(&ranges).unwrap();
        }
        assert_eq!(std::fs::metadata(device.path()).unwrap().len(), 64 << 20);
    }
}

#[test]
fn each_request_of_a_batch_tells_its_own_fate() {
    for options in all_options() {
        let folder = tempfile::tempdir().unwrap();
        let device = new_file(folder.path(), &options, 65536);
        // Somebody cuts the file off behind our back: the kernel finds no more bytes there.
        let file = std::fs::OpenOptions::new().write(true).open(device.path()).unwrap();
        file.set_len(32768).unwrap();
        let mut pages: Vec<AlignedBuffer> = (0..16).map(|_| AlignedBuffer::new(4096)).collect();
        let mut slices: Vec<IoSliceMut<'_>> =
            pages.iter_mut().map(|p| IoSliceMut::new(p)).collect();
        let mut requests: Vec<ReadRequest<'_, '_>> = slices
            .chunks_mut(3)
            .enumerate()
            .map(|(at, parts)| ReadRequest::new(at as u64 * 12288, parts))
            .collect();
        device.read_batch(&mut requests);
        for request in &requests {
            let end = request.offset + request.length() as u64;
            assert_eq!(request.result.is_ok(), end <= 32768, "{:?}", request.result);
            if let Err(error) = &request.result {
                assert!(matches!(error, DeviceError::PastEnd { .. }), "{error:?}");
            }
        }
    }
}

#[test]
fn a_kernel_that_refuses_io_uring_costs_one_warning_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    // More entries than the kernel gives a ring: a refusal as any other.
    let options = FileOptions { depth: 1 << 20, ..FileOptions::default() };
    let path = folder.path().join("a");
    let (warnings, store) =
        warnings_of(|| PageStore::create(&path, PageSize::KIB_4, &options).unwrap());
    let without = warnings_of(|| {
        PageStore::create(&folder.path().join("b"), PageSize::KIB_4, &FileOptions::default())
            .unwrap()
    })
    .0;
    assert_eq!(warnings, without + 1);
    store.allocate_many(1000).unwrap();
    store.close(None).unwrap();
    let device = FileDevice::open(&path, &options).unwrap();
    assert_eq!(device.submission(), Submission::Sync);
}

#[test]
fn a_file_system_without_direct_io_costs_one_warning_and_nothing_else() {
    // A file that every Linux has, on a file system that knows no direct I/O.
    let path = Path::new("/proc/self/comm");
    if !path.exists() {
        println!("no {}: nothing to test here", path.display());
        return;
    }
    let open = |direct| {
        let options = FileOptions { read_only: true, ..options(direct, Submission::Sync) };
        warnings_of(|| FileDevice::open(path, &options).unwrap())
    };
    let (warnings, device) = open(true);
    assert_eq!((warnings, device.is_direct()), (1, false));
    drop(device);
    assert_eq!(open(false).0, 0);
}

#[test]
fn growth_writes_zeros_into_blocks_of_its_own_and_a_reader_may_not_grow() {
    for options in all_options() {
        let folder = tempfile::tempdir().unwrap();
        let device = new_file(folder.path(), &options, 0);
        device.grow(3 << 20).unwrap();
        device.write(0, &AlignedBuffer::new(4096)).unwrap();
        device.grow(1 << 20).unwrap();
        assert_eq!(device.length(), 3 << 20);
        device.grow((3 << 20) + 4096).unwrap();
        device.sync().unwrap();
        let metadata = std::fs::metadata(device.path()).unwrap();
        assert_eq!(metadata.len(), (3 << 20) + 4096);
        assert!(metadata.blocks() * 512 >= metadata.len(), "no holes");
        let mut bytes = AlignedBuffer::new(4096);
        bytes.fill(1);
        device.read(3 << 20, &mut bytes).unwrap();
        assert!(bytes.iter().all(|&b| b == 0));
        let path = device.path().to_path_buf();
        drop(device);
        let reader = FileDevice::open(&path, &FileOptions { read_only: true, ..options }).unwrap();
        assert!(matches!(reader.grow(8 << 20), Err(DeviceError::ReadOnly { .. })));
        assert!(matches!(reader.write(0, &bytes), Err(DeviceError::ReadOnly { .. })));
    }
}

#[test]
fn a_growth_that_the_system_refuses_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let device = new_file(folder.path(), &FileOptions::default(), 1 << 20);
    // Longer than any file can be.
    let error = device.grow(i64::MAX as u64 / 4096 * 4096).unwrap_err();
    assert!(matches!(error, DeviceError::DiskFull { .. }), "{error:?}");
    assert_eq!(device.length(), 1 << 20);
    assert_eq!(std::fs::metadata(device.path()).unwrap().len(), 1 << 20);
    device.grow(2 << 20).unwrap();
}

/// Set for the second process of the next test: it holds a store until it is killed.
const HOLD: &str = "MILLPOND_TEST_HOLD";

#[test]
fn a_store_is_locked_against_a_second_process_whose_pid_is_named() {
    if let Some(path) = std::env::var_os(HOLD) {
        let read_only = std::env::var_os("MILLPOND_TEST_READ_ONLY").is_some();
        let options = FileOptions { read_only, ..FileOptions::default() };
        let _store = PageStore::open(Path::new(&path), None, &options).unwrap();
        println!("\nholding");
        loop {
            std::thread::park();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = PageStore::create(&path, PageSize::KIB_4, &FileOptions::default()).unwrap();
    // Twice in one process.
    let error = PageStore::open(&path, None, &FileOptions::default()).unwrap_err();
    let own = std::process::id();
    assert_eq!(
        error,
        OpenError::File(OpenFileError::Locked { path: path.clone(), pid: Some(own) })
    );
    assert!(error.to_string().contains(&format!("this process (pid {own})")), "{error}");
    store.close(None).unwrap();

    for read_only in [true, false] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "--nocapture"])
            .arg("file_device::a_store_is_locked_against_a_second_process_whose_pid_is_named")
            .env(HOLD, &path)
            .stdout(Stdio::piped());
        if read_only {
            command.env("MILLPOND_TEST_READ_ONLY", "1");
        }
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let holds = output.lines().any(|line| line.unwrap() == "holding");
        let answer = PageStore::open(&path, None, &FileOptions::default());
        let salvage = PageStore::open_for_salvage(&path, None, &FileOptions::default());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(holds);
        let error = answer.unwrap_err();
        let pid = Some(child.id());
        assert_eq!(error, OpenError::File(OpenFileError::Locked { path: path.clone(), pid }));
        assert!(error.to_string().contains(&format!("pid {}", child.id())), "{error}");
        assert_eq!(salvage.is_ok(), read_only, "readers share with readers only");
        drop(salvage);
        // The kernel took the dead process's lock away; what a writer left is not clean.
        match PageStore::open(&path, None, &FileOptions::default()) {
            Ok(store) => {
                assert!(read_only);
                store.close(None).unwrap();
            }
            Err(error) => {
                assert!(!read_only);
                assert!(matches!(error, OpenError::NotClean { .. }), "{error}");
            }
        }
    }
}

#[test]
fn a_folder_that_cannot_be_synced_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let within = folder.path().join("within");
    std::fs::create_dir(&within).unwrap();
    let device = new_file(&within, &FileOptions::default(), 1 << 20);
    device.sync_directory().unwrap();
    std::fs::remove_dir_all(&within).unwrap();
    let error = device.sync_directory().unwrap_err();
    assert!(matches!(&error, DeviceError::Folder { path, .. } if *path == within), "{error:?}");
    assert!(error.to_string().contains("cannot be synced"), "{error}");
}

/// A process that created the file, and found it locked by another one, removed it: the store that
/// the other one had made there.
#[test]
fn of_two_that_create_a_file_at_once_neither_removes_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new");
    let mut both = 0;
    for _ in 0..rounds(1000, 20_000) {
        let begin = std::sync::Barrier::new(2);
        let create = || {
            begin.wait();
            let device = FileDevice::create(&path, &FileOptions::default()).ok()?;
            device.grow(4096).unwrap();
            Some(device)
        };
        let devices: Vec<FileDevice> = std::thread::scope(|scope| {
            let threads = [scope.spawn(create), scope.spawn(create)];
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        both += usize::from(devices.len() == 2);
        if !devices.is_empty() {
            assert_eq!(std::fs::metadata(&path).unwrap().len(), 4096, "it is there");
            assert!(devices.iter().all(|device| !device.is_displaced()));
        }
        drop(devices);
        std::fs::remove_file(&path).unwrap_or_default();
    }
    assert_eq!(both, 0, "one at a time has the file");
}

#[test]
fn a_device_that_was_released_answers_closed_and_leaves_the_file_to_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device");
    std::fs::write(&path, [1; 8192]).unwrap();
    let device = FileDevice::open(&path, &FileOptions::default()).unwrap();
    std::thread::scope(|scope| {
        let works = |number: u8| {
            let device = &device;
            move || {
                let mut block = AlignedBuffer::new(4096);
                block.fill(number);
                for _ in 0..1_000_000 {
                    let written = device.write(4096, &block);
                    let _ = (device.read(4096, &mut block), device.sync());
                    if let Err(error) = written {
                        assert!(matches!(error, DeviceError::Closed { .. }), "{error}");
                        return;
                    }
                }
                panic!("the device goes on");
            }
        };
        let workers: Vec<_> = (2..4).map(|number| scope.spawn(works(number))).collect();
        device.release();
        let again = FileDevice::open(&path, &FileOptions::default()).unwrap();
        let mut block = AlignedBuffer::new(4096);
        block.fill(9);
        again.write(4096, &block).unwrap();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        again.read(4096, &mut block).unwrap();
        assert!(block.iter().all(|byte| *byte == 9), "an old write came later");
    });
    let mut block = AlignedBuffer::new(4096);
    let parts = &mut [IoSliceMut::new(&mut block)];
    let mut requests = [ReadRequest::new(0, parts)];
    device.read_batch(&mut requests);
    assert!(matches!(requests[0].result, Err(DeviceError::Closed { .. })));
    assert!(matches!(device.grow(16 << 10), Err(DeviceError::Closed { .. })));
}
