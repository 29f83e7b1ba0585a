//! Traces of one repetition, recorded or made at first use and kept until the next repetition. A
//! live pool with page cleaners does not send the same requests twice, so all figures of a
//! repetition share one recording.

use std::sync::{Arc, OnceLock};

use millpond_base::{Mark, Reason, Share};
use millpond_policies::config::Spec;
use millpond_workload::stat::{Describer, StorageStat};
use millpond_workload::trace::{BATCH_LEN, Batch, Source, TraceError};

use super::deferred::deferred;
use super::first_tier::{Course, Dsyncs, Family, FirstTier, first_tier};
use crate::experiment::{FigureError, Scale, Watch};
use millpond_lab::registry::Registry;
use millpond_lab::sim::Renumber;
use millpond_lab::tier1::Tier1Options;
use millpond_lab::tier2::Tier2Future;

/// Requests recorded of an engine.
#[derive(Default)]
pub struct Recorded {
    /// Requests of storage, or page references.
    pub batch: Batch,
    /// The recLSN of each request; empty for page references.
    pub rec_lsns: Vec<u64>,
    /// Pages of the data as loaded.
    pub data_pages: u64,
    /// Approximate number of transactions of page references; the last one may be cut off.
    pub transactions: u64,
}

/// Records an engine on some first tier, or for `None` the page references of one thread in a pool
/// that holds everything. The arguments are the first tier, the course, the repetition (also the
/// seed), and a watcher.
pub type RecordLi = Box<
    dyn FnMut(Option<&FirstTier>, &Course, u64, &mut dyn Watch) -> Result<Recorded, FigureError>
        + Send,
>;

/// A storage-level trace in memory, its pages numbered without gaps.
pub(super) struct Trace {
    pub name: String,
    pub batch: Batch,
    /// Distinct pages.
    pub distinct: u64,
    /// Pages of the loaded data, of which sizes are shares.
    pub data_pages: u64,
    future: OnceLock<Tier2Future>,
}

/// Numbers of a trace's requests of each kind.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Requests {
    pub reads: u64,
    pub replace: u64,
    pub recov: u64,
    /// SYNCH writes.
    pub others: u64,
    pub dsyncs: u64,
}

impl Requests {
    fn writes(&self) -> u64 {
        self.replace + self.recov + self.others
    }

    /// Returns `part` as a share of reads and writes.
    pub fn share(&self, part: u64) -> f64 {
        part as f64 / (self.reads + self.writes()).max(1) as f64
    }

    /// Returns the dsync requests per write; 0 if nothing is written.
    pub fn dsyncs_per_write(&self) -> f64 {
        self.dsyncs as f64 / self.writes().max(1) as f64
    }
}

impl Trace {
    fn of(name: &str, mut batch: Batch, data_pages: u64) -> Trace {
        batch.lsns = Vec::new();
        let mut renumber = Renumber::new();
        renumber.apply(&mut batch);
        let (name, distinct) = (name.to_string(), renumber.distinct());
        Trace { name, batch, distinct, data_pages: data_pages.max(1), future: OnceLock::new() }
    }

    /// Returns the future of the trace, computed once.
    pub fn future(&self) -> &Tier2Future {
        self.future.get_or_init(|| Tier2Future::of(&self.batch, self.distinct))
    }

    /// Counts the trace's requests by reason.
    pub fn requests(&self) -> Requests {
        let mut all = Requests::default();
        for mark in &self.batch.marks {
            match mark.reason() {
                Reason::Dsync => all.dsyncs += 1,
                _ if !mark.is_write() => all.reads += 1,
                Reason::Replace => all.replace += 1,
                Reason::Recov => all.recov += 1,
                _ => all.others += 1,
            }
        }
        all
    }

    /// Returns the share of READs whose pages are never written. Of the other READs with a later
    /// request to their page, it also returns the share followed by a write.
    pub fn unwritten(&self) -> [(&'static str, Option<f64>); 2] {
        let rows = || self.batch.pages.iter().zip(&self.batch.marks).filter(|(_, m)| !m.is_dsync());
        let mut is_written = vec![false; self.distinct as usize];
        rows()
            .filter(|(_, m)| m.is_write())
            .for_each(|(page, _)| is_written[*page as usize] = true);
        // The last request of each page, if that is a READ.
        let mut was_read = vec![false; is_written.len()];
        let [mut reads, mut unwritten, mut followed, mut by_write] = [0u64; 4];
        for (page, mark) in rows() {
            let at = *page as usize;
            let before = std::mem::replace(&mut was_read[at], !mark.is_write());
            followed += u64::from(before && is_written[at]);
            by_write += u64::from(before && mark.is_write());
            reads += u64::from(!mark.is_write());
            unwritten += u64::from(!mark.is_write() && !is_written[at]);
        }
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        [
            ("unwritten_share", share(unwritten, reads)),
            ("read_then_write_written", share(by_write, followed)),
        ]
    }

    /// Returns the share of READs followed by a write, and of REPLACE writes followed by a READ,
    /// in the first third of the trace. The trace continues for at least twice as long after these
    /// requests.
    pub fn early(&self) -> [(&'static str, Option<f64>); 2] {
        let mut next: Vec<Option<bool>> = vec![None; self.distinct as usize];
        let third = self.batch.len() / 3;
        let [mut reads, mut then_write, mut replace, mut then_read] = [0u64; 4];
        let rows = self.batch.pages.iter().zip(&self.batch.marks).enumerate();
        for (at, (page, mark)) in rows.rev().filter(|(_, (_, mark))| !mark.is_dsync()) {
            let is_write = next[*page as usize].replace(mark.is_write());
            if at >= third {
                continue;
            }
            if !mark.is_write() {
                reads += 1;
                then_write += u64::from(is_write == Some(true));
            } else if mark.reason() == Reason::Replace {
                replace += 1;
                then_read += u64::from(is_write == Some(false));
            }
        }
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        [
            ("read_then_write_early", share(then_write, reads)),
            ("replace_then_read_early", share(then_read, replace)),
        ]
    }

    /// Returns the trace's mix of requests, and the requests that follow them.
    ///
    /// # Errors
    /// The errors of [`Describer::add`].
    pub fn stat(&self) -> Result<Option<StorageStat>, TraceError> {
        let mut describer = Describer::new();
        describer.add(&self.batch)?;
        Ok(describer.finish(Vec::new()).storage)
    }
}

/// All traces of a repetition.
pub(super) struct Traces {
    scale: Scale,
    record: RecordLi,
    repetition: u32,
    kept: Vec<Arc<Trace>>,
    /// Recording that several traces share.
    shared: Option<(&'static str, Arc<Recorded>)>,
    /// References that the MySQL-like first tiers serve.
    references: Option<Arc<Recorded>>,
    /// References that the systems of chapter 4 serve.
    of_chapter_4: Option<Arc<Recorded>>,
}

impl Traces {
    pub fn new(scale: Scale, record: RecordLi) -> Traces {
        let kept = Vec::new();
        let (shared, references, of_chapter_4) = (None, None, None);
        Traces { scale, record, repetition: 0, kept, shared, references, of_chapter_4 }
    }

    /// Drops the traces and recordings of other repetitions.
    fn turn_to(&mut self, repetition: u32) {
        if self.repetition != repetition {
            self.kept.clear();
            self.shared = None;
            self.references = None;
            self.of_chapter_4 = None;
            self.repetition = repetition;
        }
    }

    /// Returns the page references of chapter 4's TPC-C in a repetition.
    ///
    /// # Errors
    /// [`FigureError`].
    pub fn of_chapter_4(
        &mut self,
        repetition: u32,
        watch: &mut dyn Watch,
    ) -> Result<Arc<Recorded>, FigureError> {
        self.turn_to(repetition);
        if let Some(references) = &self.of_chapter_4 {
            return Ok(references.clone());
        }
        watch.detail("recording TPC-C");
        let course = Course::of_chapter_4(self.scale);
        let recorded = Arc::new((self.record)(None, &course, u64::from(repetition), watch)?);
        self.of_chapter_4 = Some(recorded.clone());
        Ok(recorded)
    }

    /// Returns the trace of this name in a repetition.
    ///
    /// # Errors
    /// [`FigureError`].
    pub fn get(
        &mut self,
        name: &str,
        repetition: u32,
        watch: &mut dyn Watch,
    ) -> Result<Arc<Trace>, FigureError> {
        self.turn_to(repetition);
        if let Some(kept) = self.kept.iter().find(|kept| kept.name == name) {
            return Ok(kept.clone());
        }
        let unknown = || FigureError::Failed(format!("no trace is called '{name}'").into());
        let first_tier = first_tier(name).ok_or_else(unknown)?;
        let course = Course::of(self.scale);
        watch.detail(&format!("recording {name}"));
        let made = match first_tier.family {
            Family::Db2 => {
                let recorded = self.recorded(first_tier, &course, watch)?;
                let batch = match first_tier.dsyncs {
                    Dsyncs::Added => deferred(&recorded.batch, &recorded.rec_lsns),
                    Dsyncs::Sent => recorded.batch.clone(),
                };
                Trace::of(name, batch, recorded.data_pages)
            }
            Family::Mysql => {
                let references = self.references(&course, watch)?;
                let batch = simulated(first_tier, &references, repetition)?;
                Trace::of(name, batch, references.data_pages)
            }
        };
        let made = Arc::new(made);
        self.kept.push(made.clone());
        Ok(made)
    }

    /// Returns the recorded storage requests of the engine, kept while another trace may use them.
    fn recorded(
        &mut self,
        first_tier: &FirstTier,
        course: &Course,
        watch: &mut dyn Watch,
    ) -> Result<Arc<Recorded>, FigureError> {
        if let Some((_, there)) = self.shared.as_ref().filter(|of| of.0 == first_tier.recording) {
            return Ok(there.clone());
        }
        let seed = u64::from(self.repetition);
        let recorded = Arc::new((self.record)(Some(first_tier), course, seed, watch)?);
        if first_tier.recording != first_tier.name {
            self.shared = Some((first_tier.recording, recorded.clone()));
        }
        Ok(recorded)
    }

    fn references(
        &mut self,
        course: &Course,
        watch: &mut dyn Watch,
    ) -> Result<Arc<Recorded>, FigureError> {
        if let Some(references) = &self.references {
            return Ok(references.clone());
        }
        let recorded = (self.record)(None, course, u64::from(self.repetition), watch)?;
        let recorded = Arc::new(recorded);
        self.references = Some(recorded.clone());
        Ok(recorded)
    }
}

/// References in memory as a source.
pub(super) struct Given {
    recorded: Arc<Recorded>,
    at: usize,
}

impl Given {
    pub fn new(recorded: &Arc<Recorded>) -> Given {
        Given { recorded: recorded.clone(), at: 0 }
    }
}

impl Source for Given {
    fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError> {
        let from = &self.recorded.batch;
        let range = self.at..from.len().min(self.at + limit);
        batch.pages.extend_from_slice(&from.pages[range.clone()]);
        batch.marks.extend_from_slice(&from.marks[range.clone()]);
        self.at = range.end;
        Ok(range.len())
    }

    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// InnoDB's default for the share of the pool that may be dirty.
const MYSQL_DIRTY: f64 = 0.9;
/// Part of the references that warms up the pool.
const WARM: f64 = 0.2;

/// Returns the storage requests of a warm MySQL-like pool.
fn simulated(
    first_tier: &FirstTier,
    references: &Arc<Recorded>,
    repetition: u32,
) -> Result<Batch, FigureError> {
    let writes = |marks: &[Mark]| marks.iter().filter(|mark| mark.is_write()).count() as u64;
    let marks = &references.batch.marks;
    let warm = writes(&marks[..(marks.len() as f64 * WARM) as usize]);
    let frames = (references.data_pages as f64 * first_tier.percent / 100.0).ceil() as u32;
    let gap = (writes(marks) as f64 * first_tier.gap) as u64;
    let mut options = Tier1Options::new(frames.max(8), gap);
    options.cleaning.dirty = Share(MYSQL_DIRTY);
    options.cleaning.neighbours = true;
    options.readahead = true;
    options.seed = u64::from(repetition);
    let registry = Registry::builtin();
    let entry = registry.find("lru").map_err(FigureError::of)?;
    let spec = Spec::parse("lru").map_err(FigureError::of)?;
    let given = Given::new(references);
    let mut source = entry.tier1(&spec, &options, Box::new(given)).map_err(FigureError::of)?;
    let (mut all, mut batch) = (Batch::default(), Batch::with_capacity(BATCH_LEN));
    loop {
        batch.clear();
        if source.fill(&mut batch, BATCH_LEN).map_err(FigureError::of)? == 0 {
            return Ok(all);
        }
        for at in 0..batch.len() {
            if batch.lsns[at].0 > warm {
                all.push(batch.pages[at], batch.marks[at]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_their_reasons() {
        let mut batch = Batch::default();
        let write = |reason| Mark::WRITE.with_reason(reason);
        batch.push(1, Mark::READ);
        for reason in [Reason::Replace, Reason::Recov, Reason::Synch, Reason::Dsync, Reason::Dsync]
        {
            batch.push(1, write(reason));
        }
        let all = Trace::of("t", batch, 1).requests();
        let one = Requests { reads: 1, replace: 1, recov: 1, others: 1, dsyncs: 2 };
        assert_eq!(all, one);
        assert_eq!((all.share(all.reads), all.dsyncs_per_write()), (0.25, 2.0 / 3.0));
        assert_eq!(Requests::default().dsyncs_per_write(), 0.0);
    }

    #[test]
    fn reads_of_pages_that_are_never_written_are_told_apart() {
        let write = |reason| Mark::WRITE.with_reason(reason);
        let mut batch = Batch::default();
        for (page, mark) in [
            (1, Mark::READ),
            (1, Mark::READ),
            (2, Mark::READ),
            (2, Mark::READ),
            (2, write(Reason::Dsync)),
            (2, write(Reason::Replace)),
            (2, Mark::READ),
            (3, write(Reason::Recov)),
        ] {
            batch.push(page, mark);
        }
        let [unwritten, written] = Trace::of("t", batch, 1).unwritten();
        assert_eq!(unwritten, ("unwritten_share", Some(0.4)), "two of five");
        assert_eq!(written, ("read_then_write_written", Some(0.5)), "one of page 2's two");
        let nothing = Trace::of("t", Batch::default(), 1).unwritten();
        assert!(nothing.iter().all(|(_, value)| value.is_none()));
    }

    #[test]
    fn of_early_requests_it_is_known_what_follows() {
        let replace = Mark::WRITE.with_reason(Reason::Replace);
        let mut batch = Batch::default();
        let early = [(1, Mark::READ), (2, replace), (3, replace), (4, Mark::READ)];
        let later = [(1, replace), (2, Mark::READ), (4, Mark::READ), (5, replace), (6, Mark::READ)];
        let last = [(5, Mark::READ), (3, Mark::WRITE.with_reason(Reason::Dsync)), (3, replace)];
        for (page, mark) in early.into_iter().chain(later).chain(last) {
            batch.push(page, mark);
        }
        let [read, write] = Trace::of("t", batch, 1).early();
        assert_eq!(read, ("read_then_write_early", Some(0.5)));
        assert_eq!(write, ("replace_then_read_early", Some(0.5)), "a dsync follows nothing");
        let nothing = Trace::of("t", Batch::default(), 1).early();
        assert!(nothing.iter().all(|(_, value)| value.is_none()));
    }

    #[test]
    fn traces_of_one_recording_differ_in_their_dsync_requests_alone() {
        let times = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let counted = times.clone();
        let record: RecordLi = Box::new(move |_, _, _, _| {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let mut recorded = Recorded { data_pages: 10, ..Recorded::default() };
            let write = |reason| Mark::WRITE.with_reason(reason);
            for (page, mark, rec_lsn) in [
                (7, write(Reason::Replace), 10),
                (7, write(Reason::Dsync), 0),
                (8, write(Reason::Replace), 30),
                (9, write(Reason::Recov), 20),
            ] {
                recorded.batch.push(page, mark);
                recorded.rec_lsns.push(rec_lsn);
            }
            Ok(recorded)
        });
        let mut traces = Traces::new(Scale::Quick, record);
        let mut dsyncs = |name: &str, repetition: u32| {
            let trace = traces.get(name, repetition, &mut crate::experiment::Unwatched).unwrap();
            let is_dsync = |at: &usize| trace.batch.marks[*at].is_dsync();
            (0..trace.batch.len()).filter(is_dsync).collect::<Vec<_>>()
        };
        assert_eq!(dsyncs("listed-sent", 1), [1], "as the engine sent it");
        assert_eq!(dsyncs("listed-added", 1), [3, 4], "of page 7 and of the RECOV write itself");
        assert_eq!(times.load(std::sync::atomic::Ordering::Relaxed), 1);
        dsyncs("listed-added", 2);
        dsyncs("300k_400", 2);
        assert_eq!(times.load(std::sync::atomic::Ordering::Relaxed), 3);
    }
}
