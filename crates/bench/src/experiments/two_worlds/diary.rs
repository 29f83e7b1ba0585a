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
        /// Mark of the reference, with everything else known about it.
        mark: Mark,
        /// `true` if the page was in memory.
        hit: bool,
    },
    /// The policy was asked for victims.
    Asked {
        /// Number of pages wanted.
        wanted: u32,
        /// Page that needs the frame, if there is one.
        incoming: Option<PageId>,
    },
    /// The policy offered a frame, and the pool's outcome.
    Offered(FrameId, OfferOutcome),
    /// The policy asked to let a frame cool, and the pool's outcome.
    Cooled(FrameId, Cooled),
    /// The policy asked for the state of a frame's page, and the pool's result.
    Looked(FrameId, PageState),
    /// A page was loaded or created in a frame.
    Admitted(FrameId, PageId, Mark),
    /// A page was written and stays in memory.
    Cleaned(FrameId),
    /// A cooling page was referenced.
    Revived(FrameId),
    /// A page was dropped.
    Forgotten(FrameId),
}

/// A diary under construction.
#[derive(Clone, Debug, Default)]
pub struct Diary(Arc<Mutex<Vec<Event>>>);

thread_local! {
    static LATEST: RefCell<Option<Diary>> = const { RefCell::new(None) };
}

impl Diary {
    /// Starts a new diary, which [`Diary::latest`] returns to this thread from now on.
    pub(super) fn begin() -> Diary {
        let diary = Diary::default();
        LATEST.set(Some(diary.clone()));
        diary
    }

    /// Returns the diary of the policy that this thread created last. After opening a pool
    /// under a [`Spy`](super::spy::Spy), it is that pool's diary.
    pub fn latest() -> Option<Diary> {
        LATEST.with_borrow(Option::clone)
    }

    /// Adds a line.
    pub(super) fn note(&self, event: Event) {
        self.0.lock().past_poison().push(event);
    }

    /// Takes all lines so far.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock().past_poison())
    }
}
