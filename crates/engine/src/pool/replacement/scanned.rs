//! Pages that only scans have referenced: they are evicted first, under each policy.
//!
//! A scan with the hint (`as_scan`) loads pages that may never be referenced otherwise. Their
//! frames are remembered in the order in which the pages were loaded, and taken before the policy
//! is asked for a victim. In leanstore IV-I, too, pages that scans load begin as candidates for
//! eviction, so that no hot page has to be evicted for them. A reference that is not from a scan
//! makes the page a page like any other. To the policy such an eviction is a `forget`, as of a
//! deleted page: the policy keeps no ghost, and a clock of evictions does not advance.

use std::collections::VecDeque;

use millpond_base::sync::Mutex;
use millpond_base::sync::atomic::{AtomicU32, Ordering};
use millpond_base::{FrameId, PageId};
use millpond_policies::contract::{OfferOutcome, RefusalReason};

use crate::pool::memory::frames::Frames;
use crate::pool::sync::locked::locked;

/// Frames with the pages that a scan loaded into them.
#[derive(Default)]
pub(super) struct Scanned {
    /// Entries, the oldest first. Some are outdated: their page was evicted, or referenced
    /// otherwise. There are at most two per frame of the pool, and one.
    queue: Mutex<VecDeque<(FrameId, PageId)>>,
    /// The length of `queue`, to be read without its lock.
    len: AtomicU32,
}

impl Scanned {
    /// Calls `change` with the queue.
    fn with<R>(&self, change: impl FnOnce(&mut VecDeque<(FrameId, PageId)>) -> R) -> R {
        let mut queue = locked(&self.queue);
        let result = change(&mut queue);
        self.len.store(queue.len() as u32, Ordering::Relaxed);
        result
    }

    fn len(&self) -> u32 {
        self.len.load(Ordering::Relaxed)
    }

    /// Records that a scan loaded `page` into `frame`.
    pub(super) fn note(&self, frames: &Frames, frame: FrameId, page: PageId) {
        let most = 2 * frames.count() as usize;
        self.with(|queue| {
            if queue.len() >= most {
                queue.retain(|(frame, page)| is_scanned(frames, *frame, *page));
            }
            queue.push_back((frame, page));
        });
    }

    /// Offers pages that only scans have referenced, until `wanted` were taken; returns the number
    /// taken.
    pub(super) fn evict(
        &self,
        frames: &Frames,
        wanted: u32,
        mut offer: impl FnMut(FrameId) -> OfferOutcome,
    ) -> u32 {
        let (mut taken, mut kept) = (0, Vec::new());
        for _ in 0..self.len() {
            if taken == wanted {
                break;
            }
            let Some((frame, page)) = self.with(VecDeque::pop_front) else { break };
            if !is_scanned(frames, frame, page) {
                continue;
            }
            match offer(frame) {
                OfferOutcome::Taken(_) => taken += 1,
                // The page may be evicted later: once it is written, or its reader has ended.
                OfferOutcome::Refused(
                    RefusalReason::Dirty | RefusalReason::Latched | RefusalReason::Pinned,
                ) => {
                    kept.push((frame, page));
                }
                OfferOutcome::Refused(_) | OfferOutcome::EvictChildFirst(_) => {}
            }
        }
        if !kept.is_empty() {
            self.with(|queue| queue.extend(kept));
        }
        taken
    }
}

/// Returns whether `frame` holds `page`, and only scans have referenced it.
fn is_scanned(frames: &Frames, frame: FrameId, page: PageId) -> bool {
    let header = frames.memory().header(frame);
    header.is_some_and(|header| header.page() == Some(page) && header.is_scanned())
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use millpond_policies::any_hook::AnyHook;

    use super::*;
    use crate::pool::options::PoolOptions;

    #[test]
    fn pages_of_scans_are_offered_in_their_order_unless_another_reference_came() {
        let options = PoolOptions::new(8);
        let frames = Frames::map::<AnyHook>(&options, 512, &Default::default()).unwrap();
        let scanned = Scanned::default();
        for id in (0..4).map(FrameId) {
            let (header, page) = (frames.memory().header(id).unwrap(), PageId(u64::from(id.0)));
            header.set_page(Some(page));
            header.set_scanned(true);
            scanned.note(&frames, id, page);
        }
        frames.memory().header(FrameId(1)).unwrap().set_scanned(false);
        let mut offered = Vec::new();
        let taken = scanned.evict(&frames, 2, |frame| {
            offered.push(frame.0);
            match frame.0 {
                0 => OfferOutcome::Refused(RefusalReason::Dirty),
                id => OfferOutcome::Taken(PageId(u64::from(id))),
            }
        });
        assert_eq!((taken, offered), (2, vec![0, 2, 3]));
        assert_eq!(scanned.len(), 1, "the dirty one is offered again");
    }
}
