//! A lower bound on the total I/O of any policy in the read-write model.
//!
//! # The programme
//!
//! Number the page requests 0, 1, …, without dsync rows. Between two requests of a page, and after
//! its last one, the page either stays in the cache or is evicted. If it stays from request `i` to
//! request `j`, it takes a frame while each of the requests between them is served. The requested
//! page takes a frame, too. So of `C` frames `C - 1` are left for pages that stay over a request: a
//! *capacity* for each request. A policy that evicts a page later than at once takes more room and
//! saves nothing by it, so every run of every policy is a choice of this kind.
//!
//! The cost of a choice beyond the unavoidable I/O (li 5.4.1.3) is the sum of the costs of its
//! evictions (definition 5.6; `tier2_models` holds every policy to that sum). An eviction costs a
//! read if the page's next request is one. It costs a write if the page was written since it was
//! last loaded and no dsync is due before its next write. Apart from the capacities, pages have
//! nothing to do with each other. For one page the cheapest choice is a shortest path: after each
//! request the page either *owes* a write or does not.
//!
//! # Why it is a bound
//!
//! Give each request `t` a price `l(t) >= 0`, and let a page that stays pay the prices of the
//! requests it stays over, instead of obeying capacities. For a choice that obeys them, the sum of
//! the payments is at most the sum of `(C - 1) l(t)`. So the least cost of a choice that pays
//! prices, less the sum of `(C - 1) l(t)`, is at most the cost of any choice that obeys the
//! capacities: weak duality of Lagrange's relaxation. That holds for *any* prices. The best ones
//! give the value of the linear programme over all mixtures of paths (Dantzig and Wolfe).
//!
//! The search for prices uses subgradients: the price rises where too many pages stay. Prices are
//! the same over a block of requests, and blocks are halved as the search goes on. The search
//! decides only how tight the bound is; it is a bound at any prices. All sums are of integers, so
//! that nothing is rounded the wrong way.
//!
//! No solver is needed, and real traces have too many requests for one: the linear programme of a
//! trace of 300,000 requests has as many capacities.

use millpond_base::Reason;
use millpond_workload::trace::Batch;

use super::future::Tier2Future;

/// Cost of one read, in units in which prices are whole.
const UNIT: i64 = 1 << 20;
/// Cost of a state that no path reaches.
const FAR: i64 = i64::MAX / 4;
/// Share of the last direction that is kept.
const MOMENTUM: f64 = 0.6;
/// Rounds without a better bound after which steps are halved.
const PATIENCE: u32 = 8;

/// Options of the search for the bound.
#[derive(Clone, Copy, Debug)]
pub struct BoundOptions {
    /// Frames of the cache, at least 1.
    pub frames: u32,
    /// Cost of a write, in reads, up to a million.
    pub price: f64,
    /// Avoidable cost of some policy, at which the search aims; a bad aim makes it slow.
    pub aim: f64,
    /// Rounds of the search for each block length.
    pub rounds: u32,
}

/// A lower bound on the cost of any policy, in reads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LowerBound {
    /// Cost that every policy causes alike.
    pub unavoidable: f64,
    /// Lower bound on the remaining cost.
    pub avoidable: f64,
}

impl LowerBound {
    /// Returns the whole bound: reads, and writes at their price.
    pub fn total(&self) -> f64 {
        self.unavoidable + self.avoidable
    }
}

/// A request of a page.
#[derive(Clone, Copy)]
struct Request {
    /// Number of the request among the requests of all pages.
    at: u32,
    is_write: bool,
    /// `true` for a write without a dsync before the page's next write.
    owes: bool,
}

/// A trace, page by page.
struct Pages {
    requests: Vec<Request>,
    /// Index of the first request of each page, and the end.
    starts: Vec<u32>,
    len: usize,
    first_reads: u64,
    syncs: u64,
}

impl Pages {
    fn of(trace: &Batch, future: &Tier2Future, distinct: u64) -> Pages {
        let mut of_page: Vec<Vec<Request>> = vec![Vec::new(); distinct as usize];
        let mut is_unsynced = vec![false; distinct as usize];
        let (mut len, mut first_reads, mut syncs) = (0, 0, 0);
        for row in 0..trace.len() {
            let (page, mark) = (trace.pages[row] as usize, trace.marks[row]);
            if mark.reason() == Reason::Dsync {
                syncs += u64::from(std::mem::take(&mut is_unsynced[page]));
                continue;
            }
            let is_write = mark.is_write();
            is_unsynced[page] |= is_write;
            first_reads += u64::from(!is_write && of_page[page].is_empty());
            let owes = is_write && !future.due[row];
            of_page[page].push(Request { at: len, is_write, owes });
            len += 1;
        }
        let mut starts = vec![0];
        let mut requests = Vec::with_capacity(len as usize);
        for page in of_page {
            requests.extend(page);
            starts.push(requests.len() as u32);
        }
        Pages { requests, starts, len: len as usize, first_reads, syncs }
    }
}

/// Flags of the path to a state: the page stayed, and it owed a write before.
const STAYED: u8 = 1;
const OWED: u8 = 2;

/// The dual function of one trace and size.
struct Dual {
    pages: Pages,
    capacity: i64,
    write: i64,
    /// Sums of the prices of all requests before each request.
    sums: Vec<i64>,
    /// Changes of the number of pages that stay over each request.
    changes: Vec<i32>,
    steps: Vec<u8>,
}

impl Dual {
    /// Returns the cost of staying from request `from` until request `to`.
    fn stay(&self, from: u32, to: u32) -> i64 {
        self.sums[to as usize] - self.sums[from as usize + 1]
    }

    /// Returns the bound for the prices of blocks of `block` requests.
    fn value(&mut self, prices: &[f64], block: usize) -> i128 {
        let (mut sum, mut fees) = (0i64, 0i128);
        for (at, to) in self.sums.iter_mut().enumerate() {
            *to = sum;
            if at < self.pages.len {
                let price = prices[at / block] as i64;
                sum += price;
                fees += i128::from(price) * i128::from(self.capacity);
            }
        }
        self.changes.fill(0);
        let pages = self.pages.starts.len() - 1;
        let paths: i128 = (0..pages).map(|page| i128::from(self.path(page))).sum();
        paths - fees
    }

    /// Returns the cost of the cheapest choice for a page.
    fn path(&mut self, page: usize) -> i64 {
        let range = self.pages.starts[page] as usize..self.pages.starts[page + 1] as usize;
        let Some(first) = self.pages.requests[range.clone()].first() else { return 0 };
        let (mut owing, mut clear) = if first.owes { (0, FAR) } else { (FAR, 0) };
        self.steps.clear();
        for at in range.start + 1..range.end {
            let (last, next) = (self.pages.requests[at - 1], self.pages.requests[at]);
            let stay = self.stay(last.at, next.at);
            if next.is_write {
                let (cost, step) = self.settle(owing, clear, stay);
                self.steps.push(step);
                (owing, clear) = if next.owes { (cost, FAR) } else { (FAR, cost) };
            } else {
                let ways =
                    [(clear + stay, STAYED), (clear + UNIT, 0), (owing + self.write + UNIT, OWED)];
                let (cost, step) = ways.into_iter().min().unwrap_or((FAR, 0));
                self.steps.push(step);
                (owing, clear) = ((owing + stay).min(FAR), cost.min(FAR));
            }
        }
        let last = self.pages.requests[range.end - 1];
        let (cost, step) = self.settle(owing, clear, self.stay(last.at, self.pages.len as u32));
        self.steps.push(step);
        self.mark(range.start);
        cost
    }

    /// Returns the cheapest path to a write, or to the end. The page does not pay its owed write if
    /// it stays.
    fn settle(&self, owing: i64, clear: i64, stay: i64) -> (i64, u8) {
        let ways = [(clear, 0), (owing + stay, STAYED | OWED), (owing + self.write, OWED)];
        ways.into_iter().min().unwrap_or((FAR, 0))
    }

    /// Counts the requests over which a page stays; its requests begin at `first`. Goes back from
    /// the last step.
    fn mark(&mut self, first: usize) {
        let mut owed = false;
        for (number, step) in self.steps.iter().enumerate().rev() {
            let from = self.pages.requests[first + number];
            let to = self.pages.requests.get(first + number + 1);
            let is_last = number + 1 == self.steps.len();
            let to = if is_last { self.pages.len as u32 } else { to.map_or(0, |to| to.at) };
            let settles = is_last || self.pages.requests[first + number + 1].is_write;
            // A page that owes after a read has stayed; every other case is stored in the step.
            let stays = if owed && !settles { true } else { step & STAYED != 0 };
            owed = if owed && !settles { true } else { step & OWED != 0 };
            if stays && from.at + 1 < to {
                self.changes[from.at as usize + 1] += 1;
                self.changes[to as usize] -= 1;
            }
        }
    }

    /// Returns the excess of staying pages over each block, at the prices of the last value.
    fn excess(&self, block: usize) -> Vec<f64> {
        let mut excess = vec![0.0; self.pages.len.div_ceil(block)];
        let mut stay = 0i64;
        for at in 0..self.pages.len {
            stay += i64::from(self.changes[at]);
            excess[at / block] += (stay - self.capacity) as f64;
        }
        excess
    }
}

/// Returns the bound for a whole trace with dense page ids, as required by [`Tier2Future::of`].
pub fn lower_bound(
    trace: &Batch,
    future: &Tier2Future,
    distinct: u64,
    options: &BoundOptions,
) -> LowerBound {
    let pages = Pages::of(trace, future, distinct);
    // Rounded down, like everything that raises the bound.
    let write = (options.price.clamp(0.0, 1e6) * UNIT as f64) as i64;
    let unavoidable = pages.first_reads as f64 + write as f64 / UNIT as f64 * pages.syncs as f64;
    let len = pages.len;
    let capacity = i64::from(options.frames.max(1)) - 1;
    let (sums, changes) = (vec![0; len + 1], vec![0; len + 1]);
    let mut dual = Dual { pages, capacity, write, sums, changes, steps: Vec::new() };
    let mut block = (options.frames as usize / 2).next_power_of_two().max(1);
    let mut prices = vec![0.0; len.div_ceil(block)];
    let mut best = 0;
    loop {
        search(&mut dual, &mut prices, block, options, &mut best);
        if block == 1 || prices.len() * 2 > len {
            break;
        }
        block /= 2;
        prices = (0..len.div_ceil(block)).map(|at| prices[at / 2]).collect();
    }
    // If reads and writes cost the same, costs are whole numbers.
    let is_whole = write == UNIT;
    let avoidable = match is_whole {
        true => (best + i128::from(UNIT) - 1).div_euclid(i128::from(UNIT)) as f64,
        false => best as f64 / UNIT as f64,
    };
    LowerBound { unavoidable, avoidable }
}

/// Searches for better prices of blocks of one length, and leaves the best ones in `prices`.
fn search(
    dual: &mut Dual,
    prices: &mut Vec<f64>,
    block: usize,
    options: &BoundOptions,
    best: &mut i128,
) {
    let aim = options.aim * UNIT as f64;
    // Staying saves a read and a write at most, so no price need be higher.
    let most = (UNIT + dual.write) as f64;
    let (mut here, mut direction) = (prices.clone(), vec![0.0; prices.len()]);
    let (mut pace, mut idle) = (1.0, 0);
    for _ in 0..options.rounds {
        let value = dual.value(&here, block);
        if value > *best {
            *best = value;
            prices.clone_from(&here);
            idle = 0;
        } else {
            idle += 1;
        }
        if idle >= PATIENCE {
            (pace, idle) = (pace / 2.0, 0);
            here.clone_from(prices);
            direction.fill(0.0);
            let _ = dual.value(&here, block);
        }
        let excess = dual.excess(block);
        let mut norm = 0.0;
        for (to, excess) in direction.iter_mut().zip(&excess) {
            *to = *excess / block as f64 + MOMENTUM * *to;
            norm += *to * *to * block as f64;
        }
        if norm == 0.0 {
            break;
        }
        let step = pace * (aim - value as f64).max(aim * 1e-3) / norm;
        for (price, direction) in here.iter_mut().zip(&direction) {
            *price = (*price + step * direction).clamp(0.0, most);
        }
    }
}
