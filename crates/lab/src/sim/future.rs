//! The future, for policies that need it: the position of each page's next reference.

use millpond_policies::contract::NEVER;
use millpond_workload::trace::Batch;

/// Positions of the next reference and the next read of the same page, for each reference.
pub struct Future {
    /// Position of the next reference to the same page, or `NEVER`.
    pub next: Vec<u64>,
    /// Position of the next read of the same page, or `NEVER`.
    pub next_read: Vec<u64>,
}

impl Future {
    /// Computes the future from the end of a whole trace. Page ids must be dense, below `distinct`.
    pub fn of(trace: &Batch, distinct: u64) -> Future {
        let len = trace.len();
        let (mut next, mut next_read) = (vec![NEVER; len], vec![NEVER; len]);
        let mut seen = vec![(NEVER, NEVER); distinct as usize];
        for at in (0..len).rev() {
            let slot = &mut seen[trace.pages[at] as usize];
            (next[at], next_read[at]) = *slot;
            slot.0 = at as u64;
            if !trace.marks[at].is_write() {
                slot.1 = at as u64;
            }
        }
        Future { next, next_read }
    }
}
