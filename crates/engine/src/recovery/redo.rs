//! Redo, the second pass over the log: it rebuilds pages.
//!
//! The calling thread reads the log in order and distributes its sections about pages. Other
//! threads apply them, each to its own pages (rule 11), and write the finished pages. Drives and
//! operating systems are best at reading in order, and that costs one pass over the log, whatever
//! the number of records per page. Looking up records page by page, 100 bytes here and there, would
//! read blocks of 4 KiB, most of them many times.
//!
//! Memory holds each page from its first record of interest to its last one. The first one is the
//! page's last image. Where pages are written out of place, it may be any record, and is applied to
//! the version on storage. If too many pages are in memory, further ones wait for another pass,
//! which begins at the first of their records.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use hashbrown::HashSet;
use millpond_base::{Lsn, PageId};
use millpond_device::BUFFER_ALIGNMENT;

use super::analysis::Analysis;
use super::analysis::is_about_pages;
use super::error::RecoveryError;
use super::index::PageIndex;
use super::progress::Phase;
use super::progress::Progress;
use super::rebuild::ApplyRedoNote;
use super::rebuild::Batch;
use super::rebuild::Piece;
use super::rebuild::Rebuild;
use super::rebuild::Tally;
use crate::io::PageStore;
use crate::lock::is_interrupted;
use crate::log::Log;
use crate::page::record_body::{Section, sections};

/// Approximate size of a batch in bytes: the largest, and the smallest. With the largest, handing a
/// batch over costs little beside applying it; little memory makes batches smaller.
const BATCH_BYTES: (usize, usize) = (256 << 10, 16 << 10);

/// Number of batches that may wait for a thread.
const QUEUE: usize = 4;

/// Maximum number of bytes of finished pages that a thread gathers before it writes them.
const GATHER_BYTES_MAX: usize = 8 << 20;

/// Number of adjacent pages that go to the same thread, so that it can write them together.
const NEIGHBOURS: u64 = 64;

/// Division of redo's memory: an eighth is for batches, a quarter for finished pages gathered for
/// writing, and the rest for pages that are being rebuilt.
struct Shares {
    batch_bytes: usize,
    /// Number of finished pages that a thread gathers.
    gathered: usize,
    /// Number of pages that all threads together rebuild at a time.
    live: usize,
}

impl Shares {
    fn of(options: &RedoOptions, threads: usize, page_bytes: usize) -> Shares {
        let memory = options.memory_bytes;
        // Besides its queue, each thread has one batch at hand, and one is being filled for it.
        let batches = threads * (QUEUE + 2);
        let (most, least) = BATCH_BYTES;
        // An aligned buffer takes up to the alignment in addition.
        let page = page_bytes + BUFFER_ALIGNMENT;
        Shares {
            batch_bytes: (memory / 8 / batches).clamp(least, most),
            gathered: ((memory / 4 / threads).min(GATHER_BYTES_MAX) / page).max(1),
            live: (memory / 8 * 5 / page).max(1),
        }
    }
}

/// Settings of redo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RedoOptions {
    /// Number of threads that apply records, besides the one that reads the log. At least 1.
    pub threads: usize,
    /// Memory for pages, in bytes. If the pages need more, redo takes further passes over the log.
    pub memory_bytes: usize,
}

impl Default for RedoOptions {
    fn default() -> RedoOptions {
        RedoOptions { threads: 2, memory_bytes: 256 << 20 }
    }
}

/// Result of redo.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Redone {
    /// Number of pages written.
    pub pages: u64,
    /// Number of bytes of the log read.
    pub bytes: u64,
    /// Number of passes over the log.
    pub passes: u64,
}

/// Rebuilds all pages that `analysis` found in `log`, writes them to `store` and syncs it. The
/// store first grows to its length at the end of the log. `note` applies the physiological redo
/// records of structures.
///
/// # Errors
/// If log or store fail, or a record does not fit its page. Some pages may be written then, which
/// does no harm: recovery may restart (rule 12).
pub fn redo(
    store: &PageStore,
    log: &Log,
    analysis: &Analysis,
    note: ApplyRedoNote,
    options: &RedoOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Redone, RecoveryError> {
    // Rule 10: a page must not be ahead of the log, though it was read from there.
    log.wait_durable(analysis.end)?;
    store.grow_to(analysis.pages)?;
    let page_bytes = store.page_size().bytes();
    let threads = options.threads.max(1);
    let Shares { batch_bytes, gathered, live } = Shares::of(options, threads, page_bytes);
    let tally = Tally::default();
    let mut redone = Redone::default();
    let total = analysis.index.len() as u64;
    let mut report = |done| progress(Progress { phase: Phase::Redo, done, total });
    report(0);
    let mut late: PageIndex;
    let mut wanted = &analysis.index;
    while let Some(start) = wanted.start() {
        let pass = Pass {
            wanted,
            live: HashSet::new(),
            live_max: live,
            late: HashSet::new(),
            ended: 0,
            over: Vec::new(),
        };
        let rebuild = || Rebuild::new(store, log, note, &tally, gathered);
        let (bytes, left) = std::thread::scope(|scope| {
            let hands = Hands::new(scope, threads, batch_bytes, rebuild);
            pass.run(log, start, hands, &mut || report(tally.done.load(Ordering::Relaxed)))
        })?;
        redone.bytes += bytes;
        redone.passes += 1;
        debug_assert!(left.len() < wanted.len(), "each pass makes some pages anew");
        late = wanted.only(left.into_iter());
        wanted = &late;
    }
    store.sync()?;
    redone.pages = tally.written.into_inner();
    debug_assert_eq!(tally.done.into_inner(), total, "each page is written once (rule 10)");
    report(total);
    Ok(redone)
}

/// The page that a section is applied to.
struct Wants {
    page: PageId,
    /// True if the page must first be read from storage.
    needs_page: bool,
    /// True if no later record is about the page.
    is_last: bool,
}

/// One pass over the log.
struct Pass<'a> {
    wanted: &'a PageIndex,
    /// Pages in memory, between their first record and their last one; at most `live_max`.
    live: HashSet<PageId>,
    live_max: usize,
    /// Pages for which there was no room: they wait for the next pass.
    late: HashSet<PageId>,
    /// Number of pages whose last record was read.
    ended: usize,
    /// Pages that end with the record being read.
    over: Vec<PageId>,
}

impl Pass<'_> {
    /// Reads `log` from `start` on. Returns the number of bytes read, and the pages for which there
    /// was no room.
    fn run(
        mut self,
        log: &Log,
        start: Lsn,
        mut hands: Hands<'_>,
        report: &mut dyn FnMut(),
    ) -> Result<(u64, HashSet<PageId>), RecoveryError> {
        let read = self.read(log, start, &mut hands, report);
        // Errors of the threads come first: a thread that ended early made reading end early, too.
        hands.finish()?;
        let end = read?;
        match self.live.iter().next() {
            None => Ok((end.0.saturating_sub(start.0), self.late)),
            Some(&page) => {
                let lsn = self.wanted.get(page).map_or(end, |life| life.last);
                Err(RecoveryError::Damaged { lsn, page, what: "it is not in the log any more" })
            }
        }
    }

    fn read(
        &mut self,
        log: &Log,
        start: Lsn,
        hands: &mut Hands<'_>,
        report: &mut dyn FnMut(),
    ) -> Result<Lsn, RecoveryError> {
        let mut reader = log.reader(start);
        while self.ended + self.late.len() < self.wanted.len() {
            let Some((at, header, body)) = reader.next_record()? else { break };
            if is_interrupted() {
                return Err(RecoveryError::Interrupted);
            }
            if !is_about_pages(header.kind) {
                continue;
            }
            debug_assert!(self.over.is_empty(), "pages that ended were counted with their record");
            debug_assert!(
                self.live.len() <= self.live_max,
                "pages in memory are as many as may be"
            );
            let mut rest = sections(body);
            let mut from = 0;
            while let Some(section) = rest.next() {
                let section = section.map_err(|bad| RecoveryError::Body { at, byte: bad.at })?;
                let to = rest.position();
                if let Some(Wants { page, needs_page, is_last }) = self.wants(at, &section) {
                    let (start, end) = (at, header.end);
                    let piece = Piece { page, start, end, from: 0, to: 0, needs_page, is_last };
                    hands.deal(piece, body.get(from..to).unwrap_or(&[]));
                }
                from = to;
            }
            for page in self.over.drain(..) {
                self.ended += usize::from(self.live.remove(&page));
            }
            if hands.pass_on() {
                report();
            }
            if hands.is_broken {
                break;
            }
        }
        Ok(reader.position())
    }

    /// Returns the page to which `section`, of the record at `at`, applies in this pass, if any.
    #[inline]
    fn wants(&mut self, at: Lsn, section: &Section<'_>) -> Option<Wants> {
        let (Section::Image { page, .. }
        | Section::Difference { page, .. }
        | Section::Physiological { page, .. }) = *section
        else {
            return None;
        };
        let life = self.wanted.get(page)?;
        let mut needs_page = false;
        if at < life.first || at > life.last {
            return None;
        }
        if at == life.first && !self.live.contains(&page) {
            if life.has_image && !matches!(section, Section::Image { .. }) {
                return None;
            }
            if self.live.len() >= self.live_max {
                self.late.insert(page);
            } else {
                self.live.insert(page);
                needs_page = !life.has_image;
            }
        }
        if !self.late.is_empty() && self.late.contains(&page) {
            return None;
        }
        debug_assert!(life.first <= life.last, "a life has a beginning");
        let is_last = at == life.last;
        if is_last {
            self.over.push(page);
        }
        Some(Wants { page, needs_page, is_last })
    }
}

/// The threads that apply records.
struct Hands<'s> {
    threads: Vec<ScopedJoinHandle<'s, Result<(), RecoveryError>>>,
    queues: Vec<SyncSender<Batch>>,
    batches: Vec<Batch>,
    /// Size in bytes at which a batch is handed over.
    batch_bytes: usize,
    /// True if a thread has ended early.
    is_broken: bool,
}

impl<'s> Hands<'s> {
    fn new<'e: 's>(
        scope: &'s Scope<'s, 'e>,
        count: usize,
        batch_bytes: usize,
        rebuild: impl Fn() -> Rebuild<'e>,
    ) -> Hands<'s> {
        let (queues, inlets): (Vec<_>, Vec<_>) = (0..count).map(|_| sync_channel(QUEUE)).unzip();
        let threads = inlets
            .into_iter()
            .map(|inlet| {
                let rebuild = rebuild();
                scope.spawn(|| work(rebuild, inlet))
            })
            .collect();
        let batches = (0..count).map(|_| Batch::default()).collect();
        Hands { threads, queues, batches, batch_bytes, is_broken: false }
    }

    /// Adds `piece`, whose section is `bytes`, to the batch of its page's thread.
    #[inline]
    fn deal(&mut self, mut piece: Piece, bytes: &[u8]) {
        let to = (piece.page.0 / NEIGHBOURS) as usize % self.batches.len().max(1);
        let Some(batch) = self.batches.get_mut(to) else { return };
        debug_assert!(piece.start < piece.end, "a record has bytes");
        debug_assert!(
            batch.pieces.last().is_none_or(|last| last.start <= piece.start),
            "pieces are dealt out in the order of the log (rule 11)"
        );
        piece.from = batch.bytes.len();
        batch.bytes.extend_from_slice(bytes);
        piece.to = batch.bytes.len();
        batch.pieces.push(piece);
    }

    /// Hands over the batches that are long enough; called between two records. Returns `true` if
    /// there was one.
    #[inline]
    fn pass_on(&mut self) -> bool {
        let mut any = false;
        for at in 0..self.batches.len() {
            if self.batches.get(at).is_some_and(|batch| batch.bytes.len() >= self.batch_bytes) {
                self.send(at);
                any = true;
            }
        }
        any
    }

    fn send(&mut self, at: usize) {
        let (Some(batch), Some(queue)) = (self.batches.get_mut(at), self.queues.get(at)) else {
            return;
        };
        let bytes = Vec::with_capacity(batch.bytes.len());
        let pieces = Vec::with_capacity(batch.pieces.len());
        let full = std::mem::replace(batch, Batch { bytes, pieces });
        // A thread that ended early returns its error when it is joined.
        self.is_broken |= queue.send(full).is_err();
    }

    /// Hands over the remaining batches and waits until all pages are written.
    fn finish(mut self) -> Result<(), RecoveryError> {
        for at in 0..self.batches.len() {
            self.send(at);
        }
        self.queues.clear();
        let mut first = Ok(());
        for thread in self.threads {
            match thread.join() {
                Ok(result) => first = first.and(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        first
    }
}

/// Body of a redo thread.
fn work(mut rebuild: Rebuild<'_>, inlet: Receiver<Batch>) -> Result<(), RecoveryError> {
    for batch in inlet {
        rebuild.apply(&batch)?;
    }
    rebuild.write()
}
