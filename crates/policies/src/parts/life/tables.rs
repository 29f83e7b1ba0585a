//! Life tables of pages between two requests, and the value of keeping a page.
//!
//! Pages belong to *classes*. For each class and age, a table counts the ends of a page's wait for
//! its next request: a read, a write, or unseen, when the page was forgotten. For dirty pages it
//! also counts those that became durable during the wait. Pages that still wait count as unseen at
//! their present age, as in any life table; without them, only short waits would be seen. Counts
//! fade, so that the tables follow the workload.
//!
//! The tables give the *rate* of a page of some class and age: the I/O, in reads, that keeping it
//! saves per epoch in a frame, if it is kept for the best time (a Gittins index). A read saves one
//! read. A write of a dirty page saves the write that its eviction would have cost, if the page was
//! not made durable before; a write of a clean page saves nothing. A dirty page that is read stays
//! dirty, so its possible later savings are added to those of its read.
//!
//! The classes of one *hint* are adjacent, and share their statistics if these are small. The
//! classes of the first hint are pages that were read.

use super::aged_lists::{BUCKETS, width};

/// Number of waits of all classes of a hint that are mixed into each class.
const LENT: f32 = 16.0;
/// Share of waiting pages below which a rate ends.
const FEW: f32 = 1e-3;

/// Counts of a class and a bucket of ages.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    reads: f32,
    writes: f32,
    unseen: f32,
    /// Numbers of dirty pages that were made durable, and of those that stayed dirty as long as
    /// they were seen.
    cleaned: f32,
    dirty: f32,
}

impl Counts {
    fn add(&mut self, other: &Counts, times: f32) {
        self.reads += other.reads * times;
        self.writes += other.writes * times;
        self.unseen += other.unseen * times;
        self.cleaned += other.cleaned * times;
        self.dirty += other.dirty * times;
    }

    fn waits(&self) -> f32 {
        self.reads + self.writes + self.unseen
    }
}

/// The event that ended a page's wait for its next request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The page was read.
    Read,
    /// The page was written.
    Write,
    /// The page was forgotten before its next request.
    Unseen,
}

/// The tables of all classes.
pub struct LifeTables {
    price: f32,
    per_hint: usize,
    counts: Vec<Counts>,
    rates: Vec<f32>,
}

impl LifeTables {
    /// Creates empty tables of `hints` times `per_hint` classes, where a write costs `price` reads.
    pub fn new(hints: usize, per_hint: usize, price: f64) -> LifeTables {
        let classes = hints * per_hint;
        LifeTables {
            price: price as f32,
            per_hint,
            counts: vec![Counts::default(); classes * BUCKETS],
            rates: vec![0.0; classes * 2 * BUCKETS],
        }
    }

    /// Counts a wait of this class that ended at an age in this bucket.
    #[inline]
    pub fn ended(&mut self, class: usize, bucket: usize, end: End) {
        let counts = &mut self.counts[class * BUCKETS + bucket];
        match end {
            End::Read => counts.reads += 1.0,
            End::Write => counts.writes += 1.0,
            End::Unseen => counts.unseen += 1.0,
        }
    }

    /// Counts a dirty page of this class that was made durable at this age, or whose wait ended
    /// without that.
    #[inline]
    pub fn was_dirty(&mut self, class: usize, bucket: usize, is_durable: bool) {
        let counts = &mut self.counts[class * BUCKETS + bucket];
        *(if is_durable { &mut counts.cleaned } else { &mut counts.dirty }) += 1.0;
    }

    /// Returns the I/O that a page of this class and age saves per epoch, in reads.
    #[inline(always)]
    pub fn rate(&self, class: usize, is_dirty: bool, bucket: usize) -> f32 {
        self.rates[(class * 2 + usize::from(is_dirty)) * BUCKETS + bucket]
    }

    /// Computes all rates from the counts, which then fade to the share `fade`. `waiting` has the
    /// waiting pages, by class and bucket; `least` is the rate of recent victims.
    pub fn renew(&mut self, fade: f32, waiting: &[u32], least: f32) {
        for (counts, waiting) in self.counts.iter_mut().zip(waiting) {
            counts.unseen += *waiting as f32;
        }
        let mut later = 0.0;
        for first in (0..self.counts.len() / BUCKETS).step_by(self.per_hint) {
            let all = self.sum(first);
            if first == 0 {
                let hazards = Hazards::of(&all);
                let dirty = hazards.gain(self.price, least);
                later = (dirty - hazards.gain(0.0, least)).max(0.0);
            }
            self.rates_of(first, &all, later);
        }
        for (counts, waiting) in self.counts.iter_mut().zip(waiting) {
            counts.unseen -= *waiting as f32;
        }
        for counts in &mut self.counts {
            let old = std::mem::take(counts);
            counts.add(&old, fade);
        }
    }

    /// Returns the sum of the counts of all classes of a hint, the first of which is `first`.
    fn sum(&self, first: usize) -> [Counts; BUCKETS] {
        let mut all = [Counts::default(); BUCKETS];
        let of_hint = &self.counts[first * BUCKETS..(first + self.per_hint) * BUCKETS];
        for class in of_hint.chunks(BUCKETS) {
            all.iter_mut().zip(class).for_each(|(sum, counts)| sum.add(counts, 1.0));
        }
        all
    }

    /// Computes the rates of all classes of a hint, where the read of a dirty page saves `later`
    /// more.
    fn rates_of(&mut self, first: usize, all: &[Counts; BUCKETS], later: f32) {
        let waits: f32 = all.iter().map(Counts::waits).sum();
        let lent = if waits > 0.0 { LENT.min(waits) / waits } else { 0.0 };
        for class in first..first + self.per_hint {
            let mut mixed = *all;
            for (mixed, own) in mixed.iter_mut().zip(&self.counts[class * BUCKETS..]) {
                let of_all = std::mem::replace(mixed, *own);
                mixed.add(&of_all, lent);
            }
            let hazards = Hazards::of(&mixed);
            let at = class * 2 * BUCKETS;
            let (clean, dirty) = self.rates[at..at + 2 * BUCKETS].split_at_mut(BUCKETS);
            hazards.rates(1.0, 0.0, clean);
            hazards.rates(1.0 + later, self.price, dirty);
        }
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.counts.capacity() * size_of::<Counts>() + self.rates.capacity() * 4
    }
}

/// Shares of the pages with a wait of at least each age that are then read, written and made
/// durable.
struct Hazards {
    read: [f32; BUCKETS],
    write: [f32; BUCKETS],
    durable: [f32; BUCKETS],
    /// Number of buckets up to the longest wait.
    known: usize,
}

/// Sums over waits from some age on.
struct Kept {
    /// Share of all pages that still wait, and the share of these that are still dirty.
    waits: f32,
    dirty: f32,
    saved: f32,
    time: f32,
}

impl Kept {
    const NOTHING: Kept = Kept { waits: 1.0, dirty: 1.0, saved: 0.0, time: 0.0 };
}

impl Hazards {
    fn of(counts: &[Counts; BUCKETS]) -> Hazards {
        let [read, write, durable] = [[0.0; BUCKETS]; 3];
        let mut hazards = Hazards { read, write, durable, known: 0 };
        let (mut waiting, mut dirty) = (0.0, 0.0);
        for (at, c) in counts.iter().enumerate().rev() {
            waiting += c.waits();
            dirty += c.cleaned + c.dirty;
            if waiting > 0.0 {
                hazards.known = hazards.known.max(at + 1);
                hazards.read[at] = c.reads / waiting;
                hazards.write[at] = c.writes / waiting;
            }
            if dirty > 0.0 {
                hazards.durable[at] = c.cleaned / dirty;
            }
        }
        hazards
    }

    /// Continues the waits for another bucket. Ends and syncs are assumed in its middle.
    #[inline(always)]
    fn keep(&self, kept: &mut Kept, at: usize, read: f32, write: f32) {
        let (r, w, durable) = (self.read[at], self.write[at], self.durable[at]);
        let writes = w * write * kept.dirty * (1.0 - durable / 2.0);
        kept.saved += kept.waits * (r * read + writes);
        kept.time += kept.waits * width(at) as f32 * (1.0 - (r + w) / 2.0);
        kept.waits *= 1.0 - r - w;
        kept.dirty *= 1.0 - durable;
    }

    /// Computes the best ratio of savings to time for each age at which a wait may start.
    fn rates(&self, read: f32, write: f32, rates: &mut [f32]) {
        rates[self.known..].fill(0.0);
        for (from, rate) in rates[..self.known].iter_mut().enumerate() {
            let (mut kept, mut best) = (Kept::NOTHING, 0.0);
            for at in from..self.known {
                self.keep(&mut kept, at, read, write);
                best = f32::max(best, kept.saved / kept.time);
                if kept.waits < FEW {
                    break;
                }
            }
            *rate = best;
        }
    }

    /// Returns the maximum savings of a page after its request, less its frame's value of `least`
    /// per epoch.
    fn gain(&self, write: f32, least: f32) -> f32 {
        let (mut kept, mut best) = (Kept::NOTHING, 0.0);
        for at in 0..self.known {
            self.keep(&mut kept, at, 1.0, write);
            best = f32::max(best, kept.saved - least * kept.time);
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(price: f64) -> LifeTables {
        LifeTables::new(2, 2, price)
    }

    #[test]
    fn a_rate_is_what_the_best_wait_saves_for_its_time() {
        let mut tables = tables(3.0);
        // Half of class 2 is read at once, the others are forgotten in bucket 9.
        for _ in 0..100 {
            tables.ended(2, 0, End::Read);
            tables.ended(2, 9, End::Unseen);
        }
        tables.renew(1.0, &[], 0.0);
        // Half a read in three quarters of an epoch, if the page is kept for one epoch.
        assert!((tables.rate(2, false, 0) - 0.5 / 0.75).abs() < 1e-4);
        assert_eq!((tables.rate(2, false, 1), tables.rate(2, false, 20)), (0.0, 0.0));
        // An unknown class of the same hint is assumed to be alike; classes of other hints are not.
        assert_eq!(tables.rate(3, false, 0), tables.rate(2, false, 0));
        assert_eq!(tables.rate(0, false, 0), 0.0);
    }

    #[test]
    fn writes_save_for_dirty_pages_only_and_not_after_a_sync() {
        for synced in [0, 100] {
            let mut tables = tables(1.5);
            for n in 0..100 {
                tables.ended(2, 1, End::Write);
                tables.was_dirty(2, 0, n < synced);
            }
            tables.renew(1.0, &[], 0.0);
            assert_eq!(tables.rate(2, false, 1), 0.0, "a write finds no clean page");
            let now = tables.rate(2, true, 1);
            assert!((2.9..3.1).contains(&now), "{now} in half an epoch");
            // From the start of the wait, the sync comes first, in the middle of the first epoch.
            let before = tables.rate(2, true, 0) * 3.0;
            let expected = if synced == 0 { 3.0 } else { 0.0 };
            assert!((before - expected).abs() < 0.1, "{before} where {synced} are synced");
        }
    }

    #[test]
    fn pages_that_still_wait_make_waits_longer_and_counts_fade() {
        let (mut one, mut two) = (tables(1.0), tables(1.0));
        for tables in [&mut one, &mut two] {
            (0..50).for_each(|_| tables.ended(0, 0, End::Read));
        }
        let mut waiting = vec![0; 4 * BUCKETS];
        waiting[5] = 150;
        one.renew(1.0, &[], 0.0);
        two.renew(1.0, &waiting, 0.0);
        assert!(two.rate(0, false, 0) < one.rate(0, false, 0) / 3.0);
        two.renew(0.0, &[], 0.0);
        assert_eq!(two.rate(0, false, 0), one.rate(0, false, 0), "they were not added for good");
        two.renew(1.0, &[], 0.0);
        assert_eq!(two.rate(0, false, 0), 0.0, "all faded");
    }

    #[test]
    fn a_read_of_a_dirty_page_saves_what_its_next_write_may() {
        // Pages that were read are written in bucket 0; those of class 2 are read in bucket 0.
        let rate = |price, least| {
            let mut tables = tables(price);
            for _ in 0..100 {
                tables.ended(0, 0, End::Write);
                tables.ended(2, 0, End::Read);
            }
            tables.renew(1.0, &[], least);
            tables.rate(2, true, 0) / tables.rate(2, false, 0)
        };
        assert!((rate(1.0, 0.0) - 2.0).abs() < 1e-3);
        assert!((rate(0.0, 0.0) - 1.0).abs() < 1e-3);
        // If frames are worth more than that write, the page is not kept for it.
        assert!((rate(1.0, 9.0) - 1.0).abs() < 1e-3);
    }
}
