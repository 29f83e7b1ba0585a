//! The sync list: pages written to storage, but not made durable there, by their oldest update
//! (li 4.3.2).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use millpond_base::PageId;
use millpond_policies::parts::PageMap;

/// Pages whose writes are not yet synced, least recLSN first.
pub(super) struct SyncList {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    listed: PageMap,
}

impl SyncList {
    pub fn new() -> SyncList {
        SyncList { heap: BinaryHeap::new(), listed: PageMap::new(None, 1 << 10) }
    }

    /// A page was written that carries updates since `rec_lsn`. A page that is listed keeps its
    /// older recLSN.
    pub fn add(&mut self, page: PageId, rec_lsn: u64) {
        if self.listed.get(page).is_none() {
            self.listed.insert(page, 0);
            self.heap.push(Reverse((rec_lsn, page.0)));
        }
    }

    /// The oldest update that is written, but not durable.
    pub fn oldest(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((rec_lsn, _))| *rec_lsn)
    }

    /// Takes out the next page whose oldest update is not after `lsn`.
    pub fn overdue(&mut self, lsn: u64) -> Option<PageId> {
        if self.oldest()? > lsn {
            return None;
        }
        let Reverse((_, page)) = self.heap.pop()?;
        self.listed.remove(PageId(page));
        Some(PageId(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_page_keeps_its_oldest_update_and_leaves_once() {
        let mut list = SyncList::new();
        list.add(PageId(7), 30);
        list.add(PageId(8), 10);
        list.add(PageId(8), 40);
        assert_eq!(list.oldest(), Some(10));
        assert_eq!(list.overdue(9), None);
        assert_eq!(list.overdue(30), Some(PageId(8)));
        assert_eq!(list.overdue(30), Some(PageId(7)));
        assert_eq!(list.overdue(100), None);
        list.add(PageId(8), 40);
        assert_eq!(list.oldest(), Some(40));
    }
}
