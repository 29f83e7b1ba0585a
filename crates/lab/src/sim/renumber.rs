//! Gives pages dense ids in the order of their first reference, as a trace streams by.
//!
//! Once per trace, this buys arrays instead of hash tables in every simulation. Ids that are small
//! for the number of pages seen are looked up in an array, too: most traces number the blocks of a
//! disk or the rows of a data set, and run through them in order, so that such a look-up costs a
//! tenth of a hash table's. The other ids are hashed.

use millpond_base::PageId;
use millpond_policies::parts::PageMap;
use millpond_workload::trace::Batch;

/// No number yet.
const NONE: u32 = u32::MAX;
/// The array has at most twice so many entries per page seen, beyond the first ones.
const SPARSE: u64 = 8;
/// Pages that count as seen from the beginning, so that small traces need no hash table.
const HEAD_START: u64 = 1 << 16;

/// Dense ids, given out as pages appear.
pub struct Renumber {
    small: Vec<u32>,
    /// What is not below the array's length.
    large: PageMap,
    distinct: u32,
}

impl Default for Renumber {
    fn default() -> Self {
        Renumber { small: Vec::new(), large: PageMap::new(None, 0), distinct: 0 }
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
            let number = match self.small.get_mut(*page as usize) {
                Some(&mut number) if number != NONE => number,
                Some(slot) => {
                    *slot = self.distinct;
                    self.distinct += 1;
                    *slot
                }
                None => self.number_large(*page),
            };
            *page = u64::from(number);
        }
    }

    #[inline]
    fn number_large(&mut self, page: u64) -> u32 {
        let number = self.large.get_or_insert(PageId(page), self.distinct);
        if number == self.distinct {
            self.distinct += 1;
            if page < SPARSE * (u64::from(number) + HEAD_START) {
                self.grow(page);
            }
        }
        number
    }

    /// Makes room for `page` in the array. The length doubles, so each page moves once.
    #[cold]
    fn grow(&mut self, page: u64) {
        let len = (page + 1).next_power_of_two();
        self.small.resize(len as usize, NONE);
        for (page, number) in self.large.take_below(len) {
            self.small[page.0 as usize] = number;
        }
    }

    /// Distinct pages seen so far.
    pub fn distinct(&self) -> u64 {
        u64::from(self.distinct)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use millpond_base::Mark;

    use super::*;

    #[test]
    fn pages_are_numbered_as_they_appear_whatever_their_ids() {
        let mut rng = fastrand::Rng::with_seed(6);
        // Small ids, ids that become small as pages are seen, and ids that never do.
        let mut draw = || match rng.u8(0..3) {
            0 => rng.u64(0..1_000),
            1 => rng.u64(0..3_000_000),
            _ => rng.u64(..) | 1 << 40,
        };
        let (mut renumber, mut model) = (Renumber::new(), HashMap::new());
        for _ in 0..40 {
            let mut batch = Batch::default();
            (0..10_000).for_each(|_| batch.push(draw(), Mark::READ));
            let mut expected = Vec::new();
            for page in &batch.pages {
                let next = model.len() as u64;
                expected.push(*model.entry(*page).or_insert(next));
            }
            renumber.apply(&mut batch);
            assert_eq!(batch.pages, expected);
            assert_eq!(renumber.distinct(), model.len() as u64);
        }
        assert!(renumber.small.len() > 1 << 20, "the array grew over ids that were hashed before");
    }
}
