//! The page store over a device that fails: each fault is a typed error that says where, and the
//! store stays usable for what is intact.

use std::sync::Arc;

use millpond::internals::io::{
    AllocateError, CloseError, OpenError, PageRead, PageStore, PageWrite, ReadError, SyncError,
    WriteError,
};
use millpond::internals::page::{PAGE_HEADER, PageHeader, PageSize, PageType};
use millpond_base::{Lsn, PageId, Reason};
use millpond_device::{
    AlignedBuffer, Device, DeviceError, Errno, Faults, FaultyDevice, FileDevice, FileOptions,
    MemoryDevice, Operation,
};

const SIZE: PageSize = PageSize::KIB_8;

fn page_of(id: PageId, fill: u8) -> AlignedBuffer {
    let mut bytes = AlignedBuffer::new(SIZE.bytes());
    bytes.fill(fill);
    let (checksum, lsn, owner, level) = (0, Lsn(0), 3, 0);
    PageHeader { checksum, lsn, page: id, owner, kind: PageType::HEAP_DATA, level }
        .write(&mut bytes);
    bytes
}

fn write(store: &PageStore, id: PageId, fill: u8) -> Result<(), WriteError> {
    let mut bytes = page_of(id, fill);
    store.write_batch(&mut [PageWrite::new(id, Reason::Replace, &mut bytes)])
}

fn read(store: &PageStore, id: PageId) -> Result<u8, ReadError> {
    let mut bytes = AlignedBuffer::new(SIZE.bytes());
    store.read(id, &mut bytes)?;
    let body = &bytes[PAGE_HEADER..];
    assert!(body.iter().all(|b| b == &body[0]), "a sound page is whole");
    Ok(body[0])
}

/// A store of `count` pages, page i filled with i, and the device that may fail.
fn store_of(count: usize) -> (Arc<FaultyDevice>, PageStore, Vec<PageId>) {
    let device = Arc::new(FaultyDevice::with_crashes(MemoryDevice::new(), 42));
    let store = PageStore::create_on(device.clone(), SIZE).unwrap();
    let ids = store.allocate_many(count).unwrap();
    for (at, &id) in ids.iter().enumerate() {
        write(&store, id, at as u8).unwrap();
    }
    (device, store, ids)
}

fn offset(id: PageId) -> u64 {
    id.0 * SIZE.bytes_u64()
}

#[test]
fn a_failed_read_names_page_and_offset_and_spares_the_neighbours() {
    let (device, store, ids) = store_of(8);
    device.fail_reads_at(offset(ids[3]) + 100);
    match read(&store, ids[3]) {
        Err(ReadError::Device { page, error: source }) => {
            assert_eq!(page, ids[3]);
            let DeviceError::Io { operation, offset: at, errno, length, .. } = source else {
                panic!("{source:?}")
            };
            assert_eq!((operation, at, errno), (Operation::Read, offset(ids[3]), Errno::IO));
            assert_eq!(length, SIZE.bytes_u64());
        }
        other => panic!("{other:?}"),
    }
    // In one request with its neighbours, too.
    let mut room: Vec<_> = ids.iter().map(|_| AlignedBuffer::new(SIZE.bytes())).collect();
    let mut batch: Vec<_> =
        ids.iter().zip(&mut room).map(|(&id, bytes)| PageRead::new(id, bytes)).collect();
    batch.push(PageRead::new(PageId(9999), &mut []));
    store.read_batch(&mut batch);
    for (at, read) in batch[..8].iter().enumerate() {
        assert_eq!(read.result.is_ok(), at != 3, "{:?}", read.result);
        assert!(at == 3 || read.bytes[5000] == at as u8);
    }
    assert!(matches!(batch[8].result, Err(ReadError::OutOfRange { .. })));
    device.heal();
    assert_eq!(read(&store, ids[3]), Ok(3));
}

#[test]
fn a_failed_write_names_its_page_and_the_rest_of_the_batch_lands() {
    let (device, store, ids) = store_of(6);
    device.fail_writes_at(offset(ids[2]));
    let mut pages: Vec<_> = ids.iter().map(|&id| page_of(id, 100)).collect();
    let mut batch: Vec<_> = ids
        .iter()
        .zip(&mut pages)
        .map(|(&id, bytes)| PageWrite::new(id, Reason::Recov, bytes))
        .collect();
    let error = store.write_batch(&mut batch).unwrap_err();
    assert!(matches!(error, WriteError::Device { page, .. } if page == ids[2]), "{error:?}");
    let written: Vec<bool> = batch.iter().map(|write| write.written).collect();
    assert_eq!(written, [true, true, false, true, true, true]);
    assert_eq!(store.counts().writes_for(Reason::Recov), 5);
    assert_eq!(store.counts().write_errors, 1);
    assert_eq!((read(&store, ids[1]), read(&store, ids[2])), (Ok(100), Ok(2)));
    device.heal();
    write(&store, ids[2], 101).unwrap();
    assert_eq!(read(&store, ids[2]), Ok(101));
    store.close(None).unwrap();
}

#[test]
fn torn_flipped_and_misdirected_pages_are_found_by_their_checksums() {
    let (device, store, ids) = store_of(4);
    for sectors in 1..16 {
        device.tear_next_write_at(offset(ids[1]), sectors);
        write(&store, ids[1], 50 + sectors as u8).unwrap();
        let error = read(&store, ids[1]).unwrap_err();
        assert!(matches!(error, ReadError::Checksum { page, .. } if page == ids[1]), "{error:?}");
    }
    write(&store, ids[1], 9).unwrap();
    assert_eq!(read(&store, ids[1]), Ok(9));
    for (at, bit) in [(0, 0), (20, 7), (31, 3), (4096, 4), (8191, 1)] {
        device.flip_bit(offset(ids[2]) + at, bit).unwrap();
        assert!(matches!(read(&store, ids[2]), Err(ReadError::Checksum { .. })), "byte {at}");
        device.flip_bit(offset(ids[2]) + at, bit).unwrap();
        assert_eq!(read(&store, ids[2]), Ok(2));
    }
    // A lost write is no damage: the older page is as sound as ever. Only a log can tell.
    device.lose_next_write_at(offset(ids[3]));
    write(&store, ids[3], 77).unwrap();
    assert_eq!(read(&store, ids[3]), Ok(3));
    assert_eq!(device.struck(), 16);
}

#[test]
fn a_disk_that_fills_up_fails_growth_and_nothing_else() {
    let (device, store, ids) = store_of(100);
    device.limit_room(1 << 20);
    let free = store.free_pages() as usize;
    let mut more = Vec::new();
    let error = loop {
        match store.allocate() {
            Ok(id) => more.push(id),
            Err(error) => break error,
        }
        assert!(more.len() < 1000);
    };
    let AllocateError::Grow(DeviceError::DiskFull { needed, .. }) = &error else {
        panic!("{error:?}")
    };
    assert!(*needed <= 4 * SIZE.bytes_u64(), "what is needed, not what would be nice: {needed}");
    assert_eq!(more.len(), free + 128, "the room that there was is used");
    write(&store, more[more.len() - 1], 5).unwrap();
    store.free(ids[0]).unwrap();
    assert_eq!(store.allocate(), Ok(ids[0]));
    device.fill();
    let error = write(&store, ids[1], 6).unwrap_err();
    assert!(matches!(&error, WriteError::Device { error: source, .. } if source.is_disk_full()));
    assert_eq!(read(&store, ids[1]), Ok(1));
    device.heal();
    assert!(store.allocate().is_ok());
    store.close(None).unwrap();
}

#[test]
fn a_failed_sync_is_never_forgotten() {
    let (device, store, ids) = store_of(3);
    store.sync().unwrap();
    device.fail_next_sync();
    assert!(matches!(store.sync(), Err(SyncError::Device(DeviceError::Io { .. }))));
    // The device is well again; what it swallowed before is still in doubt.
    assert!(matches!(store.sync(), Err(SyncError::FailedBefore { .. })));
    assert!(matches!(store.sync_pages(&[ids[0]..ids[1]]), Err(SyncError::FailedBefore { .. })));
    assert!(matches!(store.close(None), Err(CloseError::Sync(_))));
    assert_eq!(read(&store, ids[1]), Ok(1), "reading goes on");
    drop(store);
    assert!(matches!(PageStore::open_on(device, None, false), Err(OpenError::NotClean { .. })));
}

#[test]
fn closing_can_be_tried_again_after_a_failed_write() {
    let (device, store, ids) = store_of(3);
    device.fail_writes_at(0);
    assert!(matches!(store.close(Some(ids[1])), Err(CloseError::Device(_))));
    device.heal();
    assert_eq!(store.allocate(), Ok(PageId(ids[2].0 + 1)), "the store is still open");
    store.close(Some(ids[1])).unwrap();
    let store = PageStore::open_on(device, None, false).unwrap();
    assert_eq!(store.catalog_root(), Some(ids[1]));
}

#[test]
fn opening_meets_failing_devices_with_typed_errors() {
    let (device, store, _) = store_of(3);
    store.close(None).unwrap();
    for at in [0, 5000, SIZE.bytes_u64()] {
        device.fail_reads_at(at);
        let error = PageStore::open_on(device.clone(), None, false).unwrap_err();
        let is_typed = matches!(error, OpenError::Device(_) | OpenError::FreeMap(_));
        assert!(is_typed, "{error:?}");
        device.heal();
    }
    device.flip_bit(SIZE.bytes_u64() + 77, 0).unwrap();
    let error = PageStore::open_on(device.clone(), None, false).unwrap_err();
    let OpenError::FreeMap(ReadError::Checksum { page, .. }) = error else { panic!("{error:?}") };
    assert_eq!(page, PageId(1));
    device.flip_bit(SIZE.bytes_u64() + 77, 0).unwrap();
    device.fail_next_sync();
    assert!(matches!(PageStore::open_on(device.clone(), None, false), Err(OpenError::Device(_))));
}

#[test]
fn faults_by_chance_never_pass_for_data() {
    let faults = Faults {
        read_error: 0.05,
        write_error: 0.05,
        torn_write: 0.05,
        bit_flip: 0.05,
        latency_us_max: 3,
        ..Faults::default()
    };
    for seed in 0..20 {
        let device = Arc::new(FaultyDevice::new(Arc::new(MemoryDevice::new()), seed));
        let store = PageStore::create_on(device.clone(), SIZE).unwrap();
        let ids = store.allocate_many(50).unwrap();
        device.set_faults(faults);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut known: Vec<Option<u8>> = vec![None; ids.len()];
        let (mut good, mut bad) = (0, 0);
        for _ in 0..1000 {
            let at = random.usize(0..ids.len());
            if random.bool() {
                let fill = random.u8(..);
                known[at] = write(&store, ids[at], fill).ok().map(|()| fill);
            } else {
                match (read(&store, ids[at]), known[at]) {
                    (Ok(fill), Some(known)) => assert_eq!(fill, known, "seed {seed}"),
                    (Ok(_), None) => {}
                    (Err(_), _) => bad += 1,
                }
                good += 1;
            }
        }
        assert!(bad > 10 && good > bad, "seed {seed}: {good} {bad}");
    }
}

#[test]
fn after_a_crash_the_store_says_so_and_synced_pages_are_there() {
    for seed in 0..150 {
        let (device, store, ids) = store_of(60);
        store.sync().unwrap();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut newest: Vec<u8> = (0..60).collect();
        for _ in 0..random.usize(0..80) {
            let at = random.usize(30..60);
            newest[at] = newest[at].wrapping_add(60);
            write(&store, ids[at], newest[at]).unwrap();
        }
        if random.bool() {
            store.sync_pages(&[ids[40]..ids[50]]).unwrap();
        } else {
            newest[40..50].fill(255);
        }
        let grown = store.allocate_many(random.usize(1..300)).unwrap();
        write(&store, grown[0], 200).unwrap();
        let image = Arc::new(device.crash(seed).unwrap());
        let error = PageStore::open_on(image.clone(), None, false).unwrap_err();
        assert!(matches!(error, OpenError::NotClean { .. }), "seed {seed}: {error:?}");
        let salvage = PageStore::salvage_on(image, None).unwrap();
        for (at, &id) in ids[..30].iter().enumerate() {
            assert_eq!(read(&salvage, id), Ok(at as u8), "seed {seed}");
        }
        for at in 30..60 {
            match read(&salvage, ids[at]) {
                // Some version of the page, whole; the last one if it was synced.
                Ok(fill) if (40..50).contains(&at) && newest[at] != 255 => {
                    assert_eq!(fill, newest[at], "seed {seed}");
                }
                Ok(fill) => assert_eq!(usize::from(fill) % 4, at % 4, "seed {seed}"),
                Err(error) => {
                    assert!(matches!(error, ReadError::Checksum { .. }), "seed {seed}: {error}");
                    assert!(!(40..50).contains(&at) || newest[at] == 255, "seed {seed}");
                }
            }
        }
    }
}

#[test]
fn a_crash_while_closing_leaves_the_store_open_or_closed_but_never_in_between() {
    let (mut clean, mut open) = (0, 0);
    for seed in 0..100 {
        let (device, store, ids) = store_of(10);
        store.free(ids[4]).unwrap();
        // The last sync fails: its superblock may have landed or not.
        device.heal();
        let image = if seed % 2 == 0 {
            store.close(Some(ids[1])).unwrap();
            device.crash(seed).unwrap()
        } else {
            let reopened = {
                store.close(Some(ids[1])).unwrap();
                device.fail_next_sync();
                PageStore::open_on(device.clone(), None, false)
            };
            assert!(reopened.is_err());
            device.crash(seed).unwrap()
        };
        match PageStore::open_on(Arc::new(image), None, false) {
            Ok(store) => {
                clean += 1;
                assert_eq!(store.catalog_root(), Some(ids[1]));
                assert!(!store.is_allocated(ids[4]) && store.is_allocated(ids[5]));
                for at in [0, 1, 2, 3, 5, 6, 7, 8, 9] {
                    assert_eq!(read(&store, ids[at]), Ok(at as u8));
                }
            }
            Err(OpenError::NotClean { .. }) => open += 1,
            Err(other) => panic!("seed {seed}: {other:?}"),
        }
    }
    assert!(clean >= 50 && open > 5, "both happen: {clean} {open}");
}

#[test]
fn faults_can_stand_before_a_file_with_direct_io() {
    let folder = tempfile::tempdir().unwrap();
    let file = FileDevice::create(&folder.path().join("f"), &FileOptions::default()).unwrap();
    let device = Arc::new(FaultyDevice::new(Arc::new(file), 1));
    let store = PageStore::create_on(device.clone(), SIZE).unwrap();
    let ids = store.allocate_many(2).unwrap();
    write(&store, ids[0], 1).unwrap();
    device.flip_bit(offset(ids[0]) + 4097, 5).unwrap();
    assert!(matches!(read(&store, ids[0]), Err(ReadError::Checksum { .. })));
    device.tear_next_write_at(offset(ids[1]), 3);
    write(&store, ids[1], 2).unwrap();
    assert!(matches!(read(&store, ids[1]), Err(ReadError::Checksum { .. })));
    assert!(device.crash(1).is_none());
    assert_eq!(device.length(), 512 << 10);
}

#[test]
fn nothing_is_written_after_the_store_was_marked_as_closed() {
    let (device, store, ids) = store_of(8);
    device.set_faults(Faults { latency_us_max: 1500, ..Faults::default() });
    let (store, ids) = (&store, &ids);
    let content = || {
        let mut bytes = vec![0; device.length() as usize];
        device.read(0, &mut bytes).unwrap();
        bytes
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (1..8)
            .map(|at| {
                scope.spawn(move || {
                    let writes = (0..100_000).find_map(|n| write(store, ids[at], n as u8).err());
                    assert_eq!(writes, Some(WriteError::Closed));
                })
            })
            .collect();
        for round in 0..20 {
            write(store, ids[0], round).unwrap();
        }
        store.close(None).unwrap();
        let at_close = content();
        for writer in writers {
            writer.join().unwrap();
        }
        assert!(content() == at_close, "a write came later");
    });
    assert!(PageStore::open_on(device, None, false).is_ok());
}
