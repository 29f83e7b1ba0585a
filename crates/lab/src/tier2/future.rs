//! The future of a storage-level trace: next references, next reads, and the writes that are due
//! anyway.

use millpond_base::Reason;
use millpond_policies::contract::NEVER;
use millpond_workload::trace::Batch;

/// Future of each row of a whole trace. dsync requests do not count as references, but they decide
/// which writes leave their page pre-clean.
pub struct Tier2Future {
    /// Row of the next read or write of the same page, or `NEVER`.
    pub next: Vec<u64>,
    /// Row of the next read of the same page, or `NEVER`.
    pub next_read: Vec<u64>,
    /// For a write: `true` if a dsync request for the page comes before its next write.
    pub due: Vec<bool>,
}

impl Tier2Future {
    /// Computes the future from the end of a whole trace. Page ids must be dense, below `distinct`.
    pub fn of(trace: &Batch, distinct: u64) -> Tier2Future {
        let len = trace.len();
        let (mut next, mut next_read) = (vec![NEVER; len], vec![NEVER; len]);
        let mut due = vec![false; len];
        let mut seen = vec![(NEVER, NEVER); distinct as usize];
        let mut is_due = vec![false; distinct as usize];
        for at in (0..len).rev() {
            let page = trace.pages[at] as usize;
            let mark = trace.marks[at];
            (next[at], next_read[at]) = seen[page];
            if mark.reason() == Reason::Dsync {
                is_due[page] = true;
                continue;
            }
            seen[page].0 = at as u64;
            if mark.is_write() {
                due[at] = is_due[page];
                is_due[page] = false;
            } else {
                seen[page].1 = at as u64;
            }
        }
        Tier2Future { next, next_read, due }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_base::Mark;

    #[test]
    fn dsync_rows_are_no_references_and_make_the_write_before_them_due() {
        let mut trace = Batch::default();
        let sync = Mark::WRITE.with_reason(Reason::Dsync);
        for mark in [Mark::WRITE, Mark::WRITE, Mark::READ, sync, Mark::READ, Mark::WRITE] {
            trace.push(0, mark);
        }
        let future = Tier2Future::of(&trace, 1);
        assert_eq!(future.next, [1, 2, 4, 4, 5, NEVER]);
        assert_eq!(future.next_read, [2, 2, 4, 4, NEVER, NEVER]);
        assert_eq!(future.due, [false, true, false, false, false, false]);
    }
}
