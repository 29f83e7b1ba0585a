//! The sweep of dirty pages between two checkpoints: pages are written as the log grows, so that a
//! checkpoint finds hardly anything left to write, and durable commits do not wait behind a burst.
//!
//! A page is due once the log has grown by a certain number of bytes, the page's *age*, since its
//! recLSN. To find which ones are due, all frames are looked at once for each *step* of the log;
//! what becomes due within the step is listed, and written as the log's tail passes it.

use millpond_base::{FrameId, Lsn};

/// The pages that become due before the log reaches [`Sweep::until`].
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// By recLSN, the least one last.
    due: Vec<(Lsn, FrameId)>,
    /// Pages with a recLSN before this were listed.
    until: Lsn,
}

impl Sweep {
    /// Returns the frames whose pages have a recLSN before `bound`, the least one first. `list`
    /// gives the dirty frames with a recLSN before the one that it is given, in any order; it is
    /// asked no more than once, and only if `bound` is behind what was listed; it is then asked for
    /// those up to `step` bytes behind `bound`.
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
        // What is dirty still is listed once more.
        assert_eq!(due(701, 300), [FrameId(1), FrameId(2), FrameId(0)]);
        assert_eq!(due(1000, 300), [FrameId(3)]);
        assert_eq!(due(1002, 300), [FrameId(1), FrameId(2), FrameId(0), FrameId(3)]);
        assert_eq!(listed, 3);
    }
}
