//! Read-ahead after a miss that continues a sequence of page ids, by the rule of
//! [read_ahead](millpond_base::read_ahead). Simulated first tiers follow the same rule (li
//! 5.6.1.3).
//!
//! A page can be read only if its swip is known, so the pages read ahead are children of the
//! missing page's parent whose ids follow. Such leaves were created one after the other, by loading
//! or by inserts in order. The pages before the missing one are looked up in the page table if the
//! pool has one, and otherwise among the parent and its children.
//!
//! All of this is a hint. The thread that missed may wait until frames are free, but never for the
//! reads that it orders, and no error ends its operation. A page that was read ahead is not
//! referenced until a thread needs it.

use crate::pool::buffer_pool::Pool;
use crate::pool::fault::Order;
use crate::pool::jump::Load;
use crate::pool::options::PoolStrategy;
use crate::pool::pages::Pages;
use crate::pool::swip::Swip;
use crate::pool::translation::translation::Missing;

impl<M: PoolStrategy> Pool<M> {
    /// Orders reads of the pages that follow the page of `load`, which this thread has just read,
    /// if that page continues a sequence. Called outside any mini-transaction.
    pub(crate) fn read_ahead_after(&self, load: &Load) {
        let Some(missing) =
            self.with_parent(load, || self.translation.missing_after(&self.frames, load))
        else {
            return;
        };
        // Nothing is read ahead without free frames.
        if missing.is_empty() || self.make_ready(missing.len() as u32).is_err() {
            return;
        }
        let ordered = self.with_parent(load, || self.order_missing(load, &missing));
        if ordered.is_some_and(|ordered| ordered > 0) {
            self.begin_reads();
        }
    }

    /// Calls `work` while this thread holds the load's parent in shared mode, so that neither its
    /// swips change nor its children leave. Returns `None` if the latch is held exclusively, or the
    /// page is gone.
    fn with_parent<T>(&self, load: &Load, work: impl FnOnce() -> T) -> Option<T> {
        let parent = self.frames.header(load.parent);
        if load.parent_page.is_none() || !parent.latch.try_shared() {
            return None;
        }
        let is_still = parent.page() == load.parent_page
            && self.translation.knows_swips_of(&self.frames, load.parent);
        let done = is_still.then(work);
        parent.latch.release_shared();
        done
    }

    /// Orders the reads of pages whose swips are still where they were; returns the number of
    /// reads.
    fn order_missing(&self, load: &Load, missing: &[Missing]) -> u32 {
        let mut given = 0;
        for (page, at) in missing {
            let is_missing = || {
                let word = Swip(self.frames.view(load.parent).u64(*at));
                word == Swip::evicted(*page)
                    && !(M::HAS_TABLE && self.translation.has(&self.frames, *page))
            };
            match self.order(*page, is_missing) {
                Order::Given => given += 1,
                Order::Needless => {}
                Order::Refused => break,
            }
        }
        given
    }
}
