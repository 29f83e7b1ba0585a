//! In-flight loads of pages: one per page, however many threads need it (leanstore IV-D).
//!
//! An in-flight load begins when the first thread finds a page missing, and ends when the page can
//! be reached through its swip or the page table. In between it is *loading* (other threads that
//! need the page wait) or *ready*: loaded, but not attached, because it was prefetched, or because
//! its parent had changed or was latched when the load was complete. The next thread that needs a
//! ready page attaches it. With page cleaners, a victim is *standing by* in li's free list until a
//! thread needs the page or a frame. It is still in memory, and clean, but nothing refers to its
//! frame.
//!
//! # Invariants
//! 1. A page that is in memory and can be reached has no in-flight load, with two exceptions. One
//!    is the moment in which it is attached, when its parent is latched exclusively. The other is
//!    the round of eviction that makes it stand by.
//! 2. A load from storage begins only while the table's mutex is held and the page's swip is seen,
//!    validated, in its evicted form. Hence no page is in memory twice.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ptr::NonNull;

use millpond_base::sync::atomic::{AtomicU32, Ordering};
use millpond_base::sync::{Arc, Condvar, Mutex};
use millpond_base::{FrameId, PageId};
use millpond_policies::contract::GhostHit;

use crate::pool::frame::FrameHeader;
use crate::pool::sync::locked::locked;

/// A loaded page that cannot be reached yet.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Frame of the page, in state loading and latched exclusively.
    pub frame: NonNull<FrameHeader>,
    /// Ghost hit that the policy returned when the page missed.
    pub ghost_hit: GhostHit,
    /// `true` if the page was loaded ahead of its use.
    pub prefetched: bool,
}

// SAFETY: an address of a frame, which belongs to the thread that removes it from the table.
unsafe impl Send for Arrived {}

/// The completion of a load, for threads that wait for it.
#[derive(Default)]
pub struct Completion {
    done: Mutex<bool>,
    signal: Condvar,
}

impl Completion {
    /// Waits until the load is over, well or not.
    pub fn wait(&self) {
        let mut done = locked(&self.done);
        while !*done {
            done = match self.signal.wait(done) {
                Ok(done) => done,
                Err(poisoned) => poisoned.into_inner(),
            };
        }
    }

    fn complete(&self) {
        *locked(&self.done) = true;
        self.signal.notify_all();
    }
}

enum InFlightLoad {
    /// Being loaded, with a completion once a thread waits for it.
    Loading(Option<Arc<Completion>>),
    Ready(Arrived),
    /// In this frame, in state evicted; its entry in the list `free` has this number.
    StandsBy(FrameId, u64),
}

/// A page in memory that no swip refers to.
#[derive(Debug)]
pub enum Claimed {
    /// The page was loaded.
    Arrived(Arrived),
    /// The page was evicted into the free list; its frame is in state evicted.
    StandsBy(FrameId),
}

impl InFlightLoad {
    /// Wakes the threads that wait for this load.
    fn complete(self) {
        if let InFlightLoad::Loading(Some(completion)) = self {
            completion.complete();
        }
    }
}

/// Next step of a thread that misses a page.
pub enum Step {
    /// The page was not in flight: the thread loads it.
    LoadIt,
    /// Another thread loads it.
    Wait(Arc<Completion>),
    /// The page is there: the thread may attach it.
    Ready,
    /// The swip has changed.
    Changed,
}

/// Length up to which a list is not tidied up.
const SHORT: usize = 64;

/// Returns the frame of a page that has stood by since the entry with this number.
fn stands_by(loads: &HashMap<PageId, InFlightLoad>, page: PageId, number: u64) -> Option<FrameId> {
    match loads.get(&page) {
        Some(InFlightLoad::StandsBy(frame, own)) if *own == number => Some(*frame),
        _ => None,
    }
}

/// All in-flight loads of a pool.
#[derive(Default)]
pub struct InFlight {
    table: Mutex<Table>,
    /// Number of pages that stand by.
    standing_by: AtomicU32,
}

#[derive(Default)]
struct Table {
    loads: HashMap<PageId, InFlightLoad>,
    /// Ready pages in order of arrival; pages that were claimed may still be listed.
    ready: VecDeque<PageId>,
    /// Pages that stand by, the oldest first, with the numbers of their entries; pages that were
    /// claimed may still be listed.
    free: VecDeque<(PageId, u64)>,
    /// The number of the next entry.
    next: u64,
}

impl Table {
    /// Lists a ready page. Most pages are claimed without the list, which is tidied up here.
    fn list(&mut self, page: PageId) {
        debug_assert!(
            matches!(self.loads.get(&page), Some(InFlightLoad::Ready(_))),
            "{page:?} is listed when it is ready"
        );
        self.ready.push_back(page);
        if self.ready.len() > 2 * self.loads.len() + SHORT {
            let loads = &self.loads;
            let mut seen = HashSet::new();
            self.ready.retain(|page| {
                matches!(loads.get(page), Some(InFlightLoad::Ready(_))) && seen.insert(*page)
            });
        }
    }
}

impl InFlight {
    /// Returns the next step for the missing `page`; begins its load unless one is in flight.
    /// `is_missing` checks the swip again, under the table's mutex.
    pub fn ask(&self, page: PageId, is_missing: impl FnOnce() -> bool) -> Step {
        let mut table = locked(&self.table);
        match table.loads.get_mut(&page) {
            Some(InFlightLoad::Loading(completion)) => {
                return Step::Wait(completion.get_or_insert_default().clone());
            }
            Some(InFlightLoad::Ready(_) | InFlightLoad::StandsBy(..)) => return Step::Ready,
            None => {}
        }
        if !is_missing() {
            return Step::Changed;
        }
        table.loads.insert(page, InFlightLoad::Loading(None));
        Step::LoadIt
    }

    /// Records that the load of `page` is done: the page waits to be attached.
    pub fn arrive(&self, page: PageId, arrived: Arrived) {
        let mut table = locked(&self.table);
        let before = table.loads.insert(page, InFlightLoad::Ready(arrived));
        debug_assert!(matches!(before, Some(InFlightLoad::Loading(_))), "{page:?} was not loading");
        table.list(page);
        drop(table);
        before.into_iter().for_each(InFlightLoad::complete);
    }

    /// Ends the load of `page`, which failed or was attached by its loader: waiting threads look
    /// again.
    pub fn end(&self, page: PageId) {
        let before = locked(&self.table).loads.remove(&page);
        debug_assert!(matches!(before, Some(InFlightLoad::Loading(_))), "{page:?} was not loading");
        before.into_iter().for_each(InFlightLoad::complete);
    }

    /// Begins to let a page that is being evicted stand by. Threads that need it wait until
    /// [`InFlight::stand_by`], or until [`InFlight::end`] if it is not evicted after all. Returns
    /// `false` if its load is not over yet.
    pub fn begin_standing_by(&self, page: PageId) -> bool {
        let mut table = locked(&self.table);
        let is_vacant = !table.loads.contains_key(&page);
        if is_vacant {
            table.loads.insert(page, InFlightLoad::Loading(None));
        }
        is_vacant
    }

    /// Lets `page`, which was evicted, stand by in `frame`.
    pub fn stand_by(&self, page: PageId, frame: FrameId) {
        let mut table = locked(&self.table);
        let number = table.next;
        table.next += 1;
        let before = table.loads.insert(page, InFlightLoad::StandsBy(frame, number));
        debug_assert!(matches!(before, Some(InFlightLoad::Loading(_))), "{page:?} was announced");
        table.free.push_back((page, number));
        let standing_by = self.standing_by.fetch_add(1, Ordering::Relaxed) as usize + 1;
        if table.free.len() > 2 * standing_by + SHORT {
            let Table { loads, free, .. } = &mut *table;
            free.retain(|(page, number)| stands_by(loads, *page, *number).is_some());
        }
        drop(table);
        before.into_iter().for_each(InFlightLoad::complete);
    }

    /// Removes the page that has stood by longest, and returns its frame, which is needed.
    pub fn oldest_standing_by(&self) -> Option<FrameId> {
        if self.standing_by() == 0 {
            return None;
        }
        let mut table = locked(&self.table);
        while let Some((page, number)) = table.free.pop_front() {
            if let Some(frame) = stands_by(&table.loads, page, number) {
                table.loads.remove(&page);
                self.standing_by.fetch_sub(1, Ordering::Relaxed);
                return Some(frame);
            }
        }
        None
    }

    /// Returns the number of pages that stood by a moment ago.
    pub fn standing_by(&self) -> u32 {
        self.standing_by.load(Ordering::Relaxed)
    }

    /// Takes a ready page, to attach it. Its in-flight load lasts until [`InFlight::end`] or, if it
    /// could not be attached, [`InFlight::arrive`]: until then no thread loads it a second time.
    pub fn claim(&self, page: PageId) -> Option<Claimed> {
        let mut table = locked(&self.table);
        let load = table.loads.get_mut(&page)?;
        let claimed = match load {
            InFlightLoad::Loading(_) => return None,
            InFlightLoad::Ready(arrived) => Claimed::Arrived(*arrived),
            InFlightLoad::StandsBy(frame, _) => {
                self.standing_by.fetch_sub(1, Ordering::Relaxed);
                Claimed::StandsBy(*frame)
            }
        };
        *load = InFlightLoad::Loading(None);
        Some(claimed)
    }

    /// Takes the page that has been ready for longest, to drop it: no thread needed it.
    pub fn abandon(&self) -> Option<(PageId, Arrived)> {
        let mut table = locked(&self.table);
        while let Some(page) = table.ready.pop_front() {
            match table.loads.remove(&page) {
                Some(InFlightLoad::Ready(arrived)) => return Some((page, arrived)),
                Some(loading) => {
                    table.loads.insert(page, loading);
                }
                None => {}
            }
        }
        None
    }

    /// Returns whether `page` is in flight, or stands by.
    pub fn has(&self, page: PageId) -> bool {
        locked(&self.table).loads.contains_key(&page)
    }

    /// Returns the number of in-flight loads, ready ones included.
    pub fn len(&self) -> usize {
        let table = locked(&self.table);
        table.loads.len() - self.standing_by() as usize
    }

    /// Returns whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: PageId = PageId(9);

    fn arrived(frame: &FrameHeader) -> Arrived {
        Arrived { frame: NonNull::from(frame), ghost_hit: GhostHit::NONE, prefetched: false }
    }

    #[test]
    fn one_thread_loads_and_the_others_wait() {
        let loads = InFlight::default();
        assert!(matches!(loads.ask(PAGE, || true), Step::LoadIt));
        let Step::Wait(completion) = loads.ask(PAGE, || panic!("not asked")) else {
            panic!("the second must wait")
        };
        let waiter = std::thread::spawn(move || completion.wait());
        loads.end(PAGE);
        waiter.join().unwrap();
        assert!(matches!(loads.ask(PAGE, || false), Step::Changed));
        assert!(loads.is_empty());
    }

    #[test]
    fn pages_that_were_claimed_do_not_pile_up() {
        let (loads, frame) = (InFlight::default(), FrameHeader::default());
        for page in (0..10_000).map(PageId) {
            assert!(matches!(loads.ask(page, || true), Step::LoadIt));
            loads.arrive(page, arrived(&frame));
            assert!(loads.claim(page).is_some());
            loads.end(page);
        }
        assert!(locked(&loads.table).ready.len() < 100);
    }

    #[test]
    fn a_ready_page_belongs_to_one_claimant() {
        let loads = InFlight::default();
        let frame = FrameHeader::default();
        assert!(loads.claim(PAGE).is_none());
        assert!(matches!(loads.ask(PAGE, || true), Step::LoadIt));
        assert!(loads.claim(PAGE).is_none(), "still loading");
        loads.arrive(PAGE, arrived(&frame));
        assert!(matches!(loads.ask(PAGE, || true), Step::Ready));
        assert!(loads.claim(PAGE).is_some() && loads.claim(PAGE).is_none());
        assert!(matches!(loads.ask(PAGE, || true), Step::Wait(_)), "until it is attached");
        assert!(loads.abandon().is_none());
        loads.arrive(PAGE, arrived(&frame));
        assert_eq!(loads.abandon().map(|(page, _)| page), Some(PAGE));
        assert!(loads.is_empty());
    }
}
