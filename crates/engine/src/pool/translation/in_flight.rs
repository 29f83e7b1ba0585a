//! In-flight loads of pages: one per page, however many threads need it (leanstore IV-D).
//!
//! An in-flight load begins when the first thread finds a page missing, and ends when the page can
//! be reached through its swip or the page table. In between it is *loading* (other threads that
//! need the page wait) or *ready*: loaded, but not attached, because it was prefetched, or because
//! its parent had changed when the load was complete. The next thread that needs a ready page
//! attaches it.
//!
//! # Invariants
//! 1. A page that is in memory and can be reached has no in-flight load, but for the moment in
//!    which it is attached, when its parent is latched exclusively.
//! 2. An in-flight load begins only while the table's mutex is held and the page's swip is seen,
//!    validated, in its evicted form. Hence no page is in memory twice.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ptr::NonNull;

use millpond_base::PageId;
use millpond_base::sync::{Arc, Condvar, Mutex};
use millpond_policies::contract::GhostHit;

use crate::pool::frame::FrameHeader;
use crate::pool::sync::locked::locked;

/// A loaded page that cannot be reached yet.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// Its frame, in state loading and latched exclusively.
    pub frame: NonNull<FrameHeader>,
    /// The policy's ghost hit, from when the page missed.
    pub ghost_hit: GhostHit,
    /// It was loaded ahead of its use.
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
    /// With its completion, once a thread waits for that.
    Loading(Option<Arc<Completion>>),
    Ready(Arrived),
}

impl InFlightLoad {
    /// Wakes those who wait for the load that this was.
    fn complete(self) {
        if let InFlightLoad::Loading(Some(completion)) = self {
            completion.complete();
        }
    }
}

/// What a thread that misses a page has to do.
pub enum Step {
    /// It was not in flight: the thread loads it.
    LoadIt,
    /// Another thread loads it.
    Wait(Arc<Completion>),
    /// It is there: the thread may attach it.
    Ready,
    /// The swip is no longer what it was.
    Changed,
}

/// All in-flight loads of a pool.
#[derive(Default)]
pub struct InFlight {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    loads: HashMap<PageId, InFlightLoad>,
    /// In order of arrival; pages that were claimed may still be listed.
    ready: VecDeque<PageId>,
}

impl Table {
    /// Lists a ready page. Most pages are claimed without the list, which is tidied up here.
    fn list(&mut self, page: PageId) {
        const SHORT: usize = 64;
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
    /// Returns what to do about the missing `page`, and begins an in-flight load if there is none.
    /// `is_missing` checks the swip again, under the table's mutex.
    pub fn ask(&self, page: PageId, is_missing: impl FnOnce() -> bool) -> Step {
        let mut table = locked(&self.table);
        match table.loads.get_mut(&page) {
            Some(InFlightLoad::Loading(completion)) => {
                return Step::Wait(completion.get_or_insert_default().clone());
            }
            Some(InFlightLoad::Ready(_)) => return Step::Ready,
            None => {}
        }
        if !is_missing() {
            return Step::Changed;
        }
        table.loads.insert(page, InFlightLoad::Loading(None));
        Step::LoadIt
    }

    /// The load of `page` is done: it waits to be attached.
    pub fn arrive(&self, page: PageId, arrived: Arrived) {
        let mut table = locked(&self.table);
        let before = table.loads.insert(page, InFlightLoad::Ready(arrived));
        debug_assert!(matches!(before, Some(InFlightLoad::Loading(_))), "{page:?} was not loading");
        table.list(page);
        drop(table);
        before.into_iter().for_each(InFlightLoad::complete);
    }

    /// The load of `page` failed, or it was attached by its loader: those who wait look again.
    pub fn end(&self, page: PageId) {
        let before = locked(&self.table).loads.remove(&page);
        debug_assert!(matches!(before, Some(InFlightLoad::Loading(_))), "{page:?} was not loading");
        before.into_iter().for_each(InFlightLoad::complete);
    }

    /// Takes a ready page, to attach it. Its in-flight load lasts until [`InFlight::end`] or, if it
    /// could not be attached, [`InFlight::arrive`]: no thread loads it a second time meanwhile.
    pub fn claim(&self, page: PageId) -> Option<Arrived> {
        let mut table = locked(&self.table);
        let load = table.loads.get_mut(&page)?;
        let InFlightLoad::Ready(arrived) = load else { return None };
        let arrived = *arrived;
        *load = InFlightLoad::Loading(None);
        Some(arrived)
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

    /// Returns the number of in-flight loads, ready ones included.
    pub fn len(&self) -> usize {
        locked(&self.table).loads.len()
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
