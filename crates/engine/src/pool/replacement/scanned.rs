//! Pages that only scans have referenced: they are evicted first, under each policy.
//!
//! A scan with the hint (`as_scan`) loads pages that may never be referenced otherwise. So their
//! frames are remembered, in the order in which they were loaded, and taken before the policy is
//! asked for a victim (leanstore IV-I: pages that scans load begin as candidates for eviction, and
//! no hot page has to be evicted for them). A reference that is no scan's makes a page one like any
//! other. For the policy such an eviction is a `forget`, as of a deleted page: it keeps no ghost,
//! and its clock, where that counts evictions, does not advance.

use std::collections::VecDeque;

use millpond_base::sync::Mutex;
use millpond_base::sync::atomic::{AtomicU32, Ordering};
use millpond_base::{FrameId, PageId};
use millpond_policies::contract::{Host, OfferOutcome, RefusalReason};

use crate::pool::buffer_pool::Pool;
use crate::pool::options::PoolStrategy;
use crate::pool::replacement::eviction::LiveHost;
use crate::pool::sync::locked::locked;

/// Frames with the pages that a scan loaded into them.
#[derive(Default)]
pub(crate) struct Scanned {
    /// The oldest first. Some are outdated: the page was evicted, or referenced otherwise. At most
    /// two per frame of the pool, and one.
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
}

impl<M: PoolStrategy> Pool<M> {
    /// Records that a scan loaded `page` into `frame`.
    pub(crate) fn note_scanned(&self, frame: FrameId, page: PageId) {
        let most = 2 * self.frames.count() as usize;
        self.scanned.with(|queue| {
            if queue.len() >= most {
                queue.retain(|(frame, page)| self.is_scanned(*frame, *page));
            }
            queue.push_back((frame, page));
        });
    }

    /// Returns whether `frame` holds `page`, and only scans have referenced it.
    fn is_scanned(&self, frame: FrameId, page: PageId) -> bool {
        let header = self.frames.memory().header(frame);
        header.is_some_and(|header| header.page() == Some(page) && header.is_scanned())
    }

    /// Evicts up to `wanted` pages that only scans have referenced; returns how many.
    pub(crate) fn evict_scanned(&self, host: &mut LiveHost<'_, M>, wanted: u32) -> u32 {
        let (mut taken, mut kept) = (0, Vec::new());
        for _ in 0..self.scanned.len() {
            if taken == wanted {
                break;
            }
            let Some((frame, page)) = self.scanned.with(VecDeque::pop_front) else { break };
            if !self.is_scanned(frame, page) {
                continue;
            }
            let mut outcome = OfferOutcome::Refused(RefusalReason::Changed);
            self.policy_host.forget_if(self.metas(), frame, || {
                outcome = host.offer(frame);
                matches!(outcome, OfferOutcome::Taken(_))
            });
            match outcome {
                OfferOutcome::Taken(_) => taken += 1,
                // It may be evicted later: once it is written, or its reader has ended.
                OfferOutcome::Refused(
                    RefusalReason::Dirty | RefusalReason::Latched | RefusalReason::Pinned,
                ) => {
                    kept.push((frame, page));
                }
                OfferOutcome::Refused(_) | OfferOutcome::EvictChildFirst(_) => {}
            }
        }
        if !kept.is_empty() {
            self.scanned.with(|queue| queue.extend(kept));
        }
        taken
    }
}
