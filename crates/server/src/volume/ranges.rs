//! Locks of block ranges that are being read and written.
//!
//! A device requires its caller to keep reads and writes of one byte apart, and clients of a server
//! may ask for them at the same time. A request waits for earlier requests that it overlaps, if one
//! of the two writes. So a block has the content of one write, never a mixture. Requests wait only
//! for earlier ones, and hold nothing while they wait; reads that are done together take only
//! ranges that need no wait. So there is no deadlock, and no request waits forever.

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard};

use millpond_base::PastPoison;

/// Ranges of blocks in use.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    held: Mutex<Held>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    waiting: u32,
    all: Vec<Use>,
}

#[derive(Debug)]
struct Use {
    ticket: u64,
    blocks: Range<u64>,
    is_write: bool,
}

impl Use {
    fn excludes(&self, other: &Use) -> bool {
        (self.is_write || other.is_write)
            && self.blocks.start < other.blocks.end
            && other.blocks.start < self.blocks.end
    }
}

/// A range in use until this is dropped.
#[derive(Debug)]
pub(super) struct InUse<'r> {
    ranges: &'r Ranges,
    ticket: u64,
}

impl Ranges {
    fn held(&self) -> MutexGuard<'_, Held> {
        // Nothing below can panic between two steps.
        self.held.lock().past_poison()
    }

    /// Takes blocks to read, once nobody writes them.
    pub fn to_read(&self, blocks: Range<u64>) -> InUse<'_> {
        self.enter(blocks, false)
    }

    /// Takes blocks to read, unless another request writes them, or waits to.
    pub fn try_to_read(&self, blocks: Range<u64>) -> Option<InUse<'_>> {
        let mut held = self.held();
        let mine = Use { ticket: held.next, blocks, is_write: false };
        if held.all.iter().any(|other| other.excludes(&mine)) {
            return None;
        }
        let ticket = mine.ticket;
        held.next += 1;
        held.all.push(mine);
        Some(InUse { ranges: self, ticket })
    }

    /// Takes blocks to write, once nobody else uses them.
    pub fn to_write(&self, blocks: Range<u64>) -> InUse<'_> {
        self.enter(blocks, true)
    }

    fn enter(&self, blocks: Range<u64>, is_write: bool) -> InUse<'_> {
        let mut held = self.held();
        let ticket = held.next;
        held.next += 1;
        let mine = Use { ticket, blocks, is_write };
        let is_before = |held: &Held, mine: &Use| {
            held.all.iter().any(|other| other.ticket < ticket && other.excludes(mine))
        };
        held.all.push(Use { blocks: mine.blocks.clone(), ..mine });
        while is_before(&held, &mine) {
            held.waiting += 1;
            held = self.changed.wait(held).past_poison();
            held.waiting -= 1;
        }
        InUse { ranges: self, ticket }
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let mut held = self.ranges.held();
        if let Some(at) = held.all.iter().position(|held| held.ticket == self.ticket) {
            held.all.swap_remove(at);
        }
        if held.waiting > 0 {
            self.ranges.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

    use super::*;

    #[test]
    fn readers_share_and_writers_are_alone() {
        let ranges = Ranges::default();
        let reading = ranges.to_read(0..10);
        let _also_reading = ranges.to_read(5..15);
        let _elsewhere = ranges.to_write(15..20);
        let entered = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _writing = ranges.to_write(0..5);
                entered.store(1, Ordering::SeqCst);
            });
            while ranges.held().waiting == 0 {
                std::thread::yield_now();
            }
            assert_eq!(entered.load(Ordering::SeqCst), 0);
            drop(reading);
        });
        assert_eq!(entered.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_reader_does_not_overtake_a_writer_that_waits() {
        let ranges = Ranges::default();
        let reading = ranges.to_read(0..1);
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _writing = ranges.to_write(0..1);
                order.lock().unwrap().push("writer");
            });
            while ranges.held().waiting < 1 {
                std::thread::yield_now();
            }
            scope.spawn(|| {
                let _reading = ranges.to_read(0..1);
                order.lock().unwrap().push("reader");
            });
            while ranges.held().waiting < 2 {
                std::thread::yield_now();
            }
            drop(reading);
        });
        assert_eq!(order.into_inner().unwrap(), ["writer", "reader"]);
    }

    #[test]
    fn many_threads_never_meet_where_one_writes() {
        let ranges = Ranges::default();
        // Per block: readers, or -1.
        let blocks: Vec<AtomicI32> = (0..16).map(|_| AtomicI32::new(0)).collect();
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let (ranges, blocks) = (&ranges, &blocks);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(seed);
                    for _ in 0..2000 {
                        let from = random.u64(0..16);
                        let range = from..random.u64(from + 1..=16);
                        let all = &blocks[range.start as usize..range.end as usize];
                        if random.bool() {
                            let _writing = ranges.to_write(range);
                            all.iter().for_each(|b| assert_eq!(b.swap(-1, Ordering::SeqCst), 0));
                            all.iter().for_each(|b| b.store(0, Ordering::SeqCst));
                        } else {
                            let _reading = ranges.to_read(range);
                            let before = |b: &AtomicI32| b.fetch_add(1, Ordering::SeqCst);
                            all.iter().for_each(|b| assert!(before(b) >= 0));
                            all.iter().for_each(|b| _ = b.fetch_sub(1, Ordering::SeqCst));
                        }
                    }
                });
            }
        });
        assert!(ranges.held().all.is_empty());
    }
}
