//! Examines whether a store can be recovered up to a hole in its log; nothing is written.
//!
//! The log before the hole restores the store exactly as it was there, if it has everything that
//! recovery needs. That is the checkpoint that the superblock names, all records from its redo
//! point on, and the records of the transactions that had not committed by the hole.
//!
//! Where pages are written out of place, nothing else is needed. The superblock's page map is that
//! of the checkpoint, and names the versions of pages before it. Later versions are in places that
//! it does not name. Where pages are written in place:
//!
//! - A page with an image in that part of the log is rebuilt, whatever version storage has: an
//!   older one, a torn one, or one from behind the hole. Redo reads no page (rule 8), so pages from
//!   the future are no different from torn ones.
//! - A page in use without an image there has not changed between redo point and hole (rule 5).
//!   Storage has that version, unless the page's first change since then came behind the hole and
//!   was written back. Then the version is gone, since the image behind the hole shows the page
//!   after the change. Such a page has an LSN behind the hole, or a wrong checksum if it was torn.
//!   So each of these pages is read.
//! - A page that is free at the hole does not matter.
//!
//! If a page of the second kind is newer, the store at the hole is unavailable, and a mixture of
//! two moments would be no store: [`Obstacle::Pages`]. If none is newer, the log is cut off at the
//! hole (`log/cut.rs`), and an ordinary recovery follows.
//!
//! A store's new log begins behind the LSNs of the log before (`Log::create`). So a page whose LSN
//! is behind the hole has a change from behind the hole.

use std::sync::Arc;

use millpond_base::{Lsn, PageId};
use millpond_device::{AlignedBuffer, Device};

use super::analysis::Analysis;
use super::analysis::Loser;
use super::checkpoint::Checkpoint;
use super::damage::LogDamage;
use super::damage::LostRecords;
use super::damage::Obstacle;
use super::damage::StrayPage;
use super::damage::StrayPages;
use super::error::RecoveryError;
use super::generation::Noted;
use crate::io::{PageRead, PageStore};
use crate::log::{Log, LogError, LogOptions};
use crate::page::record_body::{Section, sections};
use crate::page::superblock::Placement;
use crate::page::{PageHeader, PageType};
use crate::pool::mini_transaction::kind;

/// Number of pages read together.
const BATCH: usize = 64;

/// Number of stray pages that a report names.
const NAMED: usize = 5;

/// Findings of an examination.
#[derive(Debug)]
pub struct Examined {
    /// The damage, with the obstacle that the log alone shows.
    pub damage: LogDamage,
    /// Analysis of the log up to the hole, unless there is an obstacle.
    pub analysis: Option<Analysis>,
    /// The latest superblock that the log notes as durable.
    pub noted: Noted,
}

/// Examines the log on `device`, which does not open, or fails when `store` is recovered.
///
/// # Errors
/// The headers of the log cannot be read, or a record has passed its checksum and cannot be
/// decoded.
pub fn examine(
    store: &PageStore,
    device: Arc<dyn Device>,
    was_closed: bool,
    options: &LogOptions,
) -> Result<Examined, RecoveryError> {
    let checkpoint = store.log_position();
    let (mut damage, noted) = survey(store, &device, checkpoint, was_closed)?;
    if was_closed {
        return Ok(Examined { damage, analysis: None, noted });
    }
    let log = Log::open_up_to(device.clone(), store.uuid(), damage.at, options)?;
    match analyse(&log, checkpoint, store.placement())? {
        Ok(analysis) => Ok(Examined { damage, analysis: Some(analysis), noted }),
        Err((at, obstacle)) => {
            let at = at.unwrap_or(damage.at);
            if at < damage.at {
                (damage, _) = survey(store, &device, at, was_closed)?;
                // The survey walks past the hole, over the whole records between it and the
                // checkpoint.
                damage.at = at;
            }
            (damage.checkpoint, damage.obstacle) = (checkpoint, Some(obstacle));
            Ok(Examined { damage, analysis: None, noted })
        }
    }
}

fn survey(
    store: &PageStore,
    device: &Arc<dyn Device>,
    start: Lsn,
    was_closed: bool,
) -> Result<(LogDamage, Noted), LogError> {
    let (mut commits, mut noted) = (0, Noted::default());
    let survey = Log::survey(device.clone(), store.uuid(), start, &mut |found| {
        commits += u64::from(found.is_behind && found.header.kind == kind::COMMIT);
        noted.record(found.header, found.body);
    })?;
    let lost = survey.behind.map_or_else(LostRecords::default, |behind| LostRecords {
        records: behind.records,
        commits,
        first: behind.first,
        until: behind.until,
    });
    debug_assert!(lost.commits <= lost.records, "commits are records");
    debug_assert!(lost.first <= lost.until, "what is lost begins before its end");
    let path = device.path().to_path_buf();
    let (at, offset, durable) = (survey.end, survey.offset, survey.durable);
    let (checkpoint, obstacle) = (start, None);
    let damage = LogDamage { path, at, offset, checkpoint, lost, durable, was_closed, obstacle };
    Ok((damage, noted))
}

/// Position of a hole, if known, and the obstacle that it causes.
type Blocked = (Option<Lsn>, Obstacle);

/// Analyses `log`, which ends at the hole, and reads every part that recovery reads.
fn analyse(
    log: &Log,
    at: Lsn,
    placement: Placement,
) -> Result<Result<Analysis, Blocked>, RecoveryError> {
    let checkpoint = match Checkpoint::read(log, at) {
        Ok(checkpoint) => checkpoint,
        Err(RecoveryError::Log(error)) => {
            return Ok(Err((place_of(&error), Obstacle::Checkpoint)));
        }
        Err(error) => return Err(error),
    };
    let mut reader = log.reader(checkpoint.redo);
    loop {
        match reader.next_record() {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(_) => return Ok(Err((Some(reader.position()), Obstacle::BeforeCheckpoint))),
        }
    }
    let analysis = match Analysis::of(log, &checkpoint, placement, &mut |_| {}) {
        Ok(analysis) => analysis,
        // Everything from the redo point on has just been read: this is a transaction's last
        // record.
        Err(RecoveryError::Log(error)) => return Ok(Err((place_of(&error), Obstacle::Undo))),
        Err(error) => return Err(error),
    };
    match broken_chain(log, &analysis.losers)? {
        None => Ok(Ok(analysis)),
        Some(at) => Ok(Err((Some(at), Obstacle::Undo))),
    }
}

/// Returns the position of the hole that an error reports, if it reports one.
fn place_of(error: &LogError) -> Option<Lsn> {
    match error {
        LogError::NoRecord { at, .. }
        | LogError::Missing { at, .. }
        | LogError::Forgotten { at, .. } => Some(*at),
        _ => None,
    }
}

/// Walks the records that undo of `losers` will read; returns the position of the first one that
/// cannot be read.
fn broken_chain(log: &Log, losers: &[Loser]) -> Result<Option<Lsn>, RecoveryError> {
    let mut body = Vec::new();
    for loser in losers {
        let mut at = loser.last;
        while at != Lsn(0) {
            let Ok(header) = log.read_at(at, &mut body) else { return Ok(Some(at)) };
            let mut next = None;
            for section in sections(&body) {
                match section.map_err(|bad| RecoveryError::Body { at, byte: bad.at })? {
                    Section::Undo { .. } => next = Some(header.prev),
                    Section::UndoNext { lsn } => next = Some(lsn),
                    _ => {}
                }
            }
            match next.filter(|next| *next < at) {
                Some(next) => at = next,
                None => return Err(RecoveryError::Body { at, byte: 0 }),
            }
        }
    }
    Ok(None)
}

/// Reads all pages of `store` that were in use at the hole, which is at `end`, and that redo will
/// not rebuild. Returns none where pages are written out of place: the durable page map is that of
/// the checkpoint before the hole.
pub fn stray_pages(store: &PageStore, analysis: &Analysis, end: Lsn) -> StrayPages {
    if store.placement() == Placement::OutOfPlace {
        return StrayPages::default();
    }
    let words = analysis.space.taken().iter().enumerate();
    let mut pages = words.flat_map(|(at, &word)| {
        let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
        bits.map(move |bit| PageId(at as u64 * 64 + bit))
    });
    let mut found = StrayPages::default();
    let page_bytes = store.page_size().bytes();
    let mut buffers: Vec<_> = (0..BATCH).map(|_| AlignedBuffer::new(page_bytes)).collect();
    loop {
        let wanted = pages
            .by_ref()
            .filter(|page| !store.is_reserved(*page) && analysis.index.get(*page).is_none());
        let mut batch: Vec<PageRead<'_>> = buffers
            .iter_mut()
            .zip(wanted)
            .map(|(buffer, page)| PageRead::new(page, &mut buffer[..]))
            .collect();
        if batch.is_empty() {
            debug_assert!(
                found.newer + found.unreadable <= found.looked_at,
                "each page counts once"
            );
            return found;
        }
        store.read_batch(&mut batch);
        for read in &batch {
            found.look(read, end);
        }
    }
}

impl StrayPages {
    /// Returns `true` if no page is newer or unreadable.
    ///
    /// ```
    /// use millpond::report::StrayPages;
    /// assert!(StrayPages::default().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.newer == 0 && self.unreadable == 0
    }

    fn look(&mut self, read: &PageRead<'_>, end: Lsn) {
        self.looked_at += 1;
        let mut stray = StrayPage {
            page: read.page,
            lsn: None,
            owner: None,
            structure: None,
            kind: PageType::NONE,
        };
        if read.result.is_ok() {
            let header = PageHeader::read(read.bytes);
            if header.lsn <= end {
                return;
            }
            self.newer += 1;
            (stray.lsn, stray.owner, stray.kind) =
                (Some(header.lsn), Some(header.owner), header.kind);
        } else {
            self.unreadable += 1;
        }
        if self.first.len() < NAMED {
            self.first.push(stray);
        }
    }
}
