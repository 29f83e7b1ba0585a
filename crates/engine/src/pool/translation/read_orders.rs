//! Orders to read pages ahead of their use, in the background.

use millpond_base::sync::Mutex;
use millpond_base::{FrameId, PageId};

use crate::pool::sync::locked::locked;

/// Orders to read pages ahead, for a thread in the background.
///
/// # Invariant
/// Reads are ordered only while the thread runs: their frames would be lost otherwise.
#[derive(Default)]
pub(crate) struct ReadOrders(Mutex<Orders>);

#[derive(Default)]
struct Orders {
    /// `true` while the thread runs.
    open: bool,
    /// Pages, each with a free frame that was taken for it; empty unless `open`.
    list: Vec<(PageId, FrameId)>,
}

impl ReadOrders {
    /// Orders the read of `page` into `frame`; returns `false` if no thread runs that would do it.
    pub(crate) fn give(&self, page: PageId, frame: FrameId) -> bool {
        let mut orders = locked(&self.0);
        debug_assert!(orders.open || orders.list.is_empty(), "its thread runs");
        if orders.open {
            orders.list.push((page, frame));
        }
        orders.open
    }

    /// Returns whether no read is ordered.
    pub(crate) fn is_empty(&self) -> bool {
        locked(&self.0).list.is_empty()
    }

    /// Takes the orders; from now on more are accepted only if `open`.
    pub(crate) fn take(&self, open: bool) -> Vec<(PageId, FrameId)> {
        let mut orders = locked(&self.0);
        orders.open = open;
        std::mem::take(&mut orders.list)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn reads_are_ordered_only_of_a_thread_that_runs() {
        let (orders, order) = (ReadOrders::default(), (PageId(1), FrameId(2)));
        assert!(!orders.give(order.0, order.1) && orders.is_empty());
        assert!(orders.take(true).is_empty());
        assert!(orders.give(order.0, order.1));
        assert_eq!(orders.take(false), [order]);
        assert!(!orders.give(order.0, order.1) && orders.is_empty());
    }
}
