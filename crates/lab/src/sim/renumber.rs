//! Gives pages dense ids in the order of their first reference, while a trace streams through.
//!
//! One renumbering per trace allows arrays instead of hash tables in every simulation. Ids that are
//! small relative to the number of pages seen are looked up in an array too. Most traces number the
//! blocks of a disk or the rows of a data set and run through them in order, so such a lookup costs
//! a tenth of a hash table's. The other ids are hashed.

use millpond_base::PageId;
use millpond_policies::parts::PageMap;
use millpond_workload::trace::Batch;

/// Ids below this multiple of the pages seen, rounded up to a power of two, count as small.
const SPARSE: u64 = 8;
/// Pages that count as seen from the beginning, so that most traces need no hash table.
const HEAD_START: u64 = 1 << 20;
/// log₂ of the entries per chunk of the array. A chunk is allocated when the first of its pages is
/// seen: memory is neither copied when ids grow nor touched for ids that never appear.
const CHUNK_BITS: u32 = 12;

/// Dense ids, assigned as pages appear.
pub struct Renumber {
    /// The dense id plus 1, by chunk and by place in it, or 0 for a page that was not seen yet. A
    /// chunk without a seen page is empty.
    small: Vec<Vec<u32>>,
    /// The first id that is not small.
    limit: u64,
    /// Dense ids of the pages that are not small.
    large: PageMap,
    distinct: u32,
}

impl Default for Renumber {
    fn default() -> Self {
        let limit = SPARSE * HEAD_START;
        Renumber { small: Vec::new(), limit, large: PageMap::new(None, 0), distinct: 0 }
    }
}

/// Returns the chunk of `page`, and its place there.
#[inline(always)]
fn place(page: u64) -> (usize, usize) {
    ((page >> CHUNK_BITS) as usize, (page & ((1 << CHUNK_BITS) - 1)) as usize)
}

impl Renumber {
    /// Returns a renumbering that has seen no page.
    pub fn new() -> Renumber {
        Renumber::default()
    }

    /// Replaces the batch's page ids with dense ids.
    pub fn apply(&mut self, batch: &mut Batch) {
        for page in &mut batch.pages {
            let (chunk, at) = place(*page);
            let number = match self.small.get_mut(chunk).and_then(|chunk| chunk.get_mut(at)) {
                Some(slot) => {
                    if *slot == 0 {
                        self.distinct += 1;
                        *slot = self.distinct;
                    }
                    *slot - 1
                }
                None => self.number_large(*page),
            };
            *page = u64::from(number);
        }
    }

    #[inline]
    fn number_large(&mut self, page: u64) -> u32 {
        if page < self.limit {
            self.distinct += 1;
            self.put_small(page, self.distinct - 1);
            return self.distinct - 1;
        }
        let number = self.large.get_or_insert(PageId(page), self.distinct);
        if number == self.distinct {
            self.distinct += 1;
            if page < SPARSE * (u64::from(number) + HEAD_START) {
                self.raise_limit(page);
            }
        }
        number
    }

    #[cold]
    fn put_small(&mut self, page: u64, number: u32) {
        let (chunk, at) = place(page);
        if chunk >= self.small.len() {
            self.small.resize_with(chunk + 1, Vec::new);
        }
        if self.small[chunk].is_empty() {
            self.small[chunk] = vec![0; 1 << CHUNK_BITS];
        }
        self.small[chunk][at] = number + 1;
    }

    /// Makes `page` a small id. The limit doubles, so each page moves once.
    #[cold]
    fn raise_limit(&mut self, page: u64) {
        self.limit = (page + 1).next_power_of_two();
        for (page, number) in self.large.take_below(self.limit) {
            self.put_small(page.0, number);
        }
    }

    /// Returns the number of distinct pages seen so far.
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
        // Draws small ids, ids that become small as pages are seen, and ids that never do.
        let mut draw = || match rng.u8(0..3) {
            0 => rng.u64(0..1_000),
            1 => rng.u64(0..9_500_000),
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
        assert_eq!(renumber.limit, 1 << 24, "it rose over ids that were hashed before");
    }
}
