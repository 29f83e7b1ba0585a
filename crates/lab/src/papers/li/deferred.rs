//! Deferred sync, put into a trace whose writes were all durable at once (li 5.6.2.1).

use millpond_base::sync_list::SyncList;
use millpond_base::{Lsn, Mark, PageId, Reason};
use millpond_workload::trace::Batch;

/// The trace with dsync requests where he puts them, and nowhere else: after each RECOV write one
/// for its page, and one for each page that was written earlier, was not made durable since, and
/// carries an older update. `rec_lsns` has the recLSN of each row.
pub(super) fn deferred(trace: &Batch, rec_lsns: &[u64]) -> Batch {
    let mut to = Batch::with_capacity(trace.len());
    let mut list = SyncList::default();
    let rows = trace.pages.iter().zip(&trace.marks).zip(rec_lsns);
    for ((&page, &mark), &rec_lsn) in rows {
        if mark.is_dsync() {
            continue;
        }
        to.push(page, mark);
        if !mark.is_write() {
            continue;
        }
        list.add(PageId(page), Lsn(rec_lsn));
        if mark.reason() == Reason::Recov {
            // Its own update is not newer than what it lets go of.
            while let Some(overdue) = list.take_before(Lsn(rec_lsn + 1)) {
                to.push(overdue.0, Mark::WRITE.with_reason(Reason::Dsync));
            }
        }
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
}
