//! Pages that a checkpoint takes for clean, under schedules that shuttle draws. The model has one
//! page, a writer that writes it back, and a thread that changes it. Its checkpoints name the bound
//! from which a recovery reads the log. Where pages are written out of place, there are no images:
//! storage must have everything up to that bound, and the end of a write may move it.
//!
//! The oracle is a recovery at any moment. It starts from nothing and reads the log from the last
//! checkpoint's bound on. It must restore the page as it was, or find it on storage as it was at
//! the last sync before that checkpoint. Each of these mistakes, built in, made it fail:
//! - *dirty* and *being written* are looked at one after the other, by the checkpoint or by the
//!   evictor;
//! - a page gets dirty after a look at whether it is being written;
//! - the bound is taken after the sync.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::schedules::{check, seed};
use millpond::Placement;
use millpond::internals::pool::FrameHeader;
use millpond_base::{FrameId, Lsn};
use shuttle::sync::Mutex;

/// Schedules of each model: most races want four steps of three threads in one order.
const SCHEDULES: usize = 5000;
const CHANGES: u64 = 6;
const WRITES: u64 = 5;
/// A write lets others go first less often than this.
const DEVICE_STEPS: u64 = 6;
const CHECKPOINTS: u64 = 5;

/// A record of the log: whether it holds the whole page, else only what changed.
#[derive(Clone, Copy)]
struct Record {
    is_image: bool,
    /// The page's version after it.
    version: u64,
}

/// One page in memory, its log, and its storage. The log is durable as soon as it is appended to.
struct World {
    placement: Placement,
    frame: FrameHeader,
    /// Number of changes so far; changes under the exclusive latch.
    version: Mutex<u64>,
    log: Mutex<Vec<Record>>,
    /// The version that storage was given last, and the one that is there after a crash.
    written: Mutex<u64>,
    synced: Mutex<u64>,
}

impl World {
    fn new(placement: Placement) -> World {
        World {
            placement,
            frame: FrameHeader::new(FrameId(0)),
            version: Mutex::new(0),
            log: Mutex::new(Vec::new()),
            written: Mutex::new(0),
            synced: Mutex::new(0),
        }
    }

    fn tail(&self) -> usize {
        self.log.lock().unwrap().len()
    }

    fn change(&self) {
        while !self.frame.latch.exclusive() {
            shuttle::thread::yield_now();
        }
        let was_clean = self.frame.begin_logged_change(|| Lsn(self.tail() as u64));
        let is_image = was_clean && self.placement == Placement::InPlace;
        let version = {
            let mut version = self.version.lock().unwrap();
            *version += 1;
            *version
        };
        self.log.lock().unwrap().push(Record { is_image, version });
        self.frame.latch.release_exclusive();
    }

    /// Writes the page if it is dirty; `fails`: the device says no, and nothing lands.
    fn write(&self, fails: bool) {
        if !self.frame.latch.try_shared() {
            return;
        }
        let copy = self.frame.begin_write().then(|| *self.version.lock().unwrap());
        self.frame.latch.release_shared();
        let Some(copy) = copy else { return };
        // A device may take long beside all else.
        for _ in 0..seed() % DEVICE_STEPS {
            shuttle::thread::yield_now();
        }
        if !fails {
            *self.written.lock().unwrap() = copy;
        }
        if self.placement == Placement::OutOfPlace && !fails {
            // The n-th record makes the n-th version.
            self.frame.end_write_up_to(Lsn(copy));
        } else {
            self.frame.end_write(!fails);
        }
    }

    /// Takes a checkpoint and returns the bound from which a recovery then reads.
    fn checkpoint(&self) -> usize {
        let mut bound = self.tail();
        if self.frame.is_dirty_or_writing() {
            bound = bound.min(self.frame.rec_lsn().0 as usize);
        }
        let written = *self.written.lock().unwrap();
        *self.synced.lock().unwrap() = written;
        bound
    }

    /// Returns the page's version after a recovery from `bound` over the first `end` records.
    fn recovered(&self, bound: usize, end: usize) -> Result<u64, String> {
        let log = self.log.lock().unwrap();
        let synced = *self.synced.lock().unwrap();
        if self.placement == Placement::OutOfPlace {
            return match synced {
                _ if synced < bound as u64 => Err(format!("version {synced}, bound {bound}")),
                _ => Ok(log.iter().take(end).last().map_or(synced, |last| last.version)),
            };
        }
        let mut page = None;
        for record in log.iter().take(end).skip(bound) {
            match page {
                None if !record.is_image => return Err(format!("no image at {bound}")),
                _ => page = Some(record.version),
            }
        }
        Ok(page.unwrap_or(synced))
    }

    /// The power fails, and a recovery begins at `bound`: it reaches the last change in the log.
    fn fail(&self, bound: usize) {
        let end = self.tail();
        let recovered = self.recovered(bound, end).unwrap_or_else(|why| panic!("{why}"));
        let last = end.checked_sub(1).map_or(0, |at| self.log.lock().unwrap()[at].version);
        assert!(recovered >= last, "version {recovered}, committed {last}, from {bound}");
    }
}

#[derive(Default)]
struct Seen {
    images: AtomicU64,
    others: AtomicU64,
    bounds_below: AtomicU64,
}

fn story(seen: &Seen, writes_fail: bool, placement: Placement) {
    let world = Arc::new(World::new(placement));
    let changer = {
        let world = world.clone();
        shuttle::thread::spawn(move || (0..CHANGES).for_each(|_| world.change()))
    };
    let writer = {
        let world = world.clone();
        shuttle::thread::spawn(move || {
            (0..WRITES).for_each(|n| world.write(writes_fail && n % 2 == 0));
        })
    };
    let mut bound = 0;
    for _ in 0..CHECKPOINTS {
        // The power fails here, and the newest checkpoint is the one before.
        world.fail(bound);
        bound = world.checkpoint();
        if bound < world.tail() {
            seen.bounds_below.fetch_add(1, Ordering::Relaxed);
        }
        world.fail(bound);
        shuttle::thread::yield_now();
    }
    changer.join().unwrap();
    writer.join().unwrap();
    world.fail(bound);
    for record in world.log.lock().unwrap().iter() {
        let counter = if record.is_image { &seen.images } else { &seen.others };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

fn run(count: usize, writes_fail: bool, placement: Placement) {
    let seen: &'static Seen = Box::leak(Box::default());
    check(count, move || story(seen, writes_fail, placement));
    let counted =
        [&seen.others, &seen.bounds_below, &seen.images].map(|c| c.load(Ordering::Relaxed));
    let least = if placement == Placement::InPlace { &counted[..] } else { &counted[..2] };
    assert!(least.iter().all(|count| *count > 1000), "{counted:?}");
}

#[test]
fn a_change_without_an_image_is_never_before_the_bound_of_a_checkpoint() {
    run(SCHEDULES, false, Placement::InPlace);
}

#[test]
fn out_of_place_storage_has_each_page_up_to_the_bound_of_a_checkpoint() {
    run(SCHEDULES, false, Placement::OutOfPlace);
    run(SCHEDULES, true, Placement::OutOfPlace);
}

#[test]
fn a_write_that_fails_leaves_the_page_dirty_from_its_old_reclsn_on() {
    run(SCHEDULES, true, Placement::InPlace);
}

/// The evictor looks under the exclusive latch; the end of a write takes none.
#[test]
fn a_page_whose_write_fails_is_never_taken_for_clean() {
    check(SCHEDULES, || {
        let frame = Arc::new(FrameHeader::new(FrameId(0)));
        assert!(frame.latch.try_exclusive());
        frame.begin_logged_change(|| Lsn(1));
        assert!(frame.begin_write());
        let writer = {
            let frame = frame.clone();
            shuttle::thread::spawn(move || frame.end_write(false))
        };
        assert!(frame.is_dirty_or_writing(), "what is on storage is not the page");
        writer.join().unwrap();
        assert!(frame.is_dirty() && !frame.is_writing());
    });
}
