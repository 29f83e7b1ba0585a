//! The value of a page by its timestamps: WATT's page value, in all variants that its authors tried
//! (watt 3.1, 3.2 and 4.3).
//!
//! [`Tracking`] is for the hit path and selects the place where a reference is logged. [`Worth`] is
//! for evictions and computes a number from the log. Times are *stamps*: ticks plus 1, so that 0
//! can mean "never".
//!
//! [`Worth::value`] is the definition. [`Worth::values`] computes the same for many pages at a
//! time, by vector instructions if the machine has them.

use millpond_base::Mark;

use super::instructions::{Instructions, Terms};
use super::stamps::{Copied, Lanes, Ring, SLOTS, Stamps, greatest_product};

choice! {
    /// The lists of a log, and the references that each one holds.
    pub enum StampLog {
        /// Accesses of both kinds in one list, and writes in another list, too.
        Both = "both",
        /// Reads in one list, writes in the other.
        Strict = "strict",
        /// One list, with a bit that marks writes.
        Bit = "bit",
    }
}

choice! {
    /// The function that computes one value from the subfrequencies.
    pub enum Aggregate {
        /// The greatest subfrequency.
        Max = "max",
        /// The least subfrequency.
        Min = "min",
        /// The mean of the subfrequencies.
        Mean = "mean",
        /// The median of the subfrequencies.
        Median = "median",
    }
}

/// Rings to which the hit path logs.
#[derive(Clone, Copy, Debug)]
pub struct Tracking {
    log: StampLog,
    first: Ring,
    second: Ring,
}

impl Default for Tracking {
    fn default() -> Tracking {
        Tracking::new(StampLog::Both, 8, 4)
    }
}

impl Tracking {
    /// Creates a log of these numbers of accesses and writes, cut to the size of a line.
    pub fn new(log: StampLog, accesses: u32, writes: u32) -> Tracking {
        let writes = if log == StampLog::Bit { 0 } else { writes };
        let (first, second) = Ring::pair(accesses as usize, writes as usize);
        Tracking { log, first, second }
    }

    /// Returns the rings to which it logs.
    pub fn rings(&self) -> [Ring; 2] {
        [self.first, self.second]
    }

    /// Returns `true` if a reference at `tick` is already logged, as nearly every reference is: few
    /// are the first of their epoch.
    #[inline(always)]
    pub fn knows(&self, stamps: &Stamps, tick: u32, mark: Mark) -> bool {
        // Its stamp, except at the last possible tick, at which an empty log passes for a full one.
        let now = tick.wrapping_add(1);
        let read_known = self.log != StampLog::Bit && stamps.front() == now;
        match mark.is_write() {
            false => read_known,
            true => read_known && self.log == StampLog::Both && stamps.back(self.second) == now,
        }
    }

    /// Logs a reference at `tick`, unless it is logged already.
    #[inline(always)]
    pub fn track(&self, stamps: &Stamps, tick: u32, mark: Mark) {
        if !self.knows(stamps, tick, mark) {
            self.log(stamps, stamp(tick), mark);
        }
    }

    /// Logs a reference with the stamp `now`.
    #[inline(never)]
    fn log(&self, stamps: &Stamps, now: u32, mark: Mark) {
        let write = mark.is_write();
        match self.log {
            StampLog::Both => {
                stamps.log(self.first, now, 0);
                if write {
                    stamps.log(self.second, now, 0);
                }
            }
            StampLog::Strict if write => stamps.log(self.second, now, 0),
            StampLog::Strict => stamps.log(self.first, now, 0),
            StampLog::Bit => stamps.log(self.first, now << 1 | u32::from(write), 1),
        }
    }
}

/// Returns the stamp of a tick, which is never 0.
#[inline(always)]
pub fn stamp(tick: u32) -> u32 {
    tick.wrapping_add(1).max(1)
}

/// Numerators of a line's slots, one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Numerators(Lanes);

/// Function that computes a value from a log.
#[derive(Clone)]
pub struct Worth {
    tracking: Tracking,
    aggregate: Aggregate,
    dampening: f32,
    write_weight: f32,
    age_from: u32,
    instructions: Instructions,
    /// Numerators of equation 1, dampening included, for each ring and each place of its head.
    quotients: Box<[[Numerators; 16]; 2]>,
}

fn quotients(ring: Ring, dampening: f32) -> [Numerators; 16] {
    let mut table = [Numerators([0.0; 16]); 16];
    for (head, lanes) in table.iter_mut().enumerate().take(ring.len()) {
        lanes.0 = ring.orders(head).map(|i| if i == 1.0 { dampening } else { i });
    }
    table
}

impl Worth {
    /// Creates a value function from the factor of the first-order subfrequency, the cost of a
    /// write in reads, and the age of a stamp of the current tick, in ticks.
    pub fn new(
        tracking: Tracking,
        aggregate: Aggregate,
        dampening: f32,
        write_weight: f32,
        age_from: u32,
    ) -> Worth {
        // Never −0, which would make the order of comparisons visible.
        let dampening = dampening + 0.0;
        let of = |ring| quotients(ring, dampening);
        let quotients = Box::new([of(tracking.first), of(tracking.second)]);
        let instructions = Instructions::Portable;
        Worth { tracking, aggregate, dampening, write_weight, age_from, instructions, quotients }
            .by(Instructions::best())
    }

    /// Selects `instructions` for computing values, or the portable ones if the machine lacks them
    /// or the variant has no vector form.
    #[must_use]
    pub fn by(mut self, instructions: Instructions) -> Worth {
        let has_form = self.aggregate == Aggregate::Max && self.tracking.log != StampLog::Bit;
        let can = has_form && instructions.are_here();
        self.instructions = if can { instructions } else { Instructions::Portable };
        self
    }

    /// Returns the instruction set of `Worth::values`.
    #[inline(always)]
    pub fn instructions(&self) -> Instructions {
        self.instructions
    }

    /// Returns the bytes held outside.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.quotients)
    }

    /// Returns the numerators of both rings' slots for these heads.
    #[inline(always)]
    pub(super) fn numerators(&self, heads: [u8; 2]) -> [&Lanes; 2] {
        let of = |side: usize| &self.quotients[side][usize::from(heads[side] & 15)].0;
        [of(0), of(1)]
    }

    /// Returns the common terms of a batch of values at `now`.
    #[cfg_attr(any(feature = "model", miri, tsan, not(target_arch = "x86_64")), allow(dead_code))]
    #[inline]
    pub(super) fn terms(&self, now: u32) -> Terms {
        let rings = self.tracking.rings();
        let first = |ring: Ring| match ring.lanes() {
            lanes if self.age_from == 0 => u32::from(lanes) & u32::from(lanes).wrapping_neg(),
            _ => 0,
        };
        Terms {
            aged_from: now.wrapping_add(self.age_from),
            weight: self.weight(),
            lanes: rings.map(Ring::lanes),
            firsts: rings.map(first),
        }
    }

    /// Returns the weight of the second ring's value.
    #[inline(always)]
    fn weight(&self) -> f32 {
        self.write_weight + if self.tracking.log == StampLog::Strict { 1.0 } else { 0.0 }
    }

    /// Returns the page's value at `now`: +∞ if it was referenced then and ages begin at 0.
    #[inline(always)]
    pub fn value(&self, stamps: &Stamps, now: u32) -> f32 {
        let copy = stamps.copy();
        let Tracking { log, first, second } = self.tracking;
        let is_now = |stamp: u32| (if log == StampLog::Bit { stamp >> 1 } else { stamp }) == now;
        if self.age_from == 0 && (is_now(copy.last(first)) || is_now(copy.last(second))) {
            return f32::INFINITY;
        }
        let now = now.wrapping_add(self.age_from);
        if log == StampLog::Bit {
            return self.value_with_bits(&copy, now);
        }
        let weight = self.weight();
        if self.aggregate != Aggregate::Max {
            let reads = self.aggregated(&copy, first, now);
            return reads + weight * self.aggregated(&copy, second, now);
        }
        let rates = copy.rates(now);
        let [of_first, of_second] = self.numerators(copy.heads());
        let reads = greatest_product(of_first, &rates);
        if second.is_empty() {
            return reads;
        }
        reads + weight * greatest_product(of_second, &rates)
    }

    fn subfrequency(&self, order: usize, numerator: f32, age: u32) -> f32 {
        let damp = if order == 1 { self.dampening } else { 1.0 };
        damp * numerator / (age as i32).max(0) as f32
    }

    #[cold]
    fn aggregated(&self, copy: &Copied, ring: Ring, now: u32) -> f32 {
        let (mut found, mut len) = ([0.0; SLOTS], 0);
        for (slot, stamp) in found.iter_mut().zip(copy.iter(ring)) {
            len += 1;
            *slot = self.subfrequency(len, len as f32, now.wrapping_sub(stamp));
        }
        self.aggregate.of(&mut found[..len])
    }

    #[cold]
    fn value_with_bits(&self, copy: &Copied, now: u32) -> f32 {
        let (mut found, mut len, mut weight) = ([0.0; SLOTS], 0, 0.0);
        for (slot, stamp) in found.iter_mut().zip(copy.iter(self.tracking.first)) {
            len += 1;
            weight += if stamp & 1 == 1 { 1.0 + self.write_weight } else { 1.0 };
            *slot = self.subfrequency(len, weight, now.wrapping_sub(stamp >> 1));
        }
        self.aggregate.of(&mut found[..len])
    }
}

impl Aggregate {
    /// Aggregates the subfrequencies to one value; 0 if there are none.
    fn of(self, found: &mut [f32]) -> f32 {
        found.sort_unstable_by(f32::total_cmp);
        let (Some(&least), Some(&greatest)) = (found.first(), found.last()) else { return 0.0 };
        match self {
            Aggregate::Max => greatest,
            Aggregate::Min => least,
            Aggregate::Mean => found.iter().sum::<f32>() / found.len() as f32,
            Aggregate::Median => found[found.len() / 2],
        }
    }
}
