//! Gives pages dense ids in the order of their first reference, as a trace streams by.
//!
//! One hash look-up per reference, once per trace, buys arrays instead of hash tables in every
//! simulation: a sweep wins it back at its second cell.

use millpond_base::PageId;
use millpond_policies::parts::PageMap;
use millpond_workload::trace::Batch;

/// Dense ids, given out as pages appear.
pub struct Renumber {
    map: PageMap,
}

impl Default for Renumber {
    fn default() -> Self {
        Renumber { map: PageMap::new(None, 1 << 16) }
    }
}

impl Renumber {
    /// No page seen yet.
    pub fn new() -> Renumber {
        Renumber::default()
    }

    /// Replaces the batch's page ids by dense ones.
    pub fn apply(&mut self, batch: &mut Batch) {
        for page in &mut batch.pages {
            *page = u64::from(self.map.get_or_number(PageId(*page)));
        }
    }

    /// Distinct pages seen so far.
    pub fn distinct(&self) -> u64 {
        self.map.len() as u64
    }
}
