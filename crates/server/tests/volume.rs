//! The volume alone: overlapping requests, durability, errors.

use std::io::IoSliceMut;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use millpond_base::{PageId, Reason};
use millpond_device::{
    Alignment, Device, DeviceError, Errno, MemoryDevice, Operation, ReadRequest, WriteRequest,
};
use millpond_server::protocol::Extent;
use millpond_server::volume::{OpenVolumeError, Room, Volume, VolumeError};

use crate::support::{folder, spec};

fn room(volume: &Volume, offset: u64, bytes: &[u8]) -> Room {
    let mut room = volume.room(offset, bytes.len() as u32);
    room.copy_from_slice(bytes);
    room
}

/// A device that records requests, and can fail to sync.
struct Watched {
    below: MemoryDevice,
    writes: Mutex<Vec<(Option<PageId>, Reason)>>,
    syncs: Mutex<Vec<std::ops::Range<u64>>>,
    is_failing: AtomicBool,
}

impl Watched {
    fn new(bytes: usize) -> Arc<Watched> {
        Arc::new(Watched {
            below: MemoryDevice::from_bytes(&vec![1; bytes]),
            writes: Mutex::default(),
            syncs: Mutex::default(),
            is_failing: AtomicBool::new(false),
        })
    }
}

impl Device for Watched {
    fn path(&self) -> &Path {
        self.below.path()
    }
    fn length(&self) -> u64 {
        self.below.length()
    }
    fn alignment(&self) -> Alignment {
        self.below.alignment()
    }
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.below.read(offset, bytes)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.below.write(offset, bytes)
    }
    fn read_batch(&self, requests: &mut [ReadRequest<'_, '_>]) {
        self.below.read_batch(requests);
    }
    fn write_batch(&self, requests: &mut [WriteRequest<'_, '_>]) {
        let mut writes = self.writes.lock().unwrap();
        for request in requests.iter() {
            let tags = request.tags.iter().map(|tag| (Some(tag.page), tag.reason));
            writes.extend(tags);
            if request.tags.is_empty() {
                writes.push((None, Reason::None));
            }
        }
        drop(writes);
        self.below.write_batch(requests);
    }
    fn sync(&self) -> Result<(), DeviceError> {
        self.sync_ranges(&[0..self.length()])
    }
    fn sync_ranges(&self, ranges: &[std::ops::Range<u64>]) -> Result<(), DeviceError> {
        self.syncs.lock().unwrap().extend(ranges.iter().cloned());
        if !self.is_failing.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (path, operation) = (self.path().to_path_buf(), Operation::Sync);
        Err(DeviceError::Io { operation, path, offset: 0, length: 0, errno: Errno::IO })
    }
    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.below.grow(length)
    }
}

#[test]
fn each_block_is_a_page_with_the_reason_of_the_write() {
    let device = Watched::new(64 << 10);
    let volume = Volume::over(device.clone(), 4096, false);
    let bytes = [5; 3 * 4096];
    volume.write(4096, room(&volume, 4096, &bytes), Reason::Recov, false).unwrap();
    let pages = [1, 2, 3].map(|page| (Some(PageId(page)), Reason::Recov));
    assert_eq!(*device.writes.lock().unwrap(), pages);
    // Parts of blocks 4 and 5: read, completed, written whole.
    volume.write(20_000, room(&volume, 20_000, &[6; 1000]), Reason::Synch, false).unwrap();
    let pages = [4, 5].map(|page| (Some(PageId(page)), Reason::Synch));
    assert_eq!(device.writes.lock().unwrap()[3..], pages);
    assert_eq!(volume.counts().partial_blocks, 2);
    let all = device.below.to_bytes();
    let expected = |at: usize| match at {
        4096..16_384 => 5,
        20_000..21_000 => 6,
        _ => 1,
    };
    assert!((0..all.len()).all(|at| all[at] == expected(at)));
    // Zeros of whole blocks are not pages.
    volume.write_zeros(4096, 8192, false, false).unwrap();
    assert_eq!(device.writes.lock().unwrap()[5..], [(None, Reason::None)]);
    volume.write_zeros(4096, 8192, true, false).unwrap();
    assert_eq!(device.writes.lock().unwrap().len(), 8);
}

#[test]
fn what_is_to_be_durable_is_synced_and_nothing_else() {
    let device = Watched::new(64 << 10);
    let volume = Volume::over(device.clone(), 4096, false);
    let write = |is_durable| {
        volume.write(5000, room(&volume, 5000, &[2; 100]), Reason::None, is_durable).unwrap();
        std::mem::take(&mut *device.syncs.lock().unwrap())
    };
    assert_eq!(write(false), []);
    assert_eq!(write(true), [4096..8192]);
    volume.flush().unwrap();
    volume.trim(0, 8192, true).unwrap();
    volume.write_zeros(4095, 2, false, true).unwrap();
    volume.sync_range(1, 4096).unwrap();
    let synced = device.syncs.lock().unwrap().clone();
    assert_eq!(synced, [0..64 << 10, 0..8192, 0..8192, 0..8192]);
}

#[test]
fn after_a_sync_that_failed_nothing_is_confirmed_any_more() {
    let device = Watched::new(64 << 10);
    let volume = Volume::over(device.clone(), 4096, false);
    device.is_failing.store(true, Ordering::Relaxed);
    assert!(matches!(volume.flush(), Err(VolumeError::SyncFailed(_))));
    device.is_failing.store(false, Ordering::Relaxed);
    for failed in [
        volume.flush(),
        volume.write(0, room(&volume, 0, &[1]), Reason::None, false),
        volume.write_zeros(0, 1, false, false),
        volume.trim(0, 4096, false),
        volume.close(),
    ] {
        assert!(matches!(failed, Err(VolumeError::SyncFailed(_))), "{failed:?}");
    }
    assert_eq!(volume.read(0, 10).unwrap()[..], [1; 10]);
}

#[test]
fn what_is_outside_the_volume_is_refused() {
    let volume = Volume::over(Watched::new(10_000), 4096, false);
    assert_eq!(volume.length(), 8192);
    for (offset, length) in [(8192, 1), (0, 8193), (u64::MAX, 1), (u64::MAX - 5, 100)] {
        let all = [
            volume.read(offset, length).map(|_| ()),
            volume.write(offset, volume.room(offset % 4096, length), Reason::None, false),
            volume.write_zeros(offset, length, false, false),
            volume.trim(offset, length, false),
            volume.prefetch(offset, length),
            volume.sync_range(offset, length),
            volume.allocation(offset, length, 10).map(|_| ()),
        ];
        for refused in all {
            assert!(matches!(refused, Err(VolumeError::PastEnd { .. })), "{refused:?}");
        }
    }
    let volume = Volume::over(Watched::new(8192), 4096, true);
    let refused = volume.write(0, room(&volume, 0, &[1]), Reason::None, false);
    assert_eq!(refused, Err(VolumeError::ReadOnly));
    assert_eq!(volume.trim(0, 4096, false), Err(VolumeError::ReadOnly));
}

/// Threads write blocks of one byte value each, whole and in parts that meet within blocks, and
/// others read them: a block never mixes values.
#[test]
fn requests_that_overlap_leave_no_block_torn() {
    const BLOCKS: u64 = 8;
    let device: Arc<dyn Device> = Arc::new(Tearing(MemoryDevice::from_bytes(&[0; 8 * 4096])));
    let volume = Volume::over(device, 4096, false);
    std::thread::scope(|scope| {
        for seed in 0..4u64 {
            let volume = &volume;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..300 {
                    let first = random.u64(..BLOCKS);
                    let count = random.u64(1..=BLOCKS - first);
                    let (offset, length) = (first * 4096, count * 4096);
                    if seed % 2 == 0 {
                        let bytes = vec![random.u8(..); length as usize];
                        let room = room(volume, offset, &bytes);
                        volume.write(offset, room, Reason::None, false).unwrap();
                    } else {
                        let found = volume.read(offset, length as u32).unwrap();
                        for block in found.chunks(4096) {
                            assert!(block.iter().all(|byte| *byte == block[0]), "torn");
                        }
                    }
                }
            });
        }
    });
}

/// A device that copies bytes in small pieces, and yields to other threads between them.
struct Tearing(MemoryDevice);

impl Device for Tearing {
    fn path(&self) -> &Path {
        self.0.path()
    }
    fn length(&self) -> u64 {
        self.0.length()
    }
    fn alignment(&self) -> Alignment {
        self.0.alignment()
    }
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        for (at, piece) in (0..).zip(bytes.chunks_mut(1024)) {
            self.0.read(offset + at * 1024, piece)?;
            std::thread::yield_now();
        }
        Ok(())
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        for (at, piece) in (0..).zip(bytes.chunks(1024)) {
            self.0.write(offset + at * 1024, piece)?;
            std::thread::yield_now();
        }
        Ok(())
    }
    fn sync(&self) -> Result<(), DeviceError> {
        self.0.sync()
    }
    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.0.grow(length)
    }
}

#[test]
fn the_device_alone_tears_so_that_the_test_above_can_fail() {
    let device = Tearing(MemoryDevice::from_bytes(&[0; 4096]));
    let is_torn = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for value in 0..100_000u32 {
                device.write(0, &[value as u8; 4096]).unwrap();
                if is_torn.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        for _ in 0..100_000 {
            let mut bytes = [0; 4096];
            let mut parts = [IoSliceMut::new(&mut bytes)];
            device.read_batch(&mut [ReadRequest::new(0, &mut parts)]);
            if bytes.iter().any(|byte| *byte != bytes[0]) {
                is_torn.store(true, Ordering::Relaxed);
                return;
            }
        }
    });
    assert!(is_torn.into_inner());
}

#[test]
fn parts_of_a_block_that_are_written_at_once_are_all_there() {
    let volume = Volume::over(Watched::new(64 << 10), 4096, false);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let volume = &volume;
            scope.spawn(move || {
                for at in (0..64 << 10).step_by(400).map(|at| at + thread * 100) {
                    let length = 100.min((64 << 10) - at).max(1);
                    if at + length <= 64 << 10 {
                        let bytes = vec![thread as u8 + 10; length as usize];
                        let room = room(volume, at, &bytes);
                        volume.write(at, room, Reason::None, false).unwrap();
                    }
                }
            });
        }
    });
    let all = volume.read(0, 64 << 10).unwrap();
    for (at, byte) in all.iter().enumerate() {
        assert_eq!(u64::from(*byte), at as u64 % 400 / 100 + 10, "at {at}");
    }
}

#[test]
fn what_cannot_be_opened_says_why() {
    let folder = folder(&[1; 10_000]);
    let good = spec(&folder, 1 << 20, 4096);
    let fails = |change: &dyn Fn(&mut millpond_server::volume::VolumeSpec)| {
        let mut spec = good.clone();
        change(&mut spec);
        let error = Volume::open(&spec).unwrap_err();
        (error.to_string(), error)
    };
    let missing = folder.path().join("missing");
    let (text, error) = fails(&|spec| spec.backing = missing.clone());
    assert!(matches!(error, OpenVolumeError::NoBacking { .. }), "{text}");
    assert!(text.contains("truncate -s SIZE"), "{text}");
    let (text, _) = fails(&|spec| spec.block = 1000);
    assert!(text.contains("power of two"), "{text}");
    let (text, _) = fails(&|spec| spec.block = 16 << 10);
    assert!(text.contains("less than one block"), "{text}");
    let cache_is_backing = |spec: &mut millpond_server::volume::VolumeSpec| {
        spec.cache.as_mut().unwrap().path = spec.backing.clone();
    };
    let (_, error) = fails(&cache_is_backing);
    assert!(matches!(error, OpenVolumeError::SameFile { .. }));
    let (text, _) = fails(&|spec| spec.cache.as_mut().unwrap().policy = "tqq".into());
    assert!(text.contains("did you mean 'tq'"), "{text}");
    let (_, error) = fails(&|spec| spec.cache.as_mut().unwrap().bytes = 100);
    assert!(matches!(error, OpenVolumeError::Cache(_)), "{error}");
    let letter = folder.path().join("letter");
    std::fs::write(&letter, "Dear Ada").unwrap();
    let (_, error) = fails(&|spec| spec.cache.as_mut().unwrap().path = letter.clone());
    assert!(matches!(error, OpenVolumeError::Cache(_)), "{error}");
    assert_eq!(std::fs::read(&letter).unwrap(), b"Dear Ada");
    let (_, error) = fails(&|spec| spec.backing = folder.path().into());
    assert!(matches!(error, OpenVolumeError::NotBacking { .. }), "{error}");
    let mut permissions = std::fs::metadata(&good.backing).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&good.backing, permissions.clone()).unwrap();
    if std::fs::File::options().write(true).open(&good.backing).is_err() {
        let (text, _) = fails(&|_| ());
        assert!(text.contains("--read-only"), "{text}");
    }
    #[allow(clippy::permissions_set_readonly_false, reason = "a file of this test's")]
    permissions.set_readonly(false);
    std::fs::set_permissions(&good.backing, permissions).unwrap();
    let open = Volume::open(&good).unwrap();
    assert_eq!(open.length(), 8192);
    let (text, error) = fails(&|_| ());
    assert!(matches!(error, OpenVolumeError::Backing(_)), "{text}");
    assert!(text.contains(&std::process::id().to_string()), "{text}");
}

fn runs(volume: &Volume, offset: u64, length: u32, most: usize) -> Vec<(u32, u32)> {
    let extents = volume.residency(offset, length, most).unwrap();
    extents.into_iter().map(|Extent { length, status }| (length, status)).collect()
}

/// Without a cache nothing is cached. With one, blocks read and written are, and the reply marks
/// those that the backing file does not have.
#[test]
fn it_is_told_which_blocks_the_cache_holds() {
    const BLOCK: u32 = 4096;
    const SIZE: u32 = 40 << 20;
    let folder = folder(&vec![1; SIZE as usize]);
    let bare = Volume::open(&spec(&folder, 0, BLOCK)).unwrap();
    assert_eq!(runs(&bare, 0, SIZE, 9), [(SIZE, 0)]);
    drop(bare);
    for write_back in [false, true] {
        let mut spec = spec(&folder, 8 << 20, BLOCK);
        // Admits every page.
        spec.cache.iter_mut().for_each(|cache| {
            (cache.policy, cache.write_back) = ("lru".to_string(), write_back);
        });
        let volume = Volume::open(&spec).unwrap();
        let dirty = if write_back { 3 } else { 1 };
        // The first blocks of a write-back volume are in the cache from the beginning.
        let begin = 1 << 20;
        let (place, rest) = (u64::from(begin), SIZE - begin);
        assert_eq!(runs(&volume, place, rest, 9), [(rest, 0)]);
        let at = |block: u32| u64::from(begin + block * BLOCK);
        volume.read(at(2), 3 * BLOCK).unwrap();
        volume.write(at(4), room(&volume, at(4), &[2; 8192]), Reason::None, false).unwrap();
        // Far away: beyond one lookup.
        volume.read(at(5000), BLOCK).unwrap();
        let near = [(2 * BLOCK, 0), (2 * BLOCK, 1), (2 * BLOCK, dirty)];
        let expected = match write_back {
            false => vec![(2 * BLOCK, 0), (4 * BLOCK, 1)],
            true => near.to_vec(),
        };
        let gap = (5000 - 6) * BLOCK;
        let behind = [(gap, 0), (BLOCK, 1), (rest - 5001 * BLOCK, 0)];
        assert_eq!(runs(&volume, place, rest, 9), [&expected[..], &behind].concat());
        assert_eq!(runs(&volume, place, rest, 2), expected[..2]);
        // Any offsets and lengths.
        assert_eq!(runs(&volume, at(2) - 1, 2, 9), [(1, 0), (1, 1)]);
        assert_eq!(runs(&volume, at(2) + 1, 1, 1), [(1, 1)]);
        assert!(volume.residency(place, SIZE, 1).is_err());
        // Blocks overwritten by zeros of no page are not cached any more.
        volume.trim(at(0), 4 * BLOCK, false).unwrap();
        assert_eq!(runs(&volume, place, 5 * BLOCK, 9), [(4 * BLOCK, 0), (BLOCK, dirty)]);
        volume.close().unwrap();
    }
}
