//! A second tier that writes back, and its destaging thread, under schedules that shuttle draws.
//! Threads write pages of their own into a cache that has room for few of them, read them, and
//! sync. The destaging thread writes evicted pages to storage in the meantime.
//!
//! The oracle: a thread reads what it wrote last; what it synced is there, on both devices
//! together, whenever the power fails; when the tier is given up, storage has all of it. The thread
//! that has something to do does it, and ends when it is to.

use std::io::{IoSlice, IoSliceMut};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_base::{PageId, Reason};
use millpond_policies::chosen::ChosenPolicy;
use millpond_policies::info::Tier;
use millpond_tier::{BackTier, TierOptions};

use crate::schedules::{check, seed};
use millpond_device::{
    Alignment, Device, DeviceError, FaultyDevice, MemoryDevice, ReadRequest, Tag, WriteRequest,
};

/// Schedules of each model.
const SCHEDULES: usize = 150;
const THREADS: u64 = 2;
/// Pages of a thread.
const EACH: u64 = 8;
const PAGE: u64 = 512;
const LENGTH: usize = ((1 + THREADS * EACH) * PAGE) as usize;
/// Steps of a thread.
const STEPS: usize = 10;
/// Slots of the cache: four of them are spare, and one is the first sector's.
const SLOTS: u64 = 12;

/// A device that lets other threads go on while it is at work.
struct Slow(Arc<FaultyDevice>);

impl Slow {
    fn at_work<T>(&self, work: impl FnOnce(&FaultyDevice) -> T) -> T {
        shuttle::thread::yield_now();
        let done = work(&self.0);
        shuttle::thread::yield_now();
        done
    }
}

impl Device for Slow {
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
        self.at_work(|device| device.read(offset, bytes))
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.at_work(|device| device.write(offset, bytes))
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_, '_>]) {
        self.at_work(|device| device.read_batch(requests));
    }

    fn write_batch(&self, requests: &mut [WriteRequest<'_, '_>]) {
        self.at_work(|device| device.write_batch(requests));
    }

    fn sync(&self) -> Result<(), DeviceError> {
        self.at_work(|device| device.sync())
    }

    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.at_work(|device| device.grow(length))
    }

    fn append(&self, bytes: &[u8]) -> Result<(), DeviceError> {
        self.at_work(|device| device.append(bytes))
    }

    fn shrink(&self, length: u64) -> Result<(), DeviceError> {
        self.at_work(|device| device.shrink(length))
    }

    fn discard(&self, ranges: &[Range<u64>]) {
        self.0.discard(ranges);
    }
}

/// The two devices, and the tier that makes one of them.
#[derive(Clone)]
struct World {
    below: Arc<FaultyDevice>,
    fast: Arc<FaultyDevice>,
    tier: Arc<BackTier>,
}

fn open(below: Arc<dyn Device>, fast: Arc<dyn Device>) -> BackTier {
    let bytes = 16_384 + 65_536 + SLOTS * (PAGE + 96);
    let (page_bytes, unit) = (PAGE as u32, PAGE as u32);
    let options = TierOptions { bytes, page_bytes, unit, seed: 7, writes_back: true };
    let policy = ChosenPolicy::parse("lru-io", Tier::Second).unwrap();
    BackTier::open(below, fast, &options, |shape| policy.erased_host(shape)).unwrap()
}

impl World {
    fn new() -> World {
        let below = MemoryDevice::from_bytes(&[0; LENGTH]);
        let below = Arc::new(FaultyDevice::with_crashes(below, 1));
        let fast = Arc::new(FaultyDevice::with_crashes(MemoryDevice::new(), 2));
        let slow = |device: &Arc<FaultyDevice>| Arc::new(Slow(device.clone()));
        let tier = open(slow(&below), slow(&fast)).destaging_ahead();
        World { below, fast, tier: Arc::new(tier) }
    }

    /// Returns the tier as a power failure at this moment would leave it.
    fn after_crash(&self) -> BackTier {
        // No other thread runs between the two.
        let (below, fast) = (self.below.crash(seed()).unwrap(), self.fast.crash(seed()).unwrap());
        open(Arc::new(below), Arc::new(fast))
    }
}

/// Returns the bytes of version `version` of `page`; version 0 is all zeros.
fn content(page: u64, version: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE as usize];
    if version > 0 {
        bytes[..8].copy_from_slice(&page.to_le_bytes());
        bytes[8..16].copy_from_slice(&version.to_le_bytes());
    }
    bytes
}

fn read(tier: &BackTier, page: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE as usize];
    let tags = [Tag::read(PageId(page))];
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let mut requests = [ReadRequest::new(page * PAGE, &mut parts).tagged(&tags)];
    tier.read_batch(&mut requests);
    let [request] = requests;
    request.result.unwrap();
    bytes
}

fn write(tier: &BackTier, page: u64, bytes: &[u8]) {
    let tags = [Tag { page: PageId(page), reason: Reason::Replace }];
    let parts = [IoSlice::new(bytes)];
    let mut requests = [WriteRequest::new(page * PAGE, &parts).tagged(&tags)];
    tier.write_batch(&mut requests);
    let [request] = requests;
    request.result.unwrap();
}

/// A thread's pages, and how often it wrote each.
struct Own {
    thread: u64,
    versions: [u64; EACH as usize],
    random: fastrand::Rng,
}

impl Own {
    fn new(thread: u64, seed: u64) -> Own {
        let random = fastrand::Rng::with_seed(seed ^ thread);
        Own { thread, versions: [0; EACH as usize], random }
    }

    fn page(&self, at: usize) -> u64 {
        1 + self.thread + THREADS * at as u64
    }

    fn assert_in(&self, tier: &BackTier, at: usize, when: &str) {
        let (page, version) = (self.page(at), self.versions[at]);
        assert!(read(tier, page) == content(page, version), "{when}: page {page}, not {version}");
    }

    fn assert_all_in(&self, tier: &BackTier, when: &str) {
        (0..EACH as usize).for_each(|at| self.assert_in(tier, at, when));
    }

    /// Writes a page, as a page or, if `as_bytes`, to storage.
    fn write(&mut self, tier: &BackTier, as_bytes: bool) {
        let at = self.random.usize(..EACH as usize);
        self.versions[at] += 1;
        let (page, bytes) = (self.page(at), content(self.page(at), self.versions[at]));
        if as_bytes {
            tier.write(page * PAGE, &bytes).unwrap();
        } else {
            write(tier, page, &bytes);
        }
    }

    fn step(&mut self, world: &World) {
        match self.random.u8(..16) {
            0..9 => self.write(&world.tier, false),
            9..11 => self.write(&world.tier, true),
            11..14 => {
                let at = self.random.usize(..EACH as usize);
                self.assert_in(&world.tier, at, "now");
            }
            _ => {
                world.tier.sync().unwrap();
                self.assert_all_in(&world.after_crash(), "after a crash");
            }
        }
    }
}

/// Has `work` done by threads with pages of their own.
fn in_threads(world: &World, work: impl Fn(&mut Own, &World) + Send + Sync + 'static) -> Vec<Own> {
    let (work, seed) = (Arc::new(work), seed());
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (world, work) = (world.clone(), work.clone());
            shuttle::thread::spawn(move || {
                let mut own = Own::new(thread, seed);
                work(&mut own, &world);
                own
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// Pages that were destaged in all schedules: a model in which nothing happens proves nothing.
static DESTAGED: AtomicU64 = AtomicU64::new(0);

fn everything_is_there() {
    let world = World::new();
    let owns = in_threads(&world, |own, world| (0..STEPS).for_each(|_| own.step(world)));
    world.tier.check().unwrap();
    owns.iter().for_each(|own| own.assert_all_in(&world.tier, "in the end"));
    world.tier.sync().unwrap();
    let crashed = world.after_crash();
    owns.iter().for_each(|own| own.assert_all_in(&crashed, "after a crash in the end"));
    DESTAGED.fetch_add(world.tier.counts().destaged, Ordering::Relaxed);
    world.tier.give_up().unwrap();
    let mut bytes = vec![0; LENGTH];
    world.below.read(0, &mut bytes).unwrap();
    for own in &owns {
        for at in 0..EACH as usize {
            let (page, begin) = (own.page(at), (own.page(at) * PAGE) as usize);
            let there = &bytes[begin..begin + PAGE as usize];
            assert!(there == content(page, own.versions[at]), "storage does not have page {page}");
        }
    }
}

#[test]
fn what_was_written_and_synced_beside_the_thread_that_destages_is_there() {
    check(SCHEDULES, everything_is_there);
    // Many schedules end before anything has to be.
    let destaged = DESTAGED.load(Ordering::Relaxed);
    assert!(destaged > SCHEDULES as u64 / 50, "{destaged} pages");
}

fn the_thread_does_what_there_is_to_do() {
    let world = World::new();
    // A ring that is lost shows if it is the last one, so that any may be.
    let writes = 1 + seed() % (2 * STEPS as u64);
    in_threads(&world, move |own, world| {
        (0..writes).for_each(|_| own.write(&world.tier, false));
    });
    // Nobody writes any more, so that it must have been woken.
    while world.tier.has_work_ahead() {
        shuttle::thread::yield_now();
    }
    // It sleeps, or is about to, or is at work still.
    if seed().is_multiple_of(2) {
        world.tier.release();
    } else {
        world.tier.give_up().unwrap();
    }
}

#[test]
fn the_thread_sleeps_through_no_ring_and_ends_when_it_is_to() {
    check(20 * SCHEDULES, the_thread_does_what_there_is_to_do);
}
