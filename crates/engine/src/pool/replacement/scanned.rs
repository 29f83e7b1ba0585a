//! Pages that only scans have referenced: they go first, whichever policy decides.
//!
//! A scan that says that it is one (`as_scan`) loads pages that nobody else may ever want. So their
//! frames are remembered, in the order in which they were loaded, and taken before the policy is
//! asked for a victim (leanstore IV-I: pages that scans load begin as candidates for eviction, and
//! no hot page has to go for them). A reference that is no scan's makes a page one like any other.
//! For the policy such an eviction is a `forget`, as of a deleted page: it keeps no ghost, and
//! its clock, where that counts evictions, stands still.

use std::collections::VecDeque;

use millpond_base::sync::Mutex;
use millpond_base::sync::atomic::{AtomicU32, Ordering};
use millpond_base::{FrameId, PageId};
use millpond_policies::contract::{Host, OfferOutcome, RefusalReason};

use crate::pool::buffer_pool::Pool;
use crate::pool::options::PoolStrategy;
use crate::pool::replacement::eviction::LiveHost;
use crate::pool::sync::locked::locked;

/// Frames with the pages that a scan loaded into them, the oldest first. Some may be outdated: the
/// page has gone, or is wanted by others, too.
#[derive(Default)]
pub(crate) struct Scanned {
    queue: Mutex<VecDeque<(FrameId, PageId)>>,
    len: AtomicU32,
}

impl Scanned {
    /// Changes the queue.
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
    /// A scan loaded `page` into `frame`.
    pub(crate) fn note_scanned(&self, frame: FrameId, page: PageId) {
        let most = 2 * self.frames() as usize;
        self.scanned.with(|queue| {
            if queue.len() >= most {
                queue.retain(|(frame, page)| self.is_scanned(*frame, *page));
            }
            queue.push_back((frame, page));
        });
    }

    /// Whether `frame` holds `page`, and only scans have referenced it.
    fn is_scanned(&self, frame: FrameId, page: PageId) -> bool {
        let header = self.memory.header(frame);
        header.is_some_and(|header| header.page() == Some(page) && header.is_scanned())
    }

    /// Takes up to `wanted` frames that only scans have referenced; says how many.
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
            let mut verdict = OfferOutcome::Refused(RefusalReason::Changed);
            self.policy_host.forget_if(self.metas(), frame, || {
                verdict = host.offer(frame);
                matches!(verdict, OfferOutcome::Taken(_))
            });
            match verdict {
                OfferOutcome::Taken(_) => taken += 1,
                // It may go later: once it is written, or its reader is through.
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
