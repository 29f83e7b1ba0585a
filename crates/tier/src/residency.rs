//! Residency: the data that a tier has copies of.

use std::ops::Range;

use millpond_base::PageId;

use crate::cache::Cache;
use crate::copy::Copy;

/// State of some bytes in a tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Residency {
    /// No copy.
    Absent,
    /// A copy of bytes that storage has.
    Clean,
    /// Data that storage lacks.
    Dirty,
}

impl Cache {
    /// Returns the residency of `range` as consecutive runs that cover it: the end and the state of
    /// each run. Neighbours differ. Looks up a table once per unit.
    pub fn residency(&self, range: Range<u64>) -> Vec<(u64, Residency)> {
        let tables = &self.tables;
        let end_of = |copy: &Copy| copy.offset.saturating_add(u64::from(copy.length));
        let first = (range.start / tables.unit).saturating_sub(tables.slot_units.saturating_sub(1));
        let clean = (first..range.end.div_ceil(tables.unit))
            .filter_map(|unit| tables.by_place.get(PageId(unit)))
            .filter_map(|frame| tables.copy_of(millpond_base::FrameId(frame)))
            .map(|copy| (copy.offset, end_of(&copy), Residency::Clean));
        let dirty = tables.dirty.within(range.clone());
        let dirty = dirty.map(|extent| {
            let Range { start, end } = extent.range();
            (start, end, Residency::Dirty)
        });
        let mut copies: Vec<_> = clean.chain(dirty).collect();
        copies.sort_unstable_by_key(|(start, ..)| *start);
        let mut runs: Vec<(u64, Residency)> = Vec::new();
        let mut at = range.start;
        let mut go_on = |until: u64, what: Residency| {
            let until = until.min(range.end);
            if until <= at {
                return;
            }
            at = until;
            match runs.last_mut() {
                Some(last) if last.1 == what => last.0 = until,
                _ => runs.push((until, what)),
            }
        };
        for (start, end, what) in copies {
            go_on(start, Residency::Absent);
            go_on(end, what);
        }
        go_on(range.end, Residency::Absent);
        runs
    }
}
