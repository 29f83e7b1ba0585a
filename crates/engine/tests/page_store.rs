//! The page store over a memory device and over files: what is written comes back, what is not
//! sound is found out, and space is used again.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use millpond::internals::io::{
    AllocateError, CloseError, CreateError, FreeError, OpenError, PageRead, PageStore, PageWrite,
    ReadError, SyncError, WriteError,
};
use millpond::internals::page::superblock::{FORMAT_VERSION, SuperblockError};
use millpond::internals::page::{PAGE_HEADER, PageHeader, PageSize, PageType, free_map};
use millpond::internals::pool::{PageIn, Storage};
use millpond_base::{FrameId, Lsn, PageId, Reason};
use millpond_device::{
    AlignedBuffer, Device, FileOptions, MemoryDevice, OpenFileError, Submission,
};

fn page_of(id: PageId, size: PageSize, fill: u8) -> AlignedBuffer {
    let mut bytes = AlignedBuffer::new(size.bytes());
    bytes.fill(fill);
    let header = PageHeader {
        checksum: 0,
        lsn: Lsn(0),
        page: id,
        owner: 3,
        kind: PageType::HEAP_DATA,
        level: 0,
    };
    header.write(&mut bytes);
    bytes
}

pub(crate) fn write(store: &PageStore, id: PageId, fill: u8) -> Result<(), WriteError> {
    let mut bytes = page_of(id, store.page_size(), fill);
    store.write_batch(&mut [PageWrite::new(id, Reason::Replace, &mut bytes)])
}

fn read(store: &PageStore, id: PageId) -> Result<u8, ReadError> {
    let mut bytes = AlignedBuffer::new(store.page_size().bytes());
    store.read(id, &mut bytes)?;
    let body = &bytes[PAGE_HEADER..];
    assert!(body.iter().all(|b| b == &body[0]));
    Ok(body[0])
}

fn in_memory(size: PageSize) -> (Arc<MemoryDevice>, PageStore) {
    let device = Arc::new(MemoryDevice::new());
    let store = PageStore::create_on(device.clone(), size).unwrap();
    (device, store)
}

/// All ways in which a file can be read and written.
fn all_options() -> Vec<FileOptions> {
    let mut all = Vec::new();
    for direct in [true, false] {
        for submission in [Submission::Uring, Submission::Sync] {
            all.push(FileOptions { direct, submission, ..FileOptions::default() });
        }
    }
    all
}

fn options() -> FileOptions {
    FileOptions::default()
}

#[test]
fn pages_of_every_size_come_back_from_a_file_after_reopening() {
    for size in PageSize::ALL.into_iter().chain([PageSize::TINY]) {
        for options in all_options() {
            if size == PageSize::TINY && options.direct {
                // Drives with blocks of 4 KiB cannot write less.
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.mill");
            let store = PageStore::create(&path, size, &options).unwrap();
            let ids = store.allocate_many(40).unwrap();
            for (at, &id) in ids.iter().enumerate() {
                write(&store, id, at as u8).unwrap();
            }
            let (uuid, pages) = (store.uuid(), store.pages());
            store.close(Some(ids[3])).unwrap();
            drop(store);
            let store = PageStore::open(&path, Some(size), &options).unwrap();
            assert_eq!(store.uuid(), uuid);
            assert_eq!(store.pages(), pages);
            assert_eq!(store.catalog_root(), Some(ids[3]));
            assert_eq!(store.allocated_pages(), 42);
            for (at, &id) in ids.iter().enumerate() {
                assert_eq!(read(&store, id), Ok(at as u8), "{size} {options:?}");
            }
            store.close(store.catalog_root()).unwrap();
        }
    }
}

#[test]
fn batches_of_any_order_and_misaligned_buffers_work_on_files() {
    let size = PageSize::KIB_8;
    for options in all_options() {
        let folder = tempfile::tempdir().unwrap();
        let store = PageStore::create(&folder.path().join("b"), size, &options).unwrap();
        let mut ids = store.allocate_many(300).unwrap();
        // Runs of several lengths, with holes between them.
        ids.retain(|id| id.0 % 7 != 0 && !(100..150).contains(&id.0));
        fastrand::Rng::with_seed(3).shuffle(&mut ids);
        let mut pages: Vec<AlignedBuffer> =
            ids.iter().map(|&id| page_of(id, size, id.0 as u8)).collect();
        let mut batch: Vec<PageWrite<'_>> = ids
            .iter()
            .zip(&mut pages)
            .map(|(&id, bytes)| PageWrite::new(id, Reason::Recov, bytes))
            .collect();
        store.write_batch(&mut batch).unwrap();
        assert!(batch.iter().all(|write| write.written));
        assert!(batch.iter().map(|write| write.page).eq(ids.iter().copied()), "the caller's order");
        let counts = store.counts();
        assert_eq!(counts.writes_for(Reason::Recov), ids.len() as u64);
        assert!(counts.write_requests < counts.writes / 3, "adjacent pages go together");

        for misaligned in [0, 1, 64] {
            let mut room: Vec<AlignedBuffer> =
                (0..100).map(|_| AlignedBuffer::new(size.bytes() + 512)).collect();
            let mut batch: Vec<PageRead<'_>> = ids
                .iter()
                .zip(&mut room)
                .map(|(&id, b)| PageRead::new(id, &mut b[misaligned..misaligned + size.bytes()]))
                .collect();
            store.read_batch(&mut batch);
            for read in &batch {
                assert_eq!(read.result, Ok(()), "{options:?}");
                assert_eq!(read.bytes[4000], read.page.0 as u8);
            }
        }
        store.sync_pages(&[ids[0]..PageId(ids[0].0 + 1)]).unwrap();
        store.close(None).unwrap();
    }
}

#[test]
fn a_damaged_page_is_found_and_named_and_its_neighbours_are_read() {
    let (device, store) = in_memory(PageSize::KIB_16);
    let ids = store.allocate_many(3).unwrap();
    for &id in &ids {
        write(&store, id, 7).unwrap();
    }
    let offset = ids[1].0 * 16384;
    for at in [0u64, 5, 9, 20, 31, 100, 16383] {
        let mut byte = [0];
        device.read(offset + at, &mut byte).unwrap();
        device.write(offset + at, &[byte[0] ^ 1]).unwrap();
        match read(&store, ids[1]) {
            Err(ReadError::Checksum { page, offset: at, stored, computed, .. }) => {
                assert_eq!((page, at), (ids[1], offset));
                assert_ne!(stored, computed);
            }
            other => panic!("byte {at}: {other:?}"),
        }
        let error = read(&store, ids[1]).unwrap_err().to_string();
        assert!(error.contains("page 3") && error.contains(&offset.to_string()), "{error}");
        assert_eq!((read(&store, ids[0]), read(&store, ids[2])), (Ok(7), Ok(7)));
        device.write(offset + at, &byte).unwrap();
        assert_eq!(read(&store, ids[1]), Ok(7));
    }
    assert_eq!(store.counts().read_errors, 14);
}

#[test]
fn a_page_in_the_wrong_place_is_found_and_named() {
    let (device, store) = in_memory(PageSize::KIB_4);
    let ids = store.allocate_many(2).unwrap();
    write(&store, ids[0], 1).unwrap();
    write(&store, ids[1], 2).unwrap();
    let mut bytes = vec![0; 4096];
    device.read(ids[0].0 * 4096, &mut bytes).unwrap();
    device.write(ids[1].0 * 4096, &bytes).unwrap();
    match read(&store, ids[1]) {
        Err(ReadError::Misplaced { page, found, offset, .. }) => {
            assert_eq!((page, found, offset), (ids[1], ids[0], ids[1].0 * 4096));
        }
        other => panic!("{other:?}"),
    }
    // A page that was allocated and never written is no page yet.
    let fresh = store.allocate().unwrap();
    assert!(matches!(read(&store, fresh), Err(ReadError::Checksum { .. })));
}

#[test]
fn wrong_requests_are_typed_errors_and_write_nothing() {
    let (_, store) = in_memory(PageSize::KIB_4);
    let pages = store.pages();
    let id = store.allocate().unwrap();
    write(&store, id, 5).unwrap();
    for page in [PageId(pages), PageId(u64::MAX)] {
        assert_eq!(read(&store, page), Err(ReadError::OutOfRange { page, pages }));
        assert_eq!(write(&store, page, 0), Err(WriteError::OutOfRange { page, pages }));
        assert_eq!(store.free(page), Err(FreeError::OutOfRange { page, pages }));
    }
    for page in [PageId(0), PageId(1)] {
        assert_eq!(write(&store, page, 0), Err(WriteError::Reserved { page }));
        assert_eq!(store.free(page), Err(FreeError::Reserved { page }));
    }
    let mut short = vec![0; 100];
    assert!(matches!(store.read(id, &mut short), Err(ReadError::BufferSize { .. })));
    let other = PageId(id.0 + 1);
    let mut bytes = page_of(other, store.page_size(), 6);
    let mut good = page_of(id, store.page_size(), 6);
    let mut batch = [
        PageWrite::new(id, Reason::Synch, &mut good),
        PageWrite::new(PageId(id.0 + 2), Reason::Synch, &mut bytes),
    ];
    let error = store.write_batch(&mut batch).unwrap_err();
    assert_eq!(error, WriteError::WrongPage { page: PageId(id.0 + 2), found: other });
    assert_eq!(read(&store, id), Ok(5), "a wrong batch writes nothing");
    let mut again = page_of(id, store.page_size(), 8);
    let mut batch = [
        PageWrite::new(id, Reason::Synch, &mut good),
        PageWrite::new(id, Reason::Synch, &mut again),
    ];
    assert_eq!(store.write_batch(&mut batch), Err(WriteError::Twice { page: id }));
    store.free(id).unwrap();
    assert_eq!(store.free(id), Err(FreeError::AlreadyFree { page: id }));
}

#[test]
fn freed_pages_are_used_again_lowest_first_and_also_after_reopening() {
    let (device, store) = in_memory(PageSize::KIB_4);
    let ids = store.allocate_many(100).unwrap();
    let length = device.length();
    for at in [70, 10, 40] {
        store.free(ids[at]).unwrap();
    }
    assert_eq!(store.allocate(), Ok(ids[10]));
    store.close(None).unwrap();
    let store = PageStore::open_on(device.clone(), None, false).unwrap();
    assert!(!store.is_allocated(ids[40]) && store.is_allocated(ids[41]));
    assert_eq!(store.allocate(), Ok(ids[40]));
    assert_eq!(store.allocate(), Ok(ids[70]));
    assert_eq!(store.allocate(), Ok(PageId(ids[99].0 + 1)));
    assert_eq!(device.length(), length, "the store did not grow");
}

#[test]
fn a_store_grows_past_several_free_maps_and_keeps_them() {
    let size = PageSize::KIB_4;
    let per_map = free_map::pages_per_map(size);
    let (device, store) = in_memory(size);
    let count = 2 * per_map as usize + 10;
    let mut ids = Vec::new();
    while ids.len() < count {
        ids.extend(store.allocate_many(1000).unwrap());
    }
    let distinct: BTreeSet<PageId> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), ids.len());
    assert!(!ids.iter().any(|&id| store.is_reserved(id)));
    assert!(store.is_reserved(PageId(per_map)) && store.is_reserved(PageId(2 * per_map)));
    let (pages, allocated) = (store.pages(), store.allocated_pages());
    assert_eq!(device.length(), pages * 4096);
    assert_eq!(allocated, ids.len() as u64 + 2 + 2);
    let last = ids.pop().unwrap();
    write(&store, last, 9).unwrap();
    store.free(ids[per_map as usize + 5]).unwrap();
    store.close(Some(last)).unwrap();
    let store = PageStore::open_on(device, None, false).unwrap();
    assert_eq!((store.pages(), store.allocated_pages()), (pages, allocated - 1));
    assert_eq!(read(&store, last), Ok(9));
    assert_eq!(store.allocate(), Ok(ids[per_map as usize + 5]));
}

#[test]
fn a_full_disk_is_a_typed_error_and_the_store_stays_usable() {
    let device = Arc::new(MemoryDevice::with_capacity(512 << 10));
    let store = PageStore::create_on(device.clone(), PageSize::KIB_4).unwrap();
    let ids = store.allocate_many(126).unwrap();
    for _ in 0..3 {
        let error = store.allocate().unwrap_err();
        match &error {
            AllocateError::Grow(source) => assert!(source.is_disk_full()),
            other => panic!("{other:?}"),
        }
        assert!(error.to_string().contains("more bytes were needed"), "{error}");
        assert!(store.allocate_many(2).is_err());
        assert!(store.allocate_many(usize::MAX).is_err());
    }
    write(&store, ids[100], 4).unwrap();
    assert_eq!(read(&store, ids[100]), Ok(4));
    store.free(ids[7]).unwrap();
    assert_eq!(store.allocate(), Ok(ids[7]));
    store.close(None).unwrap();
    assert!(PageStore::open_on(device, None, false).is_ok());
}

#[test]
fn the_last_pages_of_a_nearly_full_disk_can_be_had() {
    // Room for a few pages more, and not for the whole step.
    let device = Arc::new(MemoryDevice::with_capacity((512 << 10) + 5 * 4096));
    let store = PageStore::create_on(device, PageSize::KIB_4).unwrap();
    store.allocate_many(126).unwrap();
    assert_eq!(store.allocate(), Ok(PageId(128)));
}

#[test]
fn a_store_that_was_not_closed_is_not_opened_but_can_be_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.mill");
    let store = PageStore::create(&path, PageSize::KIB_16, &options()).unwrap();
    let ids = store.allocate_many(5).unwrap();
    write(&store, ids[2], 77).unwrap();
    drop(store);
    for read_only in [false, true] {
        let options = FileOptions { read_only, ..options() };
        let error = PageStore::open(&path, None, &options).unwrap_err();
        assert_eq!(error, OpenError::NotClean { path: path.clone() });
        let text = error.to_string();
        assert!(text.contains("not shut down"), "{text}");
        assert!(text.contains("millpond dump --salvage"), "{text}");
    }
    let store = PageStore::open_for_salvage(&path, None, &options()).unwrap();
    assert_eq!(read(&store, ids[2]), Ok(77));
    assert!(read(&store, ids[3]).is_err());
    assert_eq!(store.allocate(), Err(AllocateError::ReadOnly));
    assert_eq!(store.free(ids[2]), Err(FreeError::ReadOnly));
    assert_eq!(write(&store, ids[2], 1), Err(WriteError::ReadOnly));
    assert_eq!(store.sync(), Err(SyncError::ReadOnly));
    store.close(None).unwrap();
    assert!(matches!(PageStore::open(&path, None, &options()), Err(OpenError::NotClean { .. })));
}

#[test]
fn salvage_finds_the_page_size_without_a_superblock() {
    for size in PageSize::ALL.into_iter().chain([PageSize::TINY]) {
        let (device, store) = in_memory(size);
        let id = store.allocate().unwrap();
        write(&store, id, 5).unwrap();
        store.close(Some(id)).unwrap();
        device.write(0, &vec![0xFF; size.bytes()]).unwrap();
        assert!(matches!(
            PageStore::open_on(device.clone(), None, false),
            Err(OpenError::Superblock { .. })
        ));
        let store = PageStore::salvage_on(device.clone(), None).unwrap();
        assert_eq!((store.page_size(), store.catalog_root()), (size, None));
        assert_eq!(read(&store, id), Ok(5));
        device.write(size.bytes_u64() + 40, &[1, 2, 3]).unwrap();
        let store = PageStore::salvage_on(device.clone(), None).unwrap();
        assert_eq!((store.page_size(), read(&store, id)), (size, Ok(5)), "by its pages");
        device.write(id.0 * size.bytes_u64() + 40, &[1, 2, 3]).unwrap();
        let error = PageStore::salvage_on(device.clone(), None).unwrap_err();
        assert!(matches!(error, OpenError::NothingToSalvage { .. }));
        let store = PageStore::salvage_on(device, Some(size)).unwrap();
        assert!(read(&store, id).is_err());
    }
}

#[test]
fn a_closed_store_refuses_everything_and_others_may_open_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.mill");
    let store = PageStore::create(&path, PageSize::KIB_4, &options()).unwrap();
    let id = store.allocate().unwrap();
    write(&store, id, 1).unwrap();
    assert_eq!(store.close(Some(PageId(1))), Err(CloseError::CatalogRoot { page: PageId(1) }));
    let free = PageId(id.0 + 1);
    assert_eq!(store.close(Some(free)), Err(CloseError::CatalogRoot { page: free }));
    store.close(Some(id)).unwrap();
    store.close(None).unwrap();
    assert_eq!(read(&store, id), Err(ReadError::Closed));
    assert_eq!(write(&store, id, 2), Err(WriteError::Closed));
    assert_eq!(store.allocate(), Err(AllocateError::Closed));
    assert_eq!(store.free(id), Err(FreeError::Closed));
    assert_eq!(store.sync(), Err(SyncError::Closed));
    let other = PageStore::open(&path, None, &options()).unwrap();
    assert_eq!(other.catalog_root(), Some(id), "closing twice changes nothing");
    assert_eq!(read(&other, id), Ok(1));
}

#[test]
fn readers_share_a_store_and_keep_writers_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("e.mill");
    PageStore::create(&path, PageSize::KIB_4, &options()).unwrap().close(None).unwrap();
    let reading = FileOptions { read_only: true, ..options() };
    let one = PageStore::open(&path, None, &reading).unwrap();
    let two = PageStore::open(&path, None, &reading).unwrap();
    let error = PageStore::open(&path, None, &options()).unwrap_err();
    assert!(matches!(error, OpenError::File(OpenFileError::Locked { .. })), "{error}");
    one.close(None).unwrap();
    drop(two);
    let writer = PageStore::open(&path, None, &options()).unwrap();
    assert!(PageStore::open(&path, None, &reading).is_err());
    writer.close(None).unwrap();
    assert!(PageStore::open(&path, None, &reading).is_ok(), "readers leave the store clean");
}

#[test]
fn files_that_are_no_store_are_named_for_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let open = |path: &Path| PageStore::open(path, None, &options()).unwrap_err();
    assert!(matches!(open(&path), OpenError::File(OpenFileError::Io { .. })));
    for content in [&b""[..], b"short", &[0; 4096], &[b'x'; 100_000]] {
        std::fs::write(&path, content).unwrap();
        let error = open(&path);
        assert!(error.to_string().contains("no Millpond store"), "{error}");
        let is_short = error.to_string().contains(&format!("has {} bytes", content.len()));
        assert_eq!(is_short, content.len() < 4096, "{error}");
    }
    let error = PageStore::create(&path, PageSize::KIB_4, &options()).unwrap_err();
    assert!(matches!(error, CreateError::File(OpenFileError::Exists { length: 100_000, .. })));
    std::fs::remove_file(&path).unwrap();
    let store = PageStore::create(&path, PageSize::KIB_16, &options()).unwrap();
    store.close(None).unwrap();
    drop(store);
    let asked = PageSize::KIB_4;
    let error = PageStore::open(&path, Some(asked), &options()).unwrap_err();
    let found = PageSize::KIB_16;
    assert_eq!(error, OpenError::PageSizeDiffers { path: path.clone(), asked, found });
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for length in [(512 << 10) - 4096, 16384, 8192, 4096] {
        file.set_len(length).unwrap();
        match open(&path) {
            OpenError::Truncated { found, expected, .. } => {
                assert_eq!(found, length);
                assert!(expected > found);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The power fails while it grows: the superblock that a checkpoint wrote is durable, and the
/// length of the file is not.
#[test]
fn a_store_that_was_growing_when_the_power_failed_is_recovered_at_its_full_length() {
    for position in [Lsn(0), Lsn(77)] {
        let (device, store) = in_memory(PageSize::KIB_4);
        store.allocate_many(20).unwrap();
        store.set_log_position(position, None, None).unwrap();
        let (pages, bytes) = (store.pages(), device.to_bytes());
        let cut = Arc::new(MemoryDevice::from_bytes(&bytes[..bytes.len() - 8192]));
        let error = PageStore::open_on(cut.clone(), None, false).unwrap_err();
        if position == Lsn(0) {
            assert!(matches!(error, OpenError::Truncated { .. }), "no log knows it: {error}");
            continue;
        }
        assert!(matches!(error, OpenError::NeedsRecovery { .. }), "{error}");
        let recovered = PageStore::open_to_recover(cut, None).unwrap();
        assert_eq!(recovered.pages(), pages);
    }
}

#[test]
fn no_corruption_of_the_first_pages_makes_opening_panic() {
    let (device, store) = in_memory(PageSize::KIB_4);
    store.allocate_many(20).unwrap();
    store.close(None).unwrap();
    let image = device.to_bytes();
    let mut random = fastrand::Rng::with_seed(20261121);
    let (mut refused, rounds) = (0, 3000);
    for _ in 0..rounds {
        let mut bytes = image[..16384].to_vec();
        for _ in 0..random.usize(1..6) {
            let at = if random.bool() { random.usize(0..128) } else { random.usize(0..8192) };
            bytes[at] ^= random.u8(1..=255);
        }
        if random.u8(..) < 20 {
            bytes.truncate(random.usize(0..bytes.len()));
        } else {
            bytes.extend_from_slice(&image[16384..]);
        }
        // Half of them with a checksum that fits, so that the fields themselves are looked at.
        if random.bool() && bytes.len() >= 4096 {
            PageHeader::seal(PageId(0), &mut bytes[..4096]);
        }
        let device = Arc::new(MemoryDevice::from_bytes(&bytes));
        if let Ok(store) = PageStore::salvage_on(device.clone(), None) {
            let mut page = vec![0; store.page_size().bytes()];
            let _ = store.read(PageId(2), &mut page);
        }
        match PageStore::open_on(device, None, false) {
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
            Ok(store) => {
                let _ = store.allocate().unwrap();
                store.close(None).unwrap();
            }
        }
    }
    assert!(refused > rounds / 2);
}

#[test]
fn a_file_of_another_version_is_refused_with_both_versions_named() {
    let (device, store) = in_memory(PageSize::KIB_4);
    store.close(None).unwrap();
    let (known, found) = (FORMAT_VERSION, FORMAT_VERSION + 1);
    device.write(40, &found.to_le_bytes()).unwrap();
    let error = PageStore::open_on(device, None, false).unwrap_err();
    let OpenError::Superblock { error: source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source, &SuperblockError::Version { found, known });
    let text = error.to_string();
    assert!(text.contains(&format!("version {found}")), "{text}");
    assert!(text.contains(&format!("version {known}")), "{text}");
}

#[test]
fn allocation_is_a_set_that_survives_reopening() {
    for seed in 0..6 {
        let size = PageSize::ALL[seed as usize % 5];
        let (device, mut store) = in_memory(size);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut model = BTreeSet::new();
        for _ in 0..3000 {
            match random.u8(..) {
                0..=2 => {
                    store.close(None).unwrap();
                    store = PageStore::open_on(device.clone(), Some(size), false).unwrap();
                }
                3..=20 => {
                    let pages = store.allocate_many(random.usize(0..40)).unwrap();
                    assert!(pages.is_sorted());
                    assert!(pages.into_iter().all(|page| model.insert(page)));
                }
                21..=120 => assert!(model.insert(store.allocate().unwrap())),
                _ => {
                    let page = PageId(random.u64(0..store.pages() + 3));
                    let answer = store.free(page);
                    assert_eq!(answer.is_ok(), model.remove(&page), "{answer:?}");
                }
            }
            assert_eq!(store.allocated_pages(), model.len() as u64 + 2);
        }
        for page in (0..store.pages() + 5).map(PageId) {
            let is_used = model.contains(&page) || store.is_reserved(page);
            assert_eq!(store.is_allocated(page), is_used);
        }
    }
}

#[test]
fn a_store_that_grows_ahead_has_room_before_it_is_asked_for() {
    let (device, store) = in_memory(PageSize::KIB_4);
    assert_eq!(store.grow_ahead(), Ok(false), "a new store has room");
    store.allocate_many(100).unwrap();
    assert_eq!(store.grow_ahead(), Ok(true));
    let length = device.length();
    assert_eq!(store.grow_ahead(), Ok(false));
    store.allocate_many(80).unwrap();
    assert_eq!(device.length(), length);
    // What was given back is not taken again before it is needed.
    store.cut_off().unwrap();
    let length = device.length();
    assert_eq!((store.grow_ahead(), device.length()), (Ok(false), length));
    store.allocate_many(100).unwrap();
    assert!(device.length() > length);
    while store.grow_ahead() == Ok(false) {
        store.allocate_many(10).unwrap();
    }
    store.close(None).unwrap();
    assert_eq!(store.grow_ahead(), Err(AllocateError::Closed));
}

#[test]
fn threads_never_get_the_same_page() {
    let (_, store) = in_memory(PageSize::KIB_4);
    let store = &store;
    let mut all: Vec<PageId> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|seed| {
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    let mut mine: Vec<PageId> = Vec::new();
                    for _ in 0..4000 {
                        if mine.is_empty() || random.u8(..) < 160 {
                            mine.push(store.allocate().unwrap());
                        } else {
                            let at = random.usize(0..mine.len());
                            store.free(mine.swap_remove(at)).unwrap();
                        }
                    }
                    for &id in &mine {
                        write(store, id, seed as u8).unwrap();
                    }
                    for &id in &mine {
                        assert_eq!(read(store, id), Ok(seed as u8));
                    }
                    mine
                })
            })
            .collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
    assert_eq!(store.allocated_pages(), count as u64 + 2);
}

/// Two lists were once zipped of which one was in the order of pages, the other in the caller's.
#[test]
fn each_result_of_a_batch_stays_beside_the_page_and_the_tag_that_it_was_asked_with() {
    let store = PageStore::create_on(Arc::new(MemoryDevice::new()), PageSize::KIB_4).unwrap();
    let mut ids = store.allocate_many(40).unwrap();
    for &id in &ids {
        write(&store, id, id.0 as u8).unwrap();
    }
    let bad = ids[17];
    let offset = bad.0 * PageSize::KIB_4.bytes_u64() + 3000;
    store.device().write(offset, &[99]).unwrap();
    fastrand::Rng::with_seed(5).shuffle(&mut ids);
    let mut room: Vec<_> = ids.iter().map(|_| AlignedBuffer::new(4096)).collect();
    let pages = ids.iter().zip(&mut room).enumerate();
    let mut batch: Vec<PageRead<'_, usize>> =
        pages.map(|(at, (&id, bytes))| PageRead::tagged(id, bytes, at)).collect();
    store.read_batch(&mut batch);
    for (at, read) in batch.iter().enumerate() {
        assert_eq!((read.tag, read.page), (at, ids[at]));
        assert_eq!(read.result.is_err(), read.page == bad, "{:?}", read.result);
        assert!(read.page == bad || read.bytes[2000] == read.page.0 as u8);
    }
    // The same through the pool's eyes.
    let mut room: Vec<_> = ids.iter().map(|_| AlignedBuffer::new(4096)).collect();
    let pages = ids.iter().zip(&mut room).enumerate();
    let mut batch: Vec<PageIn<'_>> =
        pages.map(|(at, (&id, bytes))| PageIn::new(id, FrameId(at as u32), bytes)).collect();
    Storage::read_batch(&store, &mut batch);
    for (at, read) in batch.iter().enumerate() {
        assert_eq!((read.frame.0 as usize, read.page), (at, ids[at]));
        assert_eq!(read.result.is_err(), read.page == bad, "{:?}", read.result);
        assert!(read.page == bad || read.bytes[2000] == read.page.0 as u8);
    }
}
