//! TPC-C recorded from our engine, and changes of the trace before simulation.

use std::collections::VecDeque;
use std::sync::Arc;

use millpond_base::{Mark, PageKind};
use millpond_workload::trace::Batch;

use crate::experiment::{FigureError, Scale, Watch};
use millpond_lab::sim::Renumber;

/// A recorded run of TPC-C.
pub struct Tpcc {
    /// References of the run.
    pub batch: Batch,
    /// Pages of the data at the start of the run, of which pools are shares.
    pub data_pages: u64,
}

/// Records TPC-C on an engine, by scale and by repetition, which is also the seed.
pub type RecordTpcc =
    Box<dyn FnMut(Scale, u64, &mut dyn Watch) -> Result<Tpcc, FigureError> + Send>;

/// Returns the warehouses at a scale; the paper has ten.
pub fn warehouses(scale: Scale) -> u32 {
    scale.pick(1, 2, 10)
}

/// Returns the references at a scale; the paper's runs have 0.3 to 2 million (table 2).
pub fn references(scale: Scale) -> usize {
    scale.pick(20_000, 1_000_000, 2_000_000)
}

/// Change made to the recorded trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// Nothing.
    None,
    /// The first half is simulated and not counted.
    Warm,
    /// Only the first tenth.
    Short,
    /// Ten clients in turn, four references each.
    Clients,
    /// Without references to one of the 32 most recent pages.
    NoRepeats,
    /// With a second reference to every page, this number of references later.
    Repeats(u32),
    /// Only the first tenth, with a second reference to every page 1,000 references later.
    ShortRepeats,
    /// With a scan of 2 % of the data in every 10,000 references, each after the last one.
    Scan,
    /// With a scan of the same 2 % of the data in every 10,000 references.
    Loop,
    /// Without the inner pages of trees.
    Leaves,
}

/// Each change with its name in rows.
pub(super) const CHANGES: [(&str, Change); 13] = [
    ("as recorded", Change::None),
    ("first half not counted", Change::Warm),
    ("first tenth only", Change::Short),
    ("ten clients in turn", Change::Clients),
    ("no repeats within 32", Change::NoRepeats),
    ("a repeat after 50", Change::Repeats(50)),
    ("a repeat after 200", Change::Repeats(200)),
    ("a repeat after 1000", Change::Repeats(1000)),
    ("a repeat after 2000", Change::Repeats(2000)),
    ("a repeat after 1000, first tenth only", Change::ShortRepeats),
    ("scans mixed in", Change::Scan),
    ("a loop mixed in", Change::Loop),
    ("leaves only", Change::Leaves),
];

const CLIENTS: usize = 10;
const IN_TURN: usize = 4;
const NEAR: usize = 32;
const LATER: u32 = 1000;
const EVERY: usize = 10_000;
/// Share of the data that a scan reads.
const SCANNED: f64 = 0.02;
/// First page of scans, which share no page with the run.
const ELSEWHERE: u64 = 1 << 40;

/// A changed trace, ready to be simulated.
pub(super) struct Changed {
    pub batch: Batch,
    pub distinct: u64,
    pub data_pages: u64,
    /// References of the warm-up.
    pub warmup: u64,
}

impl Changed {
    /// Returns the trace after a change, with renumbered pages.
    pub fn of(trace: &Tpcc, change: Change) -> Changed {
        let data_pages = trace.data_pages.max(1);
        let mut batch = changed(&trace.batch, change, data_pages);
        let mut renumber = Renumber::new();
        renumber.apply(&mut batch);
        let warmup = if change == Change::Warm { batch.len() as u64 / 2 } else { 0 };
        Changed { distinct: renumber.distinct(), batch, data_pages, warmup }
    }
}

fn changed(from: &Batch, change: Change, data_pages: u64) -> Batch {
    let mut to = Batch::with_capacity(from.len());
    let references = || from.pages.iter().copied().zip(from.marks.iter().copied());
    let copy = |to: &mut Batch, range: std::ops::Range<usize>| {
        let part = from.pages[range.clone()].iter().zip(&from.marks[range]);
        part.for_each(|(page, mark)| to.push(*page, *mark));
    };
    match change {
        Change::None | Change::Warm => copy(&mut to, 0..from.len()),
        Change::Short => copy(&mut to, 0..from.len() / 10),
        Change::Clients => {
            let each = from.len() / CLIENTS;
            for turn in (0..each).step_by(IN_TURN) {
                let end = (turn + IN_TURN).min(each);
                (0..CLIENTS).for_each(|at| copy(&mut to, at * each + turn..at * each + end));
            }
        }
        Change::NoRepeats => {
            let mut last: VecDeque<u64> = VecDeque::new();
            for (page, mark) in references() {
                let is_near = last.contains(&page);
                last.retain(|other| *other != page);
                last.push_back(page);
                if last.len() > NEAR {
                    last.pop_front();
                }
                if !is_near {
                    to.push(page, mark);
                }
            }
        }
        Change::Repeats(later) => to = repeated(from, later),
        Change::ShortRepeats => {
            copy(&mut to, 0..from.len() / 10);
            to = repeated(&to, LATER);
        }
        Change::Scan | Change::Loop => {
            let pages = (data_pages as f64 * SCANNED).ceil() as u64;
            let mut at = 0;
            for from in (0..from.len()).step_by(EVERY) {
                copy(&mut to, from..(from + EVERY).min(references().len()));
                (0..pages).for_each(|page| {
                    let page = if change == Change::Loop { page } else { (at + page) % data_pages };
                    to.push(ELSEWHERE + page, Mark::READ);
                });
                at += pages;
            }
        }
        Change::Leaves => {
            let leaves = references().filter(|(_, mark)| mark.kind() == PageKind::BTREE_LEAF);
            leaves.for_each(|(page, mark)| to.push(page, mark));
        }
    }
    to
}

/// Repeats every reference, `later` references after it.
fn repeated(from: &Batch, later: u32) -> Batch {
    let mut to = Batch::with_capacity(from.len() * 2);
    let mut waiting: VecDeque<(u64, Mark)> = VecDeque::new();
    for (page, mark) in from.pages.iter().zip(&from.marks) {
        to.push(*page, *mark);
        waiting.push_back((*page, *mark));
        // Half of the passing references are repeats.
        if waiting.len() > later as usize / 2
            && let Some((page, mark)) = waiting.pop_front()
        {
            to.push(page, mark);
        }
    }
    to
}

/// Recorded traces of one repetition, and the last changed trace.
pub(super) struct Traces {
    scale: Scale,
    record: RecordTpcc,
    recorded: Option<(u32, Tpcc)>,
    last: Option<(u32, Change, Arc<Changed>)>,
}

impl Traces {
    pub fn new(scale: Scale, record: RecordTpcc) -> Traces {
        Traces { scale, record, recorded: None, last: None }
    }

    /// Returns the changed trace of a repetition.
    ///
    /// # Errors
    /// [`FigureError`].
    pub fn get(
        &mut self,
        change: Change,
        repetition: u32,
        watch: &mut dyn Watch,
    ) -> Result<Arc<Changed>, FigureError> {
        if let Some((of, kind, made)) = &self.last
            && (*of, *kind) == (repetition, change)
        {
            return Ok(made.clone());
        }
        if self.recorded.as_ref().is_none_or(|(of, _)| *of != repetition) {
            self.recorded = None;
            watch.detail("recording TPC-C");
            let trace = (self.record)(self.scale, u64::from(repetition), watch)?;
            self.recorded = Some((repetition, trace));
        }
        let Some((_, trace)) = &self.recorded else { return Err(FigureError::Stopped) };
        let made = Arc::new(Changed::of(trace, change));
        self.last = Some((repetition, change, made.clone()));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(pages: &[u64]) -> Batch {
        let mut batch = Batch::default();
        pages.iter().for_each(|page| batch.push(*page, Mark::READ));
        batch
    }

    #[test]
    fn each_change_does_what_it_says() {
        let long: Vec<u64> = (0..400).collect();
        let run = trace(&long);
        let pages = |change| changed(&run, change, 100).pages;
        assert_eq!(pages(Change::None), long);
        assert_eq!(pages(Change::Warm), long);
        assert_eq!(pages(Change::Short), long[..40]);
        assert_eq!(pages(Change::Clients)[..9], [0, 1, 2, 3, 40, 41, 42, 43, 80]);
        let mut all = pages(Change::Clients);
        all.sort_unstable();
        assert_eq!(all, long, "the same references in another order");
        let near = changed(&trace(&[1, 2, 1, 1, 3, 2]), Change::NoRepeats, 9).pages;
        assert_eq!(near, [1, 2, 3]);
        let repeated = pages(Change::Repeats(200));
        let at: Vec<usize> = (0..repeated.len()).filter(|at| repeated[*at] == 150).collect();
        assert!(at.len() == 2 && at[1] - at[0] == 201, "{at:?}");
        assert_eq!(pages(Change::ShortRepeats), long[..40], "too short for a repeat");
        assert_eq!(pages(Change::Repeats(2))[..6], [0, 1, 0, 2, 1, 3]);
        assert_eq!(pages(Change::Loop)[400..], [ELSEWHERE, ELSEWHERE + 1]);
        let twice = changed(&trace(&vec![0; EVERY + 1]), Change::Scan, 100).pages;
        assert_eq!(twice[EVERY..EVERY + 2], [ELSEWHERE, ELSEWHERE + 1]);
        assert_eq!(twice[EVERY + 3..], [ELSEWHERE + 2, ELSEWHERE + 3]);
        let looped = changed(&trace(&vec![0; EVERY + 1]), Change::Loop, 100).pages;
        assert_eq!(looped[EVERY + 3..], [ELSEWHERE, ELSEWHERE + 1]);
        let mut mixed = trace(&[5]);
        mixed.push(6, Mark::READ.with_kind(PageKind::BTREE_LEAF, 2));
        assert_eq!(changed(&mixed, Change::Leaves, 9).pages, [6]);
        let made = Changed::of(&Tpcc { batch: run.clone(), data_pages: 100 }, Change::Warm);
        assert_eq!((made.warmup, made.distinct, made.data_pages), (200, 400, 100));
    }

    #[test]
    fn repeats_beyond_its_queue_put_lirs_far_below_lru() {
        let made = super::super::work::made("probabilistic", "pages=10k,refs=100k", 1).unwrap();
        let hits = |policy: &str, batch: &Batch| {
            let work = super::super::work::Work::clean(vec![batch.clone()]);
            let registry = millpond_lab::registry::Registry::builtin();
            super::super::work::play(&registry, policy, 1000, &work, 1).unwrap()[0].hits
        };
        let (lirs, lru) = ("lirs(hirs=1%,stack=1.5x)", "lru");
        let above = |batch: &Batch| hits(lirs, batch) as i64 - hits(lru, batch) as i64;
        let (alone, soon, late) =
            (above(&made), above(&repeated(&made, 4)), above(&repeated(&made, 500)));
        assert!(alone > 1000, "as in our TPC-C: {alone}");
        // The queue of ten frames holds a page until a repeat five references later, but not 500.
        assert!(soon.abs() < alone / 10, "a repeat at once makes it LRU's like: {soon}");
        assert!(late < -10_000, "one after its queue puts it far below: {late}");
    }
}
