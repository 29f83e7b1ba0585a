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

use millpond_base::PageId;
use millpond_base::read_ahead::after;

use super::fetch::Order;
use crate::pool::buffer_pool::Pool;
use crate::pool::jump::Load;
use crate::pool::options::PoolStrategy;
use crate::pool::pages::Pages;
use crate::pool::swip::Swip;

/// A page that is not in memory, and the offset of its swip in its parent's page.
type Missing = (PageId, usize);

impl<M: PoolStrategy> Pool<M> {
    /// Orders the reads of the pages that follow the page of `load`, which this thread has just
    /// read, if it continues a sequence; outside any mini-transaction.
    pub(super) fn read_ahead_after(&self, load: &Load) {
        let Some(missing) = self.with_parent(load, || self.missing_after(load)) else { return };
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
        let is_still = parent.page() == load.parent_page && self.knows_swips_of(load.parent);
        let done = is_still.then(work);
        parent.latch.release_shared();
        done
    }

    /// The children that are to be read ahead, in the order of their ids.
    fn missing_after(&self, load: &Load) -> Vec<Missing> {
        let view = self.frames.view(load.parent);
        let mut children: Vec<(PageId, usize, bool)> = Vec::new();
        let Some(kind) = self.kinds.of(view) else { return Vec::new() };
        kind.swips(view, &mut |at| {
            let word = Swip(view.u64(at));
            if let Some(child) = self.named_by(word) {
                children.push((child, at, word.is_swizzled()));
            }
            true
        });
        children.sort_unstable();
        let child = |page: PageId| {
            let found = children.binary_search_by_key(&page, |child| child.0).ok()?;
            children.get(found)
        };
        let is_here = |page: PageId| {
            let is_found = if M::HAS_TABLE {
                self.is_in_table(page)
            } else {
                load.parent_page == Some(page) || child(page).is_some_and(|child| child.2)
            };
            is_found || self.in_flight.has(page)
        };
        let ahead = after(load.page.0, self.frames.count(), |page| is_here(PageId(page)));
        let missing = ahead.map(PageId).filter(|page| !is_here(*page));
        missing.filter_map(|page| child(page).map(|child| (page, child.1))).collect()
    }

    /// The page that a swip of a latched page refers to.
    fn named_by(&self, word: Swip) -> Option<PageId> {
        if word == Swip::NULL {
            None
        } else if word.is_swizzled() {
            word.frame().and_then(|frame| self.frames.header(frame).page())
        } else {
            Some(word.page())
        }
    }

    /// Orders the reads of pages whose swips are still where they were; returns how many.
    fn order_missing(&self, load: &Load, missing: &[Missing]) -> u32 {
        let mut given = 0;
        for (page, at) in missing {
            let is_missing = || {
                let word = Swip(self.frames.view(load.parent).u64(*at));
                word == Swip::evicted(*page) && !(M::HAS_TABLE && self.is_in_table(*page))
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
