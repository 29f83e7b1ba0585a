//! An order of eviction that is sorted occasionally, and consumed without a latch.
//!
//! Hits only write a time stamp. When a frame is needed, all stamps are sorted once, and the list
//! is consumed from its old end. An entry whose frame was used since is recognised by its stamp and
//! skipped. When a good part of the list is consumed, one thread re-sorts into the other of two
//! lists, while the rest of the first one still serves (gilbert 1.2.4.2, algorithm 1.5).
//!
//! The position is one word of generation and index, so taking an entry is one addition. A thread
//! that slept for two generations reads an entry of a newer list, which is valid.
//!
//! Invariants: (1) only the thread that raised `sorting` writes, and only to the list that is not
//! served; (2) a list's length is published before its generation.

use millpond_base::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use millpond_base::sync::thread::yield_now;
use millpond_base::{FrameId, Tick};

use crate::contract::{
    Access, EvictRequest, Frames, Hit, HitHook, Host, RefusalReason, TickSource, Zeroed,
};

/// Stamp of a free frame.
pub const ABSENT: u32 = 0;
/// A stamp later than any other: the frame is not offered until it is used again.
pub const NEVER: u32 = u32::MAX;

/// Maximum lead of stamps over the clock of a sort.
const AHEAD: u32 = 1 << 20;

/// Returns the stamp of a reference at `now`, which is neither [`ABSENT`] nor [`NEVER`].
#[inline(always)]
pub fn stamp_of(now: Tick) -> u32 {
    now.clamp(ABSENT + 1, NEVER - 1)
}

/// Returns a key that sorts stamps from old to new, although the clock wraps at 2³².
#[inline(always)]
pub fn recency(stamp: u32, now: Tick) -> u32 {
    !now.wrapping_add(AHEAD).wrapping_sub(stamp)
}

/// Hot half that keeps the time of a frame's last reference.
pub struct LastStamp;

impl HitHook for LastStamp {
    type Meta = AtomicU32;
    type Params = ();
    const HIT: Hit = Hit::Meta;
    const TICK: TickSource = TickSource::PerAccess;

    #[inline(always)]
    fn on_hit(stamp: &AtomicU32, _: &(), access: &Access) {
        stamp.store(stamp_of(access.now), Relaxed);
    }

    #[inline(always)]
    fn reset(stamp: &AtomicU32, _: &(), access: &Access) {
        stamp.store(stamp_of(access.now), Relaxed);
    }

    fn zeroed(_: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        Zeroed::fresh()
    }
}

/// An entry to be sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Sort key, least first.
    pub order: u64,
    /// The frame.
    pub frame: u32,
    /// Stamp that the frame must still have when the entry is consumed.
    pub stamp: u32,
}

/// A policy's stamps, for sorting.
pub trait Stamps {
    /// Collects every frame that may be offered.
    fn collect(&self, candidates: &mut Vec<Candidate>);
    /// Returns `true` if the entry's stamp is still that of its frame.
    fn is_current(&self, frame: FrameId, stamp: u32) -> bool;
    /// Records that the frame with that stamp was taken; it may be in use again already.
    fn taken(&self, frame: FrameId, stamp: u32);
    /// Records that the frame was refused.
    fn refused(&self, frame: FrameId, why: RefusalReason);
}

/// Times of the frames' last references, as kept by [`LastStamp`].
pub struct LastStamps<'a> {
    /// The frames.
    pub frames: Frames<'a, LastStamp>,
    /// Clock of this eviction.
    pub now: Tick,
}

impl LastStamps<'_> {
    /// Returns the entry of `frame`, if it may be offered.
    #[inline(always)]
    pub fn candidate(&self, frame: u32) -> Option<Candidate> {
        let stamp = self.frames.meta(FrameId(frame)).load(Relaxed);
        let is_offered = stamp != ABSENT && stamp != NEVER;
        is_offered.then(|| Candidate { order: recency(stamp, self.now).into(), frame, stamp })
    }
}

impl Stamps for LastStamps<'_> {
    fn collect(&self, candidates: &mut Vec<Candidate>) {
        candidates.extend((0..self.frames.len()).filter_map(|frame| self.candidate(frame)));
    }

    #[inline(always)]
    fn is_current(&self, frame: FrameId, stamp: u32) -> bool {
        self.frames.meta(frame).load(Relaxed) == stamp
    }

    #[inline(always)]
    fn taken(&self, frame: FrameId, stamp: u32) {
        // A page loaded in the meantime has a later stamp, and keeps it.
        _ = self.frames.meta(frame).compare_exchange(stamp, ABSENT, Relaxed, Relaxed);
    }

    fn refused(&self, frame: FrameId, why: RefusalReason) {
        let stamp = match why {
            RefusalReason::Absent => return,
            RefusalReason::Permanent => NEVER,
            _ => stamp_of(self.now),
        };
        self.frames.meta(frame).store(stamp, Relaxed);
    }
}

/// The two lists.
pub struct Sorted {
    lists: [Box<[AtomicU64]>; 2],
    lens: [AtomicU32; 2],
    position: AtomicU64,
    sorting: AtomicBool,
    share: f64,
}

impl Sorted {
    /// Creates an empty order for `frames` frames, re-sorted when `share` of a list is consumed.
    pub fn new(frames: u32, share: f64) -> Sorted {
        let list = || (0..frames).map(|_| AtomicU64::new(0)).collect();
        Sorted {
            lists: [list(), list()],
            lens: [AtomicU32::new(0), AtomicU32::new(0)],
            position: AtomicU64::new(0),
            sorting: AtomicBool::new(false),
            share,
        }
    }

    /// Offers frames from the old end until the request is met; returns the number taken.
    #[inline(always)]
    pub fn evict<H: Host + ?Sized>(
        &self,
        request: &EvictRequest,
        host: &mut H,
        stamps: &impl Stamps,
    ) -> u32 {
        // A call gives up a list before its end at most once. Otherwise refused frames, which are
        // the newest then, could keep the end of the list from ever being reached.
        let (mut taken, mut steps, mut may_renew) = (0, 0, true);
        while taken < request.frames && steps < request.steps_max {
            steps += 1;
            let seen = self.position.load(Acquire);
            if self.is_due(seen, may_renew) {
                may_renew = false;
                if self.renew(seen, stamps) == Some(0) {
                    break;
                }
            }
            let Some((frame, stamp)) = self.next() else {
                // The list is consumed, and another thread is sorting.
                yield_now();
                continue;
            };
            if !stamps.is_current(frame, stamp) {
                continue;
            }
            match host.take(frame) {
                Ok((gone, _page)) => {
                    taken += 1;
                    if gone == frame {
                        stamps.taken(frame, stamp);
                    }
                }
                Err(why) => stamps.refused(frame, why),
            }
        }
        taken
    }

    #[inline(always)]
    fn is_due(&self, position: u64, may_renew: bool) -> bool {
        let (side, index) = split(position);
        let len = self.lens[side].load(Relaxed);
        let enough = ((f64::from(len) * self.share) as u32).max(1);
        index >= len || (may_renew && index >= enough)
    }

    /// Returns the next entry of the served list.
    #[inline(always)]
    fn next(&self) -> Option<(FrameId, u32)> {
        let (side, index) = split(self.position.load(Acquire));
        if index >= self.lens[side].load(Relaxed) {
            return None;
        }
        let (side, index) = split(self.position.fetch_add(1, AcqRel));
        if index >= self.lens[side].load(Relaxed) {
            return None;
        }
        let entry = self.lists[side].get(index as usize)?.load(Relaxed);
        Some((FrameId((entry >> 32) as u32), entry as u32))
    }

    /// Re-sorts, unless another thread does so or did since `seen`; returns the new number of
    /// entries.
    #[cold]
    fn renew(&self, seen: u64, stamps: &impl Stamps) -> Option<u32> {
        if self.sorting.swap(true, Acquire) {
            return None;
        }
        let generation = self.position.load(Acquire) >> 32;
        let mut entries = None;
        if generation == seen >> 32 {
            let mut candidates = Vec::with_capacity(self.lists[0].len());
            stamps.collect(&mut candidates);
            candidates.sort_unstable_by_key(|c| c.order);
            let side = (generation as usize + 1) % 2;
            for (entry, c) in self.lists[side].iter().zip(&candidates) {
                entry.store(u64::from(c.frame) << 32 | u64::from(c.stamp), Relaxed);
            }
            let len = candidates.len().min(self.lists[side].len()) as u32;
            self.lens[side].store(len, Relaxed);
            self.position.store((generation + 1) << 32, Release);
            entries = Some(len);
        }
        self.sorting.store(false, Release);
        entries
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.lists.iter().map(|list| list.len() * 8).sum()
    }

    /// Verifies that the served list names only frames of the pool, each once.
    ///
    /// # Errors
    /// The wrong frame.
    pub fn check(&self) -> Result<(), String> {
        let (side, _) = split(self.position.load(Acquire));
        let len = self.lens[side].load(Relaxed) as usize;
        let mut listed = vec![false; self.lists[side].len()];
        for entry in self.lists[side].iter().take(len) {
            let frame = (entry.load(Relaxed) >> 32) as usize;
            match listed.get_mut(frame) {
                Some(twice) if !*twice => *twice = true,
                _ => return Err(format!("frame {frame} is listed twice, or not of this pool")),
            }
        }
        Ok(())
    }
}

/// Splits a position into the served list and the index of its next entry.
#[inline(always)]
fn split(position: u64) -> (usize, u32) {
    ((position >> 32) as usize % 2, position as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_ordered_across_the_clock_s_wrap_and_a_little_ahead_of_it() {
        let now = 5u32;
        let old_to_new = [6 + AHEAD, u32::MAX - 7, u32::MAX - 1, 1, 5, 6, 1_000];
        let order: Vec<u32> = old_to_new.iter().map(|s| recency(*s, now)).collect();
        assert!(order.is_sorted(), "{order:?}");
        assert_eq!((stamp_of(0), stamp_of(u32::MAX)), (1, u32::MAX - 1));
    }

    struct Plain(Vec<AtomicU32>);

    impl Stamps for Plain {
        fn collect(&self, candidates: &mut Vec<Candidate>) {
            candidates.extend(self.0.iter().enumerate().map(|(frame, stamp)| {
                let stamp = stamp.load(Relaxed);
                Candidate { order: stamp.into(), frame: frame as u32, stamp }
            }));
        }
        fn is_current(&self, frame: FrameId, stamp: u32) -> bool {
            self.0[frame.index()].load(Relaxed) == stamp
        }
        fn taken(&self, _: FrameId, _: u32) {}
        fn refused(&self, _: FrameId, _: RefusalReason) {}
    }

    struct Counts<'a>(&'a [AtomicU32]);

    impl Host for Counts<'_> {
        fn offer(&mut self, frame: FrameId) -> crate::contract::OfferOutcome {
            self.0[frame.index()].fetch_add(1, Relaxed);
            crate::contract::OfferOutcome::Taken(millpond_base::PageId(0))
        }
    }

    /// Four threads take 2 000 frames from one order that is never renewed: none is offered twice.
    #[test]
    fn threads_consume_a_list_without_offering_an_entry_twice() {
        let frames = 2_000;
        let sorted = Sorted::new(frames, 1.0);
        let stamps = Plain((0..frames).map(AtomicU32::new).collect());
        let offered: Vec<AtomicU32> = (0..frames).map(|_| AtomicU32::new(0)).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..frames / 4 {
                        let request =
                            EvictRequest { frames: 1, steps_max: 1 << 20, now: 0, incoming: None };
                        assert_eq!(sorted.evict(&request, &mut Counts(&offered), &stamps), 1);
                    }
                });
            }
        });
        assert!(offered.iter().all(|o| o.load(Relaxed) == 1));
        sorted.check().unwrap();
    }
}
