//! The sync list: pages that were written to storage and are not durable there, by their oldest
//! update (li 4.3.2). The simulated first tier and the pool have the same one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use crate::ids::{Lsn, PageId};

/// Pages with writes that are not synced yet, least recLSN first.
///
/// ```
/// use millpond_base::sync_list::SyncList;
/// use millpond_base::{Lsn, PageId};
///
/// let mut list = SyncList::default();
/// list.add(PageId(7), Lsn(30));
/// list.add(PageId(8), Lsn(10));
/// assert_eq!(list.oldest(), Some(Lsn(10)));
/// assert_eq!(list.take_before(Lsn(30)), Some(PageId(8)));
/// assert_eq!(list.take_before(Lsn(30)), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SyncList {
    heap: BinaryHeap<Reverse<(Lsn, PageId)>>,
    listed: HashSet<PageId>,
}

impl SyncList {
    /// Adds a page that was written with updates since `rec_lsn`. A page that is listed keeps its
    /// older recLSN.
    pub fn add(&mut self, page: PageId, rec_lsn: Lsn) {
        if self.listed.insert(page) {
            self.heap.push(Reverse((rec_lsn, page)));
        }
    }

    /// Returns the oldest update that is written, and not durable.
    pub fn oldest(&self) -> Option<Lsn> {
        self.heap.peek().map(|Reverse((rec_lsn, _))| *rec_lsn)
    }

    /// Takes out the page with the oldest update, if that is before `bound`.
    pub fn take_before(&mut self, bound: Lsn) -> Option<PageId> {
        if self.oldest()? >= bound {
            return None;
        }
        let Reverse((_, page)) = self.heap.pop()?;
        self.listed.remove(&page);
        Some(page)
    }

    /// Returns the number of pages in the list.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns `true` if every written page is durable.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_page_keeps_its_oldest_update_and_leaves_once() {
        let mut list = SyncList::default();
        list.add(PageId(7), Lsn(30));
        list.add(PageId(8), Lsn(10));
        list.add(PageId(8), Lsn(40));
        assert_eq!((list.oldest(), list.len()), (Some(Lsn(10)), 2));
        assert_eq!(list.take_before(Lsn(10)), None);
        assert_eq!(list.take_before(Lsn(31)), Some(PageId(8)));
        assert_eq!(list.take_before(Lsn(31)), Some(PageId(7)));
        assert_eq!(list.take_before(Lsn(100)), None);
        assert!(list.is_empty());
        list.add(PageId(8), Lsn(40));
        assert_eq!(list.oldest(), Some(Lsn(40)));
    }
}
