//! A cache line of timestamps beside each frame, and the rates of such a log.
//!
//! The line holds fifteen stamps in one or two *rings*. A ring is written cyclically from its own
//! head, so a reference costs one comparison and, if the clock has moved since the last one, two
//! stores. No reference takes a latch. The remaining races are those of watt 5.3, and leave at
//! worst one stamp that is too young, which only protects its page for a while.
//!
//! Invariants: (1) a stamp of 0 was never written; (2) from a ring's head backwards, stamps do not
//! get younger, except by the races above.

use millpond_base::sync::atomic::{
    AtomicU8, AtomicU32,
    Ordering::{Relaxed, Release},
};

/// Stamps in a line.
pub const SLOTS: usize = 15;

/// Stamps in a line, rounded up to whole vectors.
const LANES: usize = 16;

/// One value for each lane.
pub type Lanes = [f32; LANES];

/// State of a line whose frame holds no page that may be chosen.
const ABSENT: u8 = 0;
/// State of a line whose page may be chosen.
const LIVE: u8 = 1;
/// State of a line whose page is never evicted.
const PERMANENT: u8 = 2;

/// One frame's stamps: exactly one cache line, the stamps first, as vector instructions read it.
#[repr(C, align(64))]
pub struct Stamps {
    log: [AtomicU32; SLOTS],
    heads: [AtomicU8; 2],
    state: AtomicU8,
}

zeros!(Stamps { log, heads, state });

#[cfg(not(feature = "model"))]
const _: () = assert!(size_of::<Stamps>() == 64 && std::mem::offset_of!(Stamps, log) == 0);

impl Default for Stamps {
    fn default() -> Stamps {
        Stamps {
            log: std::array::from_fn(|_| AtomicU32::new(0)),
            heads: std::array::from_fn(|_| AtomicU8::new(0)),
            state: AtomicU8::new(ABSENT),
        }
    }
}

/// Place of a log in the line: its first slot and its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    head: u8,
    first: u8,
    len: u8,
}

impl Ring {
    /// Returns two adjacent rings of these numbers of slots; the second one is cut to the line.
    pub fn pair(first: usize, second: usize) -> (Ring, Ring) {
        let first = first.clamp(1, SLOTS);
        let second = second.min(SLOTS - first);
        let (a, b) = (first as u8, second as u8);
        (Ring { head: 0, first: 0, len: a }, Ring { head: 1, first: a, len: b })
    }

    /// Returns the number of slots.
    pub fn len(self) -> usize {
        usize::from(self.len)
    }

    /// Returns `true` if nothing is logged.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns the slots as a bit mask of the line.
    pub fn lanes(self) -> u16 {
        (((1u32 << self.len()) - 1) << self.first) as u16
    }

    /// Returns each slot's place in the order, counted back from 1 for `head`; 0 for slots of other
    /// rings.
    pub fn orders(self, head: usize) -> Lanes {
        let mut orders = [0.0; LANES];
        for back in 0..self.len() {
            let at = (head + self.len() - back) % self.len();
            orders[usize::from(self.first) + at] = (back + 1) as f32;
        }
        orders
    }
}

impl Stamps {
    #[inline(always)]
    fn head(&self, ring: Ring) -> usize {
        usize::from(self.heads[usize::from(ring.head & 1)].load(Relaxed))
    }

    #[inline(always)]
    fn slot(&self, ring: Ring, at: usize) -> Option<&AtomicU32> {
        self.log.get(usize::from(ring.first) + at)
    }

    /// Returns the last stamp of the first ring of a pair; 0 for none.
    #[inline(always)]
    pub fn front(&self) -> u32 {
        let head = usize::from(self.heads[0].load(Relaxed));
        self.log.get(head).map_or(0, |slot| slot.load(Relaxed))
    }

    /// Returns the last stamp of `second`, the second ring of a pair; 0 for none.
    #[inline(always)]
    pub fn back(&self, second: Ring) -> u32 {
        let head = usize::from(self.heads[1].load(Relaxed));
        self.slot(second, head).map_or(0, |slot| slot.load(Relaxed))
    }

    /// Logs `stamp`, unless it equals the last one except for the bits of `ignored`, which are then
    /// added to that one.
    #[inline(always)]
    pub fn log(&self, ring: Ring, stamp: u32, ignored: u32) {
        if ring.is_empty() {
            return;
        }
        let head = self.head(ring);
        let Some(last) = self.slot(ring, head) else { return };
        let known = last.load(Relaxed);
        if (known ^ stamp) & !ignored == 0 {
            if known | stamp != known {
                last.store(known | stamp, Release);
            }
            return;
        }
        let next = if head + 1 == ring.len() { 0 } else { head + 1 };
        if let Some(slot) = self.slot(ring, next) {
            slot.store(stamp, Release);
            self.heads[usize::from(ring.head & 1)].store(next as u8, Release);
        }
    }

    /// Forgets everything logged.
    #[inline(always)]
    pub fn clear(&self) {
        self.log.iter().for_each(|slot| slot.store(0, Relaxed));
        self.heads.iter().for_each(|head| head.store(0, Relaxed));
    }

    /// Returns the positions of the rings' heads, by the rings' numbers.
    #[inline(always)]
    pub fn heads(&self) -> [u8; 2] {
        [self.heads[0].load(Relaxed), self.heads[1].load(Relaxed)]
    }

    /// Returns a copy for vector instructions.
    #[inline(always)]
    pub fn copy(&self) -> Copied {
        let mut stamps = [0; LANES];
        for (copy, slot) in stamps.iter_mut().zip(&self.log) {
            *copy = slot.load(Relaxed);
        }
        Copied { stamps, heads: self.heads() }
    }

    /// Records that the frame holds a page that may be chosen.
    #[inline(always)]
    pub fn appear(&self) {
        self.state.store(LIVE, Relaxed);
    }

    /// Records that the frame holds no page, or one that a thread tries to evict.
    #[inline(always)]
    pub fn vanish(&self) {
        self.state.store(ABSENT, Relaxed);
    }

    /// Records that the page could not be evicted and stays. It may be chosen again, or never if
    /// the refusal is `permanent`, unless another thread has loaded another page since
    /// [`Stamps::vanish`].
    #[inline(always)]
    pub fn stay(&self, permanent: bool) {
        let state = if permanent { PERMANENT } else { LIVE };
        // A failed exchange means that the frame holds a new page, and nothing remains to do.
        let _ = self.state.compare_exchange(ABSENT, state, Relaxed, Relaxed);
    }

    /// Returns `true` if the frame may be chosen.
    #[inline(always)]
    pub fn is_live(&self) -> bool {
        self.state.load(Relaxed) == LIVE
    }

    /// Returns `true` if the frame holds a page that no thread tries to evict.
    pub fn is_known(&self) -> bool {
        self.state.load(Relaxed) != ABSENT
    }
}

/// A line's stamps at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Copied {
    stamps: [u32; LANES],
    heads: [u8; 2],
}

impl Copied {
    /// Returns the positions of the rings' heads, by the rings' numbers.
    #[inline(always)]
    pub fn heads(&self) -> [u8; 2] {
        self.heads
    }

    /// Returns the position of the ring's head.
    #[inline(always)]
    pub fn head(&self, ring: Ring) -> usize {
        usize::from(self.heads[usize::from(ring.head & 1)])
    }

    /// Returns the ring's last stamp; 0 for none.
    #[inline(always)]
    pub fn last(&self, ring: Ring) -> u32 {
        if ring.is_empty() {
            return 0;
        }
        self.stamps[(usize::from(ring.first) + self.head(ring)) % LANES]
    }

    /// Returns the ring's stamps, youngest first, without unwritten ones.
    pub fn iter(&self, ring: Ring) -> impl Iterator<Item = u32> + '_ {
        let head = self.head(ring);
        (0..ring.len())
            .map(move |back| (head + ring.len() - back) % ring.len())
            .map(move |at| self.stamps[(usize::from(ring.first) + at) % LANES])
            .filter(|stamp| *stamp != 0)
    }

    /// Returns for each slot the reciprocal of the ticks since its stamp; 0 for an unwritten one. A
    /// stamp of the current tick counts as very young, not as infinitely young.
    #[inline(always)]
    pub fn rates(&self, now: u32) -> Lanes {
        let mut rates = [0.0; LANES];
        for (rate, stamp) in rates.iter_mut().zip(self.stamps) {
            // The age is signed, since its conversion is one instruction. Future stamps count as
            // now.
            let age = (now.wrapping_sub(stamp) as i32) as f32;
            let age = if age > 1e-30 { age } else { 1e-30 };
            *rate = if stamp == 0 { 0.0 } else { 1.0 / age };
        }
        rates
    }
}

/// Returns the greatest product of two lanes.
#[inline(always)]
pub fn greatest_product(a: &Lanes, b: &Lanes) -> f32 {
    let mut best = [0.0f32; 4];
    for (four_a, four_b) in a.chunks_exact(4).zip(b.chunks_exact(4)) {
        for ((best, a), b) in best.iter_mut().zip(four_a).zip(four_b) {
            let product = a * b;
            *best = if product > *best { product } else { *best };
        }
    }
    best.into_iter().fold(0.0, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_the_youngest_stamps_and_one_of_each_tick() {
        let (short, long) = Ring::pair(4, 11);
        let stamps = Stamps::default();
        for tick in 1..=9 {
            stamps.log(short, tick, 0);
            stamps.log(short, tick, 0);
            stamps.log(long, 10 * tick, 0);
        }
        let copy = stamps.copy();
        assert_eq!(copy.iter(short).collect::<Vec<_>>(), [9, 8, 7, 6]);
        assert_eq!(copy.iter(long).collect::<Vec<_>>(), [90, 80, 70, 60, 50, 40, 30, 20, 10]);
        assert_eq!((copy.last(short), copy.last(long)), (9, 90));
        stamps.clear();
        assert_eq!(stamps.copy().iter(short).count() + stamps.copy().iter(long).count(), 0);
    }

    #[test]
    fn orders_count_back_from_the_head_and_rates_skip_what_was_never_logged() {
        let (ring, other) = Ring::pair(3, 2);
        let stamps = Stamps::default();
        [4, 6, 9, 10].into_iter().for_each(|tick| stamps.log(ring, tick, 0));
        stamps.log(other, 8, 0);
        let copy = stamps.copy();
        let (orders, rates) = (ring.orders(copy.head(ring)), copy.rates(12));
        let products: Vec<f32> = orders.iter().zip(rates).map(|(o, r)| o * r).collect();
        let mut found: Vec<f32> = products.iter().copied().filter(|p| *p > 0.0).collect();
        found.sort_by(f32::total_cmp);
        assert_eq!(found, [1.0 / 2.0, 3.0 / 6.0, 2.0 / 3.0]);
        assert_eq!(greatest_product(&orders, &rates), 2.0 / 3.0);
        assert_eq!(greatest_product(&other.orders(copy.head(other)), &rates), 1.0 / 4.0);
    }

    #[test]
    fn a_page_that_stays_is_chosen_again_unless_for_good_or_replaced() {
        let stamps = Stamps::default();
        stamps.appear();
        stamps.vanish();
        assert!(!stamps.is_live());
        stamps.stay(false);
        assert!(stamps.is_live());
        stamps.vanish();
        stamps.stay(true);
        assert!(!stamps.is_live() && stamps.is_known());
        stamps.vanish();
        stamps.appear();
        stamps.stay(true);
        assert!(stamps.is_live(), "another page was loaded meanwhile");
    }

    #[test]
    fn ignored_bits_are_gathered_in_the_stamp_of_their_tick() {
        let (ring, _) = Ring::pair(2, 0);
        let stamps = Stamps::default();
        [6, 7, 6, 8, 8].into_iter().for_each(|stamp| stamps.log(ring, stamp, 1));
        assert_eq!(stamps.copy().iter(ring).collect::<Vec<_>>(), [8, 7]);
    }
}
