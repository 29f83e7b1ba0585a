//! The calls of a live pool to its policy, and their results, in order.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};

use millpond_base::PastPoison;
use millpond_base::{FrameId, Mark, PageId};
use millpond_policies::contract::{Cooled, OfferOutcome, PageState};

/// One line of a diary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A page was referenced.
    Referenced {
        /// The page.
        page: PageId,
        /// Mark of the reference: everything else that is known of it.
        mark: Mark,
        /// `true` if the page was in memory.
        hit: bool,
    },
    /// The policy was asked for victims.
    Asked {
        /// Number of pages wanted.
        wanted: u32,
        /// For which page.
        incoming: Option<PageId>,
    },
    /// The policy offered a frame, and the pool's outcome.
    Offered(FrameId, OfferOutcome),
    /// The policy asked to let a frame cool, and the pool's outcome.
    Cooled(FrameId, Cooled),
    /// The policy asked whether a frame is dirty, and the pool's result.
    Looked(FrameId, PageState),
    /// A page was loaded, or made, in a frame.
    Admitted(FrameId, PageId, Mark),
    /// A page was written and stays.
    Cleaned(FrameId),
    /// A cooling page was referenced.
    Revived(FrameId),
    /// A page was dropped.
    Forgotten(FrameId),
}

/// A diary that is being written.
#[derive(Clone, Debug, Default)]
pub struct Diary(Arc<Mutex<Vec<Event>>>);

thread_local! {
    static LATEST: RefCell<Option<Diary>> = const { RefCell::new(None) };
}

impl Diary {
    /// A new one, which [`Diary::latest`] gives to this thread from now on.
    pub(super) fn begin() -> Diary {
        let diary = Diary::default();
        LATEST.set(Some(diary.clone()));
        diary
    }

    /// The diary of the policy that this thread created last: after opening a pool under a
    /// [`Spy`](super::spy::Spy) it is that pool's.
    pub fn latest() -> Option<Diary> {
        LATEST.with_borrow(Option::clone)
    }

    /// Adds a line.
    pub(super) fn note(&self, event: Event) {
        self.0.lock().past_poison().push(event);
    }

    /// All lines so far; none remain.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock().past_poison())
    }
}
