//! Analysis, the first pass over the log. It finds the pages that redo rebuilds, the pages in use,
//! and the losers.

use std::collections::BTreeMap;

use millpond_base::Lsn;

use super::checkpoint::Checkpoint;
use super::error::RecoveryError;
use super::generation::Noted;
use super::index::PageIndex;
use super::progress::Phase;
use super::progress::Progress;
use crate::btree::Undo;
use crate::lock::is_interrupted;
use crate::log::{Header, Log};
use crate::page::record_body::{Section, sections};
use crate::page::superblock::Placement;
use crate::page::{MapEntry, PAGES_MAX};
use crate::pool::mini_transaction::{PageSpace, kind};

/// Bytes of the log between two reports of progress.
const REPORT_BYTES: u64 = 4 << 20;

/// A transaction without an end in the log (rule 7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loser {
    /// Transaction id.
    pub tx: u64,
    /// Position of the first record to undo, an UPDATE. 0 if nothing is left to undo, and only an
    /// ABORT record is missing.
    pub last: Lsn,
    /// Position of the transaction's last record, to which the next one is chained.
    pub last_record: Lsn,
}

/// The result of analysis.
#[derive(Debug)]
pub struct Analysis {
    /// Transactions without an end, in the order of their ids.
    pub losers: Vec<Loser>,
    /// Pages in use, and orphan roots, at the end of the log.
    pub space: PageSpace,
    /// The pages that redo rebuilds.
    pub index: PageIndex,
    /// Number of entries of each tree, by owner id, before losers are undone.
    pub rows: Vec<(u32, u64)>,
    /// Next transaction id: no transaction has it, or a higher one, yet.
    pub next_tx: u64,
    /// The store had at least this many pages.
    pub pages: u64,
    /// The latest superblock that the log notes as durable.
    pub noted: Noted,
    /// Position at which reading began.
    pub start: Lsn,
    /// End of the log.
    pub end: Lsn,
    /// Number of records read.
    pub records: u64,
    /// Number of bytes read.
    pub bytes: u64,
}

/// The state of a transaction.
struct Standing {
    last_record: Lsn,
    /// Position of the first record to undo; `None` if only the last record shows it.
    undo: Option<Lsn>,
}

struct Pass {
    begin: Lsn,
    standings: BTreeMap<u64, Standing>,
    space: PageSpace,
    index: PageIndex,
    /// Number of entries of each tree. A sum may be negative in between, where undo goes ahead.
    rows: BTreeMap<u32, i64>,
    /// True if storage has each page's version before its first record: pages are written out of
    /// place.
    is_stored: bool,
    tx_max: u64,
    noted: Noted,
}

impl Analysis {
    /// Reads `log` from the redo point of `checkpoint` to its end (rule 4). The store writes its
    /// pages by `placement`.
    ///
    /// # Errors
    /// If the log cannot be read, or a record cannot be decoded.
    pub fn of(
        log: &Log,
        checkpoint: &Checkpoint,
        placement: Placement,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Analysis, RecoveryError> {
        let orphans = checkpoint.orphans.iter().copied().collect();
        let standing = |last| Standing { last_record: last, undo: None };
        let mut pass = Pass {
            begin: checkpoint.begin,
            standings: checkpoint.active.iter().map(|a| (a.tx, standing(a.last))).collect(),
            space: PageSpace::new(checkpoint.taken.clone(), orphans),
            index: PageIndex::default(),
            rows: checkpoint.rows.iter().map(|&(owner, rows)| (owner, rows as i64)).collect(),
            is_stored: placement == Placement::OutOfPlace,
            tx_max: 0,
            noted: Noted::default(),
        };
        let mut reader = log.reader(checkpoint.redo);
        let (start, end) = (checkpoint.redo, reader.end());
        let total = end.0.saturating_sub(start.0);
        let mut report = |done| progress(Progress { phase: Phase::Analysis, done, total });
        let (mut records, mut reported) = (0, 0);
        report(0);
        while let Some((at, header, body)) = reader.next_record()? {
            if is_interrupted() {
                return Err(RecoveryError::Interrupted);
            }
            debug_assert!(at >= start && at < header.end, "LSNs grow");
            pass.record(at, &header, body)?;
            records += 1;
            let done = header.end.0.saturating_sub(start.0);
            if done - reported >= REPORT_BYTES {
                reported = done;
                report(done);
            }
        }
        debug_assert_eq!(reader.position(), end, "the log is read to its end");
        report(total);
        let pages = checkpoint.pages.max(pass.index.pages()).max(pages_of(pass.space.taken()));
        Ok(Analysis {
            losers: losers(log, pass.standings)?,
            space: pass.space,
            index: pass.index,
            rows: counts(pass.rows),
            next_tx: checkpoint.next_tx.max(pass.tx_max.saturating_add(1)),
            pages,
            noted: pass.noted,
            start,
            end: reader.position(),
            records,
            bytes: reader.position().0.saturating_sub(start.0),
        })
    }
}

/// Returns `true` if a record of that kind may change pages.
#[inline]
pub(super) fn is_about_pages(kind: u8) -> bool {
    matches!(kind, kind::PAGES | kind::UPDATE | kind::COMPENSATION)
}

/// Returns the number of pages up to the last one in use.
fn pages_of(taken: &[u64]) -> u64 {
    let last = taken.iter().rposition(|&word| word != 0);
    last.map_or(0, |at| {
        let word = taken.get(at).copied().unwrap_or(0);
        at as u64 * 64 + u64::from(64 - word.leading_zeros())
    })
}

/// Refuses a page id from `most` on, which no store has: the tables here would grow without bound.
fn check_page(lsn: Lsn, section: &Section<'_>, most: u64) -> Result<(), RecoveryError> {
    match *section {
        Section::Image { page, .. }
        | Section::Difference { page, .. }
        | Section::Physiological { page, .. }
        | Section::Taken { page }
        | Section::Freed { page }
        | Section::Orphaned { page, .. }
        | Section::Attached { page }
            if page.0 >= most =>
        {
            Err(RecoveryError::Damaged { lsn, page, what: "no store is that large" })
        }
        _ => Ok(()),
    }
}

impl Pass {
    fn record(&mut self, at: Lsn, header: &Header, body: &[u8]) -> Result<(), RecoveryError> {
        self.tx_max = self.tx_max.max(header.tx);
        let is_behind = at >= self.begin;
        match header.kind {
            kind::CHECKPOINT | kind::CHECKPOINT_PART => return Ok(()),
            kind::SUPERBLOCK => {
                self.noted.record(header, body);
                return Ok(());
            }
            kind::COMMIT | kind::ABORT => {
                if is_behind {
                    self.standings.remove(&header.tx);
                }
                return Ok(());
            }
            kind::PAGES | kind::UPDATE | kind::COMPENSATION => {}
            kind => return Err(RecoveryError::Kind { at, kind }),
        }
        let mut undo = if header.kind == kind::COMPENSATION { Lsn(0) } else { at };
        let most = if self.is_stored { MapEntry::PLACES } else { PAGES_MAX };
        for section in sections(body) {
            let section = section.map_err(|bad| RecoveryError::Body { at, byte: bad.at })?;
            check_page(at, &section, most)?;
            self.pages(at, &section);
            if is_behind {
                self.space(&section);
            }
            if is_behind {
                self.rows(header.kind, &section);
            }
            if let Section::UndoNext { lsn } = section {
                undo = lsn;
            }
        }
        if is_behind && header.kind != kind::PAGES {
            let standing = Standing { last_record: at, undo: Some(undo) };
            self.standings.insert(header.tx, standing);
        }
        Ok(())
    }

    /// Applies a section to the state of its page (rules 5 and 6).
    #[inline]
    fn pages(&mut self, at: Lsn, section: &Section<'_>) {
        match *section {
            Section::Image { page, .. } => self.index.image(page, at),
            Section::Difference { page, .. } | Section::Physiological { page, .. } => {
                self.index.change(page, at, self.is_stored);
            }
            Section::Freed { page } => self.index.free(page),
            _ => {}
        }
    }

    /// Applies a section to a tree's number of entries, if that is known. A transaction's changes
    /// show in its undo sections. Other structures have such sections, too, but their entries are
    /// not counted.
    fn rows(&mut self, kind: u8, section: &Section<'_>) {
        let (owner, change) = match *section {
            Section::Rows { owner, change: None } => {
                self.rows.insert(owner, 0);
                return;
            }
            Section::Rows { owner, change: Some(change) } => (owner, change),
            Section::Undo { head, tail } if kind == kind::UPDATE => {
                let Some(changed) = Undo::rows_of(head, tail) else { return };
                changed
            }
            _ => return,
        };
        if let Some(rows) = self.rows.get_mut(&owner) {
            *rows = rows.saturating_add(change);
        }
    }

    /// Applies a section to the allocation map and the orphan roots.
    fn space(&mut self, section: &Section<'_>) {
        match *section {
            Section::Taken { page } => self.space.set(page, true),
            Section::Freed { page } => self.space.set(page, false),
            Section::Orphaned { page, root } => self.space.hang(page, root),
            Section::Attached { page } => self.space.place(page),
            _ => {}
        }
    }
}

/// Returns the counts, without negative ones, which cannot be right.
fn counts(rows: BTreeMap<u32, i64>) -> Vec<(u32, u64)> {
    let rows = rows.into_iter();
    rows.filter_map(|(owner, rows)| Some((owner, u64::try_from(rows).ok()?))).collect()
}

/// Returns the transactions without an end. If one logged nothing since the checkpoint began, its
/// last record is read.
fn losers(log: &Log, standings: BTreeMap<u64, Standing>) -> Result<Vec<Loser>, RecoveryError> {
    let mut body = Vec::new();
    standings
        .into_iter()
        .map(|(tx, standing)| {
            let at = standing.last_record;
            let last = match standing.undo {
                Some(undo) => undo,
                None => {
                    let header = log.read_at(at, &mut body)?;
                    undo_from(at, header.kind, &body)?
                }
            };
            Ok(Loser { tx, last, last_record: at })
        })
        .collect()
}

/// Returns the first record to undo of a transaction whose last record is the one at `at`.
fn undo_from(at: Lsn, kind: u8, body: &[u8]) -> Result<Lsn, RecoveryError> {
    match kind {
        kind::UPDATE => return Ok(at),
        kind::COMPENSATION => {}
        kind => return Err(RecoveryError::Kind { at, kind }),
    }
    let mut undo = Lsn(0);
    for section in sections(body) {
        match section.map_err(|bad| RecoveryError::Body { at, byte: bad.at })? {
            Section::UndoNext { lsn } => undo = lsn,
            _ => continue,
        }
    }
    Ok(undo)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::record_body::{
        OrphanRoot, put_attached, put_difference, put_freed, put_image, put_orphaned,
        put_physiological, put_taken,
    };
    use millpond_base::PageId;

    #[test]
    fn every_section_may_be_of_the_last_page_that_a_store_can_have_and_of_none_behind_it() {
        let (before, after) = ([1; 512], [2; 512]);
        for most in [MapEntry::PLACES, PAGES_MAX] {
            for page in [most - 1, most, u64::MAX] {
                let (id, mut body) = (PageId(page), Vec::new());
                put_image(&mut body, id, &after);
                assert!(put_difference(&mut body, id, &before, &after));
                put_physiological(&mut body, id, b"a note");
                put_taken(&mut body, id);
                put_freed(&mut body, id);
                put_orphaned(&mut body, id, OrphanRoot { kind: 3, stamp: 9 });
                put_attached(&mut body, id);
                let sections: Vec<_> = sections(&body).map(Result::unwrap).collect();
                assert_eq!(sections.len(), 7);
                for section in sections {
                    let checked = check_page(Lsn(8), &section, most);
                    assert_eq!(checked.is_ok(), page < most, "{section:?} of {most} pages");
                }
            }
        }
    }
}
