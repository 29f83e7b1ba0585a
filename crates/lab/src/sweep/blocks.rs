//! Blocks of a trace: one run over all blocks gives the counts of each.

use std::ops::Range;

use millpond_workload::trace::Batch;

use super::host::{Host, Outlook};
use super::row::Row;
use crate::sim::{Counts, Stalled};

/// The ends of a run's blocks, and the counts at each end reached so far.
pub(super) struct Blocks {
    ends: Vec<u64>,
    counts: Vec<Counts>,
}

impl Blocks {
    /// Divides the references `counted` into `count` blocks. The lengths of blocks differ by at
    /// most one reference; a count of 0 gives no blocks.
    ///
    /// # Errors
    /// A block would have no reference.
    pub fn new(count: u32, counted: Range<u64>) -> Result<Blocks, String> {
        let (blocks, len) = (u64::from(count), counted.end.saturating_sub(counted.start));
        if len < blocks {
            return Err(format!("{len} references cannot be cut into {count} blocks"));
        }
        let end = |block: u64| {
            counted.start + (u128::from(len) * u128::from(block) / u128::from(blocks)) as u64
        };
        Ok(Blocks { ends: (1..=blocks).map(end).collect(), counts: Vec::new() })
    }

    /// Runs a batch that begins after `references` references, and stops at each end to take
    /// counts.
    pub fn run(
        &mut self,
        host: &mut Host,
        references: u64,
        batch: &Batch,
        outlook: Option<&Outlook>,
    ) -> Result<(), Stalled> {
        let mut begin = 0;
        while let Some(end) = self.ends.get(self.counts.len()) {
            let end = (end - references) as usize;
            if end > batch.len() {
                break;
            }
            host.run(&part(batch, begin..end), outlook)?;
            self.counts.push(host.measured().counts);
            begin = end;
        }
        match begin {
            0 => host.run(batch, outlook),
            begin if begin == batch.len() => Ok(()),
            begin => host.run(&part(batch, begin..batch.len()), outlook),
        }
    }

    /// Returns a row for each block, from the row of the whole. Pages that are dirty at the end of
    /// the run count in the last block, so that the writes add up.
    pub fn rows(&self, whole: &Row) -> Vec<Row> {
        let mut before = Counts::default();
        let mut rows = Vec::new();
        for (at, counts) in self.counts.iter().enumerate() {
            let mut own = counts.since(&before);
            if at + 1 < self.counts.len() {
                own.dirty_at_end = 0;
            }
            let mut extra = whole.extra.clone();
            extra.push(("block", (at as u64 + 1).into()));
            let (misses, writes) = (own.misses(), own.writes());
            rows.push(Row { counts: own, misses, writes, extra, ..whole.clone() });
            before = *counts;
        }
        rows
    }
}

fn part(batch: &Batch, range: Range<usize>) -> Batch {
    let mut part = Batch::default();
    part.pages.extend_from_slice(&batch.pages[range.clone()]);
    part.marks.extend_from_slice(&batch.marks[range]);
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_long_as_each_other_up_to_one_reference() {
        let blocks = Blocks::new(4, 3..13).unwrap();
        assert_eq!(blocks.ends, [5, 8, 10, 13]);
        assert!(Blocks::new(0, 0..0).unwrap().ends.is_empty());
        let error = Blocks::new(5, 10..12).err().unwrap();
        assert_eq!(error, "2 references cannot be cut into 5 blocks");
    }
}
