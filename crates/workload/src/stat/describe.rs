//! Description of a trace for `trace stat`, in one pass over it.
//!
//! The core is table 2 of watt: references, pages, share of writes, hot pages, top ten. Its caption
//! calls pages with more than 2 % of all references hot, but its numbers for Zipf traces match a
//! threshold of 1 % (see the generator `zipf-ro`). So both are counted.

use millpond_base::{Mark, Reason};
use serde::Serialize;

use crate::trace::{BATCH_LEN, Batch, Source, TraceError};

use super::footprint::{Footprint, FootprintPoint};
use super::pages::Pages;
use super::reuse::{Reuse, ReuseHistogram};
use super::storage::{Storage, StorageStat};

/// References to pages of one kind and depth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct KindCount {
    /// The page kind (`PageKind`).
    pub kind: u8,
    /// Depth below the root.
    pub depth: u8,
    /// References.
    pub references: u64,
    /// Writes among the references.
    pub writes: u64,
}

/// Description of a trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceStat {
    /// Page references (dsync records are none).
    pub references: u64,
    /// Distinct pages.
    pub pages: u64,
    /// References that write.
    pub writes: u64,
    /// Share of the references that write, 0 to 1.
    pub write_share: f64,
    /// Pages with more than 2 % of the references (watt table 2, by its caption).
    pub hot_pages: u64,
    /// Pages with more than 1 % of the references (watt table 2, by its numbers for Zipf traces).
    pub warm_pages: u64,
    /// Share of the references that go to the ten hottest pages, 0 to 1.
    pub top_ten_share: f64,
    /// References that belong to marked scans.
    pub scan_references: u64,
    /// References by kind and depth; empty if no reference has either.
    pub kinds: Vec<KindCount>,
    /// `true` if references carry log positions.
    pub has_lsns: bool,
    /// Reuse distances.
    pub reuse: ReuseHistogram,
    /// Distinct pages over time, at most 256 points and the end.
    pub footprint: Vec<FootprintPoint>,
    /// The storage view, for traces with write reasons.
    pub storage: Option<StorageStat>,
    /// Remarks of the reader: ids that were mapped, sizes that were ignored.
    pub notes: Vec<String>,
}

/// Collects a [`TraceStat`], batch by batch. Memory grows with the distinct pages.
#[derive(Default)]
pub struct Describer {
    pages: Pages,
    reuse: Reuse,
    footprint: Footprint,
    storage: Storage,
    references: u64,
    writes: u64,
    scans: u64,
    kinds: Vec<KindCount>,
    has_lsns: bool,
}

impl Describer {
    /// Creates a describer without references.
    pub fn new() -> Describer {
        Describer::default()
    }

    /// Takes the references of `batch`.
    ///
    /// # Errors
    /// [`TraceError::Options`] if the trace has 2³² distinct pages or more.
    pub fn add(&mut self, batch: &Batch) -> Result<(), TraceError> {
        for (page, mark) in batch.pages.iter().zip(&batch.marks) {
            self.reference(*page, *mark)?;
        }
        self.has_lsns |= !batch.lsns.is_empty();
        Ok(())
    }

    fn reference(&mut self, page: u64, mark: Mark) -> Result<(), TraceError> {
        if mark.reason() == Reason::Dsync {
            self.storage.dsyncs += 1;
            return Ok(());
        }
        let Some((number, is_new)) = self.pages.touch(page) else {
            return Err(TraceError::Options("a trace of 2^32 pages cannot be described".into()));
        };
        self.references += 1;
        self.writes += u64::from(mark.is_write());
        self.scans += u64::from(mark.is_scan());
        self.count_kind(mark);
        self.reuse.touch(number, is_new);
        self.storage.touch(number, is_new, mark);
        self.footprint.add(self.references, self.pages.len() as u64);
        Ok(())
    }

    fn count_kind(&mut self, mark: Mark) {
        let (kind, depth) = (mark.kind().0, mark.depth());
        let same = |k: &&mut KindCount| k.kind == kind && k.depth == depth;
        // There are few kinds and depths, and frequent ones are found first.
        match self.kinds.iter_mut().find(same) {
            Some(count) => {
                count.references += 1;
                count.writes += u64::from(mark.is_write());
            }
            None => {
                let writes = u64::from(mark.is_write());
                self.kinds.push(KindCount { kind, depth, references: 1, writes });
            }
        }
    }

    /// Returns the result; `notes` are the reader's.
    pub fn finish(self, notes: Vec<String>) -> TraceStat {
        let references = self.references;
        let share = |n: u64| n as f64 / references.max(1) as f64;
        let pages = self.pages.len() as u64;
        let mut kinds = self.kinds;
        kinds.sort_unstable_by_key(|k| (k.kind, k.depth));
        if kinds.iter().all(|k| k.kind == 0 && k.depth == 0) {
            kinds.clear();
        }
        TraceStat {
            references,
            pages,
            writes: self.writes,
            write_share: share(self.writes),
            hot_pages: self.pages.hotter_than(0.02, references),
            warm_pages: self.pages.hotter_than(0.01, references),
            top_ten_share: share(self.pages.top(10)),
            scan_references: self.scans,
            kinds,
            has_lsns: self.has_lsns,
            reuse: self.reuse.histogram(),
            footprint: self.footprint.points(references, pages),
            storage: self.storage.finish(),
            notes,
        }
    }
}

/// Reads `source` to its end and describes it.
///
/// # Errors
/// Any error of the source.
pub fn describe(source: &mut dyn Source) -> Result<TraceStat, TraceError> {
    let mut describer = Describer::new();
    let mut batch = Batch::with_capacity(BATCH_LEN);
    while source.fill(&mut batch, BATCH_LEN)? > 0 {
        describer.add(&batch)?;
        batch.clear();
    }
    Ok(describer.finish(source.notes()))
}
