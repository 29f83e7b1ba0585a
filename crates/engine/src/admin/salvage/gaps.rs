//! Ranges of a structure that no walk reached.

use std::ops::RangeInclusive;

/// Hashes, or numbers of data pages.
pub(super) type Range = RangeInclusive<u64>;

/// Ranges that were not reached, with the owner of their structure.
#[derive(Default)]
pub(super) struct Gaps {
    all: Vec<(u32, Range)>,
}

impl Gaps {
    pub(super) fn add(&mut self, owner: u32, range: Range) {
        match self.all.last_mut() {
            Some((of, last))
                if *of == owner && last.end().checked_add(1) == Some(*range.start()) =>
            {
                *last = *last.start()..=*range.end();
            }
            _ => self.all.push((owner, range)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn sort(&mut self) {
        self.all.sort_unstable_by_key(|(owner, range)| (*owner, *range.start()));
    }

    /// Returns `true` if a part of `range` was not reached. Needs the gaps in order.
    pub(super) fn touch(&self, owner: u32, range: &Range) -> bool {
        // Gaps of an owner are disjoint: the last one that begins early enough also ends last.
        let end =
            self.all.partition_point(|(of, gap)| (*of, *gap.start()) <= (owner, *range.end()));
        let last = end.checked_sub(1).and_then(|last| self.all.get(last));
        last.is_some_and(|(of, gap)| *of == owner && gap.end() >= range.start())
    }
}
