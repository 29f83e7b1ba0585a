//! Page ids that were allocated in storage ahead of need.
//!
//! A mini-transaction creates pages while it holds latches, so it must not wait for storage: ids
//! are allocated between mini-transactions ([`PageIds::refill`]), and taken from memory under
//! latches ([`PageIds::take`]). The ids of deleted pages come back here, and are reused first.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use millpond_base::PageId;
use millpond_base::sync::Mutex;

use crate::pool::error::PoolError;
use crate::pool::reserved::Reserved;
use crate::pool::storage::Storage;
use crate::pool::sync::locked::locked;

/// No ceiling: each id is kept for the next new page.
const NO_CEILING: u64 = u64::MAX;

/// The page ids that a pool has allocated ahead of need.
pub struct PageIds {
    /// Allocates ids and frees them. Called without the lock of `ahead`, except to take an id
    /// below a bound, which does no I/O.
    storage: Arc<dyn Storage>,
    /// Allocated ids that no page has, each at most once. They are taken from the end, so the
    /// lowest of a refill is last. Mini-transactions lock it under latches: never held during I/O.
    ahead: Mutex<Vec<PageId>>,
    /// Allocated ids of the reserve that storage keeps for undo on a full disk. Locked like
    /// `ahead`, and after it.
    for_undo: Mutex<Vec<PageId>>,
    /// Ids from here on go back to storage instead of being kept: while a store shrinks, its pages
    /// must be below. [`NO_CEILING`] at all other times.
    ceiling: AtomicU64,
    /// Held by the one thread that allocates ids in storage, which may do I/O. Locked before
    /// `ahead`, never under it, and never under a latch.
    refilling: Mutex<()>,
}

impl PageIds {
    /// Returns a list without any id yet.
    pub(crate) fn new(storage: Arc<dyn Storage>) -> PageIds {
        PageIds {
            storage,
            ahead: Mutex::default(),
            for_undo: Mutex::default(),
            ceiling: AtomicU64::new(NO_CEILING),
            refilling: Mutex::default(),
        }
    }

    /// Takes an id for a new page, or returns `None` if that would need I/O.
    pub(crate) fn take(&self) -> Option<PageId> {
        let id = locked(&self.ahead).pop();
        if id.is_none() && Reserved::is_in_use() { locked(&self.for_undo).pop() } else { id }
    }

    /// Takes the least id below `bound` that is free, without I/O.
    pub(crate) fn take_below(&self, bound: PageId) -> Option<PageId> {
        let mut ids = locked(&self.ahead);
        let least = ids.iter().enumerate().min_by_key(|(_, id)| **id);
        let taken = match least.map(|(at, id)| (at, *id)).filter(|(_, id)| *id < bound) {
            Some((at, _)) => Some(ids.swap_remove(at)),
            None => self.storage.allocate_below(bound),
        };
        debug_assert!(taken.is_none_or(|id| id < bound), "{taken:?} is not below {bound:?}");
        taken
    }

    /// Puts back an id that [`PageIds::take`] returned and no page got.
    pub(crate) fn untake(&self, id: PageId) {
        let mut ids = locked(&self.ahead);
        debug_assert!(!ids.contains(&id), "{id:?} is free already");
        ids.push(id);
    }

    /// Keeps the id of a deleted page for the next new page; a surplus goes back to storage.
    pub(crate) fn give(&self, id: PageId) {
        const KEPT: usize = 256;
        if id.0 >= self.ceiling.load(Ordering::Relaxed) {
            return self.free(id);
        }
        let mut ids = locked(&self.ahead);
        debug_assert!(!ids.contains(&id), "{id:?} is free already");
        ids.push(id);
        if ids.len() > 2 * KEPT {
            let surplus: Vec<PageId> = ids.drain(..KEPT).collect();
            drop(ids);
            surplus.into_iter().for_each(|id| self.free(id));
        }
    }

    fn free(&self, id: PageId) {
        if let Err(error) = self.storage.free(id) {
            tracing::warn!(%error, "a page could not be given back");
        }
    }

    /// Keeps only ids below `bound` for new pages from now on, or any id if it is `None`.
    pub(crate) fn set_ceiling(&self, bound: Option<PageId>) {
        self.ceiling.store(bound.map_or(NO_CEILING, |bound| bound.0), Ordering::Relaxed);
    }

    /// Returns whether there is a ceiling.
    pub(crate) fn has_ceiling(&self) -> bool {
        self.ceiling.load(Ordering::Relaxed) != NO_CEILING
    }

    /// Allocates ids in storage until at least `least` are ready, or as many as a full disk has
    /// left. If the disk has none left, undo gets ids from the reserve. The calling thread holds no
    /// latch.
    ///
    /// # Errors
    /// The error of the storage, if it could not allocate a single id.
    pub(crate) fn refill(&self, least: u32) -> Result<(), PoolError> {
        const AT_ONCE: u32 = 64;
        let enough = || locked(&self.ahead).len() >= least as usize;
        if enough() {
            return Ok(());
        }
        let _refilling = locked(&self.refilling);
        let mut has_more = false;
        while !enough() {
            let mut more = Vec::new();
            match self.storage.allocate(AT_ONCE.max(least), &mut more) {
                // The ids that a full disk had left may be enough.
                Err(_) if has_more => break,
                Err(_) if Reserved::is_in_use() => return self.refill_for_undo(least),
                allocated => allocated?,
            }
            debug_assert!(!more.is_empty(), "storage allocated nothing, and reported no error");
            has_more = true;
            // The lowest comes out first.
            more.reverse();
            let mut ids = locked(&self.ahead);
            more.append(&mut ids);
            *ids = more;
        }
        Ok(())
    }

    /// Allocates ids that only undo takes, unless there are some.
    fn refill_for_undo(&self, least: u32) -> Result<(), PoolError> {
        if locked(&self.for_undo).is_empty() {
            let mut ids = Vec::new();
            self.storage.allocate_for_undo(least, &mut ids)?;
            locked(&self.for_undo).append(&mut ids);
        }
        Ok(())
    }

    /// Frees all ids in storage that no page has; for closing.
    ///
    /// # Errors
    /// The error of the storage.
    pub fn return_all(&self) -> Result<(), PoolError> {
        let mut ids = std::mem::take(&mut *locked(&self.ahead));
        ids.append(&mut locked(&self.for_undo));
        ids.into_iter().try_for_each(|id| self.storage.free(id))
    }
}
