//! Sweeps dirty pages between two checkpoints. Pages are written as the log grows, so a checkpoint
//! finds little left to write, and durable commits do not wait behind a burst.
//!
//! A page is due once the log has grown by a certain number of bytes, the page's *age*, since its
//! recLSN. All frames are scanned once per *step* of the log. A scan lists the pages that become
//! due within the step; they are written as the log's tail passes them.

use millpond_base::{FrameId, Lsn};

/// The pages that become due before the log reaches [`Sweep::until`].
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// Listed frames with their recLSNs, the lowest one last.
    due: Vec<(Lsn, FrameId)>,
    /// Bound of the last scan: pages with a recLSN before it were listed.
    until: Lsn,
}

impl Sweep {
    /// Returns the frames whose pages have a recLSN before `bound`, lowest recLSN first.
    ///
    /// `list(lsn)` returns the dirty frames with a recLSN before `lsn`, in any order. It is called
    /// at most once, and only if `bound` is past the last scan; the new scan then reaches `step`
    /// bytes past `bound`.
    pub(crate) fn advance(
        &mut self,
        bound: Lsn,
        step: u64,
        list: impl FnOnce(Lsn) -> Vec<(Lsn, FrameId)>,
    ) -> Vec<FrameId> {
        if bound > self.until {
            self.until = Lsn(bound.0 + step);
            self.due = list(self.until);
            self.due.sort_unstable_by(|a, b| b.cmp(a));
        }
        let keep = self.due.partition_point(|(rec_lsn, _)| *rec_lsn >= bound);
        self.due.drain(keep..).rev().map(|(_, frame)| frame).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_due_in_the_order_of_their_rec_lsns_and_frames_are_listed_once_a_step() {
        let dirty: Vec<(Lsn, FrameId)> = [700, 100, 400, 950]
            .iter()
            .zip(0..)
            .map(|(lsn, id)| (Lsn(*lsn), FrameId(id)))
            .collect();
        let (mut sweep, mut listed) = (Sweep::default(), 0);
        let mut due = |bound: u64, step: u64| {
            sweep.advance(Lsn(bound), step, |until| {
                listed += 1;
                dirty.iter().filter(|(lsn, _)| *lsn < until).copied().collect()
            })
        };
        assert_eq!(due(0, 300), []);
        assert_eq!(due(150, 300), [FrameId(1)]);
        assert_eq!(due(150, 300), []);
        assert_eq!(due(400, 300), []);
        assert_eq!(due(450, 300), [FrameId(2)]);
        // Pages that are still dirty are listed again.
        assert_eq!(due(701, 300), [FrameId(1), FrameId(2), FrameId(0)]);
        assert_eq!(due(1000, 300), [FrameId(3)]);
        assert_eq!(due(1002, 300), [FrameId(1), FrameId(2), FrameId(0), FrameId(3)]);
        assert_eq!(listed, 3);
    }
}
