//! Paper twins of the second-tier policies: the thesis' words, restated slowly and obviously, must
//! keep the very same pages.

use std::collections::HashMap;

use crate::tier2_util::{random_trace, run};
use millpond_base::{Mark, Reason};
use millpond_lab::tier2::{Model, Tier2Cell, Tier2Options, Tier2Simulation};
use millpond_policies::contract::Policy;
use millpond_policies::tier2 as ours;
use millpond_workload::trace::Batch;

/// A slow second tier.
trait Twin {
    fn new(frames: usize, model: Model) -> Self;
    fn request(&mut self, page: u64, mark: Mark);
    fn dsync(&mut self, _page: u64) {}
    fn pages(&self) -> Vec<u64>;
}

/// The type of a request, in the order of LRU-IO's lists.
fn kind(mark: Mark) -> u8 {
    match (mark.is_write(), mark.reason()) {
        (false, _) => 0,
        (_, Reason::Recov) => 1,
        (_, Reason::Replace) => 2,
        _ => 3,
    }
}

fn assert_same<P: Policy, T: Twin>(letters: &[u8]) {
    for (seed, pages, frames) in [(1, 4, 1), (2, 6, 2), (3, 9, 3), (4, 40, 12), (5, 150, 40)] {
        let rows = random_trace(seed, 4_000, pages, letters);
        for model in [Model::Read, Model::Rw] {
            let options = Tier2Options::new(frames, Some(pages), model);
            let mut cell = Tier2Cell::new::<P>(&P::Config::default(), &options);
            let mut twin = T::new(frames as usize, model);
            for at in 0..rows.len() {
                let (page, mark) = (rows.pages[at], rows.marks[at]);
                let mut row = Batch::default();
                row.push(page, mark);
                cell.run(&row, None).unwrap();
                match mark.reason() {
                    Reason::Dsync if model == Model::Rw => twin.dsync(page),
                    Reason::Dsync => {}
                    _ => twin.request(page, mark),
                }
                let (mut here, mut there) = (cell.pages(), twin.pages());
                here.sort_unstable();
                there.sort_unstable();
                let here: Vec<u64> = here.iter().map(|p| p.0).collect();
                assert_eq!(here, there, "{} seed {seed} {model:?} row {at}", P::INFO.id);
            }
        }
    }
}

/// Algorithm 3.1: the list as a vector, the LRU end first.
struct LruHints(Vec<u64>, usize, Model);

impl Twin for LruHints {
    fn new(frames: usize, model: Model) -> Self {
        LruHints(Vec::new(), frames, model)
    }

    fn request(&mut self, page: u64, mark: Mark) {
        let positive = kind(mark) >= 2;
        let found = self.0.iter().position(|p| *p == page);
        if found.is_some() && !positive {
            return;
        }
        if found.is_none() && self.0.len() == self.1 {
            if !positive && self.2 == Model::Read {
                return;
            }
            self.0.remove(0);
        }
        self.0.retain(|p| *p != page);
        if positive { self.0.push(page) } else { self.0.insert(0, page) }
    }

    fn pages(&self) -> Vec<u64> {
        self.0.clone()
    }
}

#[derive(Clone)]
struct Cached {
    page: u64,
    dirty: bool,
    kind: u8,
    time: u64,
}

/// Algorithm 5.2: clean pages in four lists, dirty ones by recency.
struct LruIo(Vec<Cached>, usize, Model, u64);

impl Twin for LruIo {
    fn new(frames: usize, model: Model) -> Self {
        LruIo(Vec::new(), frames, model, 0)
    }

    fn request(&mut self, page: u64, mark: Mark) {
        self.3 += 1;
        let was_dirty = self.0.iter().any(|c| c.page == page && c.dirty);
        if !self.0.iter().any(|c| c.page == page) && self.0.len() == self.1 {
            let clean = self.0.iter().filter(|c| !c.dirty).min_by_key(|c| (c.kind, c.time));
            let oldest = self.0.iter().min_by_key(|c| c.time);
            let victim = clean.or(oldest).unwrap().page;
            self.0.retain(|c| c.page != victim);
        }
        self.0.retain(|c| c.page != page);
        let dirty = (was_dirty || mark.is_write()) && self.2 == Model::Rw;
        self.0.push(Cached { page, dirty, kind: kind(mark), time: self.3 });
    }

    fn dsync(&mut self, page: u64) {
        self.0.iter_mut().filter(|c| c.page == page).for_each(|c| c.dirty = false);
    }

    fn pages(&self) -> Vec<u64> {
        self.0.iter().map(|c| c.page).collect()
    }
}

#[derive(Clone, Default)]
struct Statistics {
    last_write: Option<u64>,
    distances: Vec<u64>,
}

impl Statistics {
    /// avgWriteReadDist.
    fn average(&self) -> Option<u64> {
        let count = self.distances.len() as u64;
        (count > 0).then(|| self.distances.iter().sum::<u64>() / count)
    }
}

/// Algorithm 3.2, and with `IO` its extension. Each queue is a vector, the oldest arrival first.
struct Tq<const IO: bool> {
    unwanted: Vec<u64>,
    low: Vec<u64>,
    high: Vec<u64>,
    next_read: HashMap<u64, Option<u64>>,
    out: Vec<u64>,
    statistics: HashMap<u64, Statistics>,
    dirty: HashMap<u64, bool>,
    frames: usize,
    model: Model,
    position: u64,
    was_full: bool,
}

impl<const IO: bool> Tq<IO> {
    /// The page of `queue` that is predicted to be read last; None is never, the first of equals.
    fn latest(&self, queue: &[u64]) -> Option<u64> {
        let key = |page: &u64| self.next_read[page].unwrap_or(u64::MAX);
        let last = queue.iter().map(key).max()?;
        queue.iter().copied().find(|page| key(page) == last)
    }

    fn victim(&self) -> u64 {
        let some = |queue: &[u64], dirty: bool| -> Vec<u64> {
            queue.iter().copied().filter(|p| !IO || self.dirty[p] == dirty).collect()
        };
        let mut order = Vec::new();
        for dirty in [false, true] {
            let unwanted = some(&self.unwanted, dirty).first().copied();
            let low = some(&self.low, dirty).first().copied();
            let high = self.latest(&some(&self.high, dirty));
            let clean_first = IO && !dirty;
            order.extend(if clean_first { [unwanted, high, low] } else { [unwanted, low, high] });
        }
        order.into_iter().flatten().next().unwrap()
    }

    fn leave(&mut self, page: u64) {
        for queue in [&mut self.unwanted, &mut self.low, &mut self.high] {
            queue.retain(|p| *p != page);
        }
    }

    fn evict(&mut self) {
        let victim = self.victim();
        self.leave(victim);
        while self.out.len() >= self.frames {
            let key = |page: &u64| self.statistics[page].average().unwrap_or(u64::MAX);
            let last = self.out.iter().map(key).max().unwrap();
            let at = self.out.iter().position(|page| key(page) == last).unwrap();
            let dropped = self.out.remove(at);
            self.statistics.remove(&dropped);
        }
        self.out.push(victim);
    }
}

impl<const IO: bool> Twin for Tq<IO> {
    fn new(frames: usize, model: Model) -> Self {
        Tq {
            unwanted: Vec::new(),
            low: Vec::new(),
            high: Vec::new(),
            next_read: HashMap::new(),
            out: Vec::new(),
            statistics: HashMap::new(),
            dirty: HashMap::new(),
            frames,
            model,
            position: 0,
            was_full: false,
        }
    }

    fn request(&mut self, page: u64, mark: Mark) {
        self.position += 1;
        let cached = self.pages().contains(&page);
        let (read, positive) = (kind(mark) == 0, kind(mark) >= 2);
        if read && (cached || self.out.contains(&page)) {
            let known = self.statistics.entry(page).or_default();
            if let Some(written) = known.last_write.take() {
                known.distances.push(self.position - written);
                if let Some(at) = self.out.iter().position(|p| *p == page) {
                    // Its average is new, and so is its place among equals.
                    self.out.remove(at);
                    self.out.push(page);
                }
            }
        }
        let wanted = positive || !self.was_full;
        if !cached && !wanted && self.model == Model::Read {
            return;
        }
        if !cached {
            self.out.retain(|p| *p != page);
            if self.pages().len() == self.frames {
                self.evict();
            }
        }
        let dirty = mark.is_write() || (cached && self.dirty[&page]);
        self.dirty.insert(page, dirty && self.model == Model::Rw);
        if positive && !self.high.contains(&page) {
            self.leave(page);
            let known = self.statistics.entry(page).or_default();
            let written = *known.last_write.get_or_insert(self.position);
            let next_read = known.average().map(|average| written + average);
            self.next_read.insert(page, next_read);
            self.high.push(page);
        } else if read && (cached || wanted) || !cached && wanted && !positive {
            self.leave(page);
            self.low.push(page);
        } else if !cached && !positive {
            self.unwanted.push(page);
        }
        self.statistics.entry(page).or_default();
        self.was_full |= self.pages().len() == self.frames;
    }

    fn dsync(&mut self, page: u64) {
        self.dirty.insert(page, false);
    }

    fn pages(&self) -> Vec<u64> {
        [&self.unwanted[..], &self.low, &self.high].concat()
    }
}

/// ARC in its four cases, and before REPLACE the search of algorithm 5.3 if `IO`. Lists are
/// vectors, the LRU end first.
struct Arc<const IO: bool> {
    lists: [Vec<u64>; 4],
    target: f64,
    frames: usize,
    model: Model,
    time: u64,
    known: HashMap<u64, Cached>,
}

const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;

impl<const IO: bool> Arc<IO> {
    fn replace(&mut self, in_b2: bool) {
        let clean = |list: &[u64]| {
            let clean = list.iter().filter(|p| IO && !self.known[p].dirty);
            clean.min_by_key(|p| (self.known[p].kind, self.known[p].time)).copied()
        };
        let t1 = self.lists[T1].len() as f64;
        let (from, victim) = if let Some(page) = clean(&self.lists[T1]) {
            (T1, page)
        } else if let Some(page) = clean(&self.lists[T2]) {
            (T2, page)
        } else if t1 >= 1.0 && (t1 > self.target || (in_b2 && t1 == self.target))
            || self.lists[T2].is_empty()
        {
            (T1, self.lists[T1][0])
        } else {
            (T2, self.lists[T2][0])
        };
        self.lists[from].retain(|p| *p != victim);
        self.lists[from + 2].push(victim);
    }

    fn of(&self, page: u64) -> Option<usize> {
        (0..4).find(|l| self.lists[*l].contains(&page))
    }

    fn place(&mut self, page: u64) {
        let (b1, b2) = (self.lists[B1].len() as f64, self.lists[B2].len() as f64);
        let c = self.frames as f64;
        let found = self.of(page);
        self.lists.iter_mut().for_each(|l| l.retain(|p| *p != page));
        match found {
            Some(B1) => {
                self.target = (self.target + (b2 / b1).max(1.0)).min(c);
                self.replace(false);
            }
            Some(B2) => {
                self.target = (self.target - (b1 / b2).max(1.0)).max(0.0);
                self.replace(true);
            }
            Some(_) => {}
            None => {
                let recent = self.lists[T1].len() + self.lists[B1].len();
                let all: usize = self.lists.iter().map(Vec::len).sum();
                let cached = self.lists[T1].len() + self.lists[T2].len();
                if recent == self.frames {
                    if self.lists[T1].len() < self.frames {
                        self.lists[B1].remove(0);
                        self.replace(false);
                    } else {
                        self.replace(false);
                        self.lists[B1].pop();
                    }
                } else if all >= self.frames {
                    if all == 2 * self.frames {
                        self.lists[B2].remove(0);
                    }
                    if cached == self.frames {
                        self.replace(false);
                    }
                }
            }
        }
        self.lists[if found.is_none() { T1 } else { T2 }].push(page);
    }
}

impl<const IO: bool> Twin for Arc<IO> {
    fn new(frames: usize, model: Model) -> Self {
        let known = HashMap::new();
        Arc { lists: Default::default(), target: 0.0, frames, model, time: 0, known }
    }

    fn request(&mut self, page: u64, mark: Mark) {
        self.time += 1;
        let cached = matches!(self.of(page), Some(T1 | T2));
        let was_dirty = cached && self.known[&page].dirty;
        self.place(page);
        let dirty = (was_dirty || mark.is_write()) && self.model == Model::Rw;
        self.known.insert(page, Cached { page, dirty, kind: kind(mark), time: self.time });
    }

    fn dsync(&mut self, page: u64) {
        if let Some(known) = self.known.get_mut(&page) {
            known.dirty = false;
        }
    }

    fn pages(&self) -> Vec<u64> {
        [&self.lists[T1][..], &self.lists[T2]].concat()
    }
}

/// MQ over positive requests only (3.3.3) if `HINTS`, over all if not: 80 queues, no page sinks
/// within so short a trace.
struct Mq<const HINTS: bool> {
    /// Page, its count, whether it takes the next victim's place; the oldest use first.
    cached: Vec<(u64, usize, bool)>,
    out: Vec<(u64, usize)>,
    frames: usize,
    model: Model,
    was_full: bool,
}

impl<const HINTS: bool> Twin for Mq<HINTS> {
    fn new(frames: usize, model: Model) -> Self {
        Mq { cached: Vec::new(), out: Vec::new(), frames, model, was_full: false }
    }

    fn request(&mut self, page: u64, mark: Mark) {
        let counts = !HINTS || kind(mark) >= 2;
        if let Some(at) = self.cached.iter().position(|(p, ..)| *p == page) {
            if counts {
                let (_, count, _) = self.cached.remove(at);
                self.cached.push((page, count + 1, false));
            }
            return;
        }
        let wanted = counts || !self.was_full;
        if !wanted && self.model == Model::Read {
            return;
        }
        let known = self.out.iter().position(|(p, _)| *p == page);
        let count = known.map_or(0, |at| self.out.remove(at).1);
        if self.cached.len() == self.frames {
            let unwanted = self.cached.iter().rposition(|(.., unwanted)| *unwanted);
            let queue = |(_, count, _): &(u64, usize, bool)| (*count).clamp(1, 80);
            let lowest = self.cached.iter().map(queue).min();
            let at = unwanted.or(self.cached.iter().position(|c| Some(queue(c)) == lowest));
            let (victim, count, _) = self.cached.remove(at.unwrap());
            if self.out.len() == self.frames {
                self.out.remove(0);
            }
            self.out.push((victim, count));
        }
        self.cached.push(if wanted { (page, count + 1, false) } else { (page, count, true) });
        self.was_full |= self.cached.len() == self.frames;
    }

    fn pages(&self) -> Vec<u64> {
        self.cached.iter().map(|(page, ..)| *page).collect()
    }
}

const MIXED: &[u8] = b"rrrrwwwwcsdd";

#[test]
fn lru_hints_keeps_what_algorithm_3_1_keeps() {
    assert_same::<ours::LruHints, LruHints>(MIXED);
}

#[test]
fn mq_hints_keeps_what_mq_over_positive_requests_keeps() {
    assert_same::<ours::MqHints, Mq<true>>(MIXED);
    assert_same::<ours::T2Mq, Mq<false>>(MIXED);
}

#[test]
fn tq_keeps_what_algorithm_3_2_keeps() {
    assert_same::<ours::Tq, Tq<false>>(MIXED);
    assert_same::<ours::Tq, Tq<false>>(b"rw");
}

#[test]
fn tq_io_keeps_what_its_description_keeps() {
    assert_same::<ours::TqIo, Tq<true>>(MIXED);
}

#[test]
fn lru_io_keeps_what_algorithm_5_2_keeps() {
    assert_same::<ours::LruIo, LruIo>(MIXED);
    assert_same::<ours::LruIo, LruIo>(b"rwcsd");
}

#[test]
fn arc_io_keeps_what_algorithm_5_3_keeps() {
    assert_same::<ours::ArcIo, Arc<true>>(MIXED);
    assert_same::<ours::T2Arc, Arc<false>>(MIXED);
}

#[test]
fn baselines_are_the_first_tiers_policies_under_other_names() {
    let rows = random_trace(9, 20_000, 400, MIXED);
    let mq = "(queues=8,rank=log2,life=700,out=1)";
    let (t2_mq, mq) = (format!("t2-mq{mq}"), format!("mq{mq}"));
    for (second, first) in [("t2-lru", "lru"), ("t2-arc", "arc"), (&t2_mq, &mq)] {
        for model in [Model::Read, Model::Rw] {
            let (a, b) = (run(second, &rows, 400, 50, model), run(first, &rows, 400, 50, model));
            assert_eq!((a.hits, a.total()), (b.hits, b.total()), "{second} {model:?}");
        }
    }
}

#[test]
fn lru_io_without_dsync_and_reads_is_lru() {
    let rows = random_trace(10, 8_000, 100, b"wcs");
    let (io, lru) =
        (run("lru-io", &rows, 100, 20, Model::Rw), run("lru", &rows, 100, 20, Model::Rw));
    assert_eq!((io.hits, io.total()), (lru.hits, lru.total()));
}
