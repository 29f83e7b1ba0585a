//! Reading ahead of a miss that continues a sequence of page ids, by the rule of
//! [read_ahead](millpond_base::read_ahead), which simulated first tiers have, too (li 5.6.1.3).
//!
//! A page can be read only if its swip is known. So what is read ahead are children of the missing
//! page's parent, those whose ids follow: leaves that were made one after the other, as by loading
//! or by inserts in order. The pages before it are looked for where this pool has a table, and else
//! among the children of the parent, and the parent.
//!
//! All of this is a hint: no thread waits for I/O here but for frames, nothing fails, and what was
//! read ahead is no reference until a thread needs it.

use crate::pool::buffer_pool::Pool;
use crate::pool::fault::Order;
use crate::pool::jump::Load;
use crate::pool::options::PoolStrategy;
use crate::pool::pages::Pages;
use crate::pool::swip::Swip;
use crate::pool::translation::translation::Missing;

impl<M: PoolStrategy> Pool<M> {
    /// Orders the reads of the pages that follow the page of `load`, which this thread has just
    /// read, if it continues a sequence; outside any mini-transaction.
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

    /// Does `work` while the page of the load's parent is latched, shared, so that neither its
    /// swips change nor its children leave; `None` if the latch is held, or the page is gone.
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

    /// Orders the reads of pages whose swips are still where they were; returns how many.
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
