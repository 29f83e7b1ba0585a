//! Deferred sync, added to a trace whose writes were all durable at once (li 5.6.2.1).
//!
//! A RECOV write signals that the log is about to discard records older than its page's recLSN. In
//! his DB2 these are the oldest dirty pages. A checkpoint of our engine also chooses pages by age,
//! and writes them in the order of choice, in which some ages are out of order. Earlier recordings
//! had 1 young page in 20, because the checkpoint did not yet skip pages that a cleaner had written
//! in the meantime and that had changed again. Such a write frees no log, since older pages are
//! still dirty. So the bound is not the page's own recLSN but the oldest recLSN of any RECOV write
//! from there on.

use std::collections::{BTreeSet, HashMap};

use millpond_base::{Mark, Reason};
use millpond_workload::trace::Batch;

/// Pages that are written and not durable.
#[derive(Default)]
struct Listed {
    by_age: BTreeSet<(u64, u64)>,
    rec_lsns: HashMap<u64, u64>,
}

impl Listed {
    /// Adds a page; a listed page keeps its older recLSN.
    fn add(&mut self, page: u64, rec_lsn: u64) {
        if let std::collections::hash_map::Entry::Vacant(place) = self.rec_lsns.entry(page) {
            place.insert(rec_lsn);
            self.by_age.insert((rec_lsn, page));
        }
    }

    fn remove(&mut self, page: u64) {
        if let Some(rec_lsn) = self.rec_lsns.remove(&page) {
            self.by_age.remove(&(rec_lsn, page));
        }
    }

    /// Removes and returns the page with the oldest update, if that is before `bound`.
    fn take_before(&mut self, bound: u64) -> Option<u64> {
        let (_, page) = self.by_age.first().copied().filter(|(rec_lsn, _)| *rec_lsn < bound)?;
        self.remove(page);
        Some(page)
    }
}

/// Maximum number of final RECOV writes that may all be young.
const TAIL: usize = 100;

/// Returns for each row the oldest recLSN of the RECOV writes from there on. The last RECOV writes
/// may be young, and no later ones reveal that. So the limit stays constant over the last tenth of
/// them, at most [`TAIL`].
fn limits(trace: &Batch, rec_lsns: &[u64]) -> Vec<u64> {
    let mut oldest = u64::MAX;
    let mut limits: Vec<u64> = trace
        .marks
        .iter()
        .zip(rec_lsns)
        .rev()
        .map(|(mark, rec_lsn)| {
            if mark.reason() == Reason::Recov {
                oldest = oldest.min(*rec_lsn);
            }
            oldest
        })
        .collect();
    limits.reverse();
    let is_recov = |at: &usize| trace.marks[*at].reason() == Reason::Recov;
    let recovs: Vec<usize> = (0..limits.len()).filter(is_recov).collect();
    let tail = (recovs.len() / 10).min(TAIL);
    if let Some(last) = recovs.len().checked_sub(tail + 1).map(|at| recovs[at]) {
        let limit = limits[last];
        limits[last..].fill(limit);
    }
    limits
}

/// Returns the trace with dsync requests only where he puts them: after each RECOV write one for
/// its page, and one for each page with an older update that was written earlier and not made
/// durable since. `rec_lsns` has the recLSN of each row.
pub(super) fn deferred(trace: &Batch, rec_lsns: &[u64]) -> Batch {
    let mut to = Batch::with_capacity(trace.len());
    let mut list = Listed::default();
    let limits = limits(trace, rec_lsns);
    let rows = trace.pages.iter().zip(&trace.marks).zip(rec_lsns.iter().zip(limits));
    for ((&page, &mark), (&rec_lsn, limit)) in rows {
        if mark.is_dsync() {
            continue;
        }
        to.push(page, mark);
        if !mark.is_write() {
            continue;
        }
        if mark.reason() != Reason::Recov {
            list.add(page, rec_lsn);
            continue;
        }
        list.remove(page);
        while let Some(overdue) = list.take_before(limit) {
            to.push(overdue, Mark::WRITE.with_reason(Reason::Dsync));
        }
        to.push(page, Mark::WRITE.with_reason(Reason::Dsync));
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recov_write_makes_itself_and_what_is_older_durable_and_nothing_else() {
        let (mut trace, mut lsns) = (Batch::default(), Vec::new());
        let write = |reason| Mark::WRITE.with_reason(reason);
        let rows = [
            (1, write(Reason::Replace), 10),
            (2, write(Reason::Replace), 30),
            (3, Mark::READ, 0),
            (4, write(Reason::Dsync), 0),
            (5, write(Reason::Synch), 15),
            (6, write(Reason::Recov), 20),
            (1, write(Reason::Replace), 25),
            (7, write(Reason::Recov), 40),
        ];
        for (page, mark, lsn) in rows {
            trace.push(page, mark);
            lsns.push(lsn);
        }
        let made = deferred(&trace, &lsns);
        let shown: Vec<(u64, bool)> = made
            .pages
            .iter()
            .zip(&made.marks)
            .map(|(page, mark)| (*page, mark.is_dsync()))
            .collect();
        let (row, dsync) = (|page| (page, false), |page| (page, true));
        let before = [row(1), row(2), row(3), row(5), row(6), dsync(1), dsync(5), dsync(6)];
        assert_eq!(shown[..8], before, "recorded dsyncs are left out");
        assert_eq!(shown[8..], [row(1), row(7), dsync(1), dsync(2), dsync(7)], "oldest first");
    }

    #[test]
    fn a_recov_write_of_a_young_page_lets_go_of_nothing_but_itself() {
        let (mut trace, mut lsns) = (Batch::default(), Vec::new());
        let write = |reason| Mark::WRITE.with_reason(reason);
        let rows = [
            (1, write(Reason::Replace), 30),
            (2, write(Reason::Replace), 10),
            (3, write(Reason::Recov), 90),
            (1, write(Reason::Replace), 95),
            (4, write(Reason::Recov), 20),
            (5, write(Reason::Recov), 40),
        ];
        for (page, mark, lsn) in rows {
            trace.push(page, mark);
            lsns.push(lsn);
        }
        assert_eq!(limits(&trace, &lsns), [20, 20, 20, 20, 20, 40]);
        let made = deferred(&trace, &lsns);
        let dsyncs: Vec<(usize, u64)> = (0..made.len())
            .filter(|at| made.marks[*at].is_dsync())
            .map(|at| (at, made.pages[at]))
            .collect();
        // Page 1 is synced once, though it was written twice.
        assert_eq!(dsyncs, [(3, 2), (4, 3), (7, 4), (9, 1), (10, 5)]);
    }

    #[test]
    fn young_recov_writes_at_the_end_sync_nothing_else() {
        let (mut trace, mut lsns) = (Batch::default(), Vec::new());
        for at in 0..20u64 {
            trace.push(at, Mark::WRITE.with_reason(Reason::Replace));
            trace.push(100 + at, Mark::WRITE.with_reason(Reason::Recov));
            let young = if at >= 19 { 1000 } else { 0 };
            lsns.extend([at * 10 + 9, at * 10 + young]);
        }
        let limits = limits(&trace, &lsns);
        assert_eq!((limits[0], limits[2], limits[35], limits[39]), (0, 10, 170, 170));
        let made = deferred(&trace, &lsns);
        let dsyncs = made.marks.iter().filter(|mark| mark.is_dsync()).count();
        assert_eq!(dsyncs, 20 + 17, "those of RECOV writes, and the REPLACE writes before 170");
    }
}
