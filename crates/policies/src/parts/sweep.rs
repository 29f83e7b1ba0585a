//! A clock hand that sweeps usage counts down, and stops where one is 0.
//!
//! The counts are in the frames' own metadata. The hand is one counter for all threads and gives
//! out short runs of frames. A thread that found its victim returns the rest of its run if no
//! other thread has claimed frames since. A single thread thus moves the hand exactly frame by
//! frame, with a fraction of the atomic additions.
//!
//! Large counts need many rounds. When a whole round found no count of 0, the further rounds that
//! cannot find one are done at once, by subtracting their total from every count. The victims are
//! the same, and no pool of much-used pages makes an eviction endless. Frames that the host
//! refused in this call are left out of that: a fixed page, whose count each refusal raises, must
//! not keep the hand going round at its pace.

use millpond_base::FrameId;
use millpond_base::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::contract::{EvictRequest, HitOn, Host, RefusalReason};

choice! {
    /// The events that change a usage count (gilbert 1.2.10).
    pub enum CountOn {
        /// Hits, when they begin.
        Fix = "fix",
        /// Hits, when they begin, and refusals.
        FixFull = "fix-full",
        /// Accesses, when they end; the loading one, too.
        Unfix = "unfix",
        /// Accesses, when they end, and refusals.
        UnfixFull = "unfix-full",
    }
}

impl CountOn {
    /// Returns the end of an access that counts.
    pub fn hit_on(self) -> HitOn {
        match self {
            CountOn::Fix | CountOn::FixFull => HitOn::Fix,
            CountOn::Unfix | CountOn::UnfixFull => HitOn::Unfix,
        }
    }

    /// Returns `true` if a refusal counts as a reference.
    pub fn refusals(self) -> bool {
        matches!(self, CountOn::FixFull | CountOn::UnfixFull)
    }
}

/// Frames claimed at a time.
const RUN: u64 = 16;

/// Access to the counts, and the effect of a refusal.
pub trait Counts {
    /// Returns the count of `frame`.
    fn count(&self, frame: FrameId) -> &AtomicU32;
    /// Records that the host refused a frame with count 0.
    fn refused(&self, frame: FrameId, why: RefusalReason);
}

/// The hand.
pub struct Hand {
    at: AtomicU64,
}

/// Record of the hand since the last victim, or since the last whole round.
struct Round {
    steps: u64,
    least: u32,
    fresh_zero: bool,
}

impl Round {
    fn new() -> Round {
        Round { steps: 0, least: u32::MAX, fresh_zero: false }
    }

    #[inline(always)]
    fn saw(&mut self, count: u32) {
        self.fresh_zero |= count == 0;
        self.least = self.least.min(count);
    }

    /// Does the rounds that cannot find a victim; `self` was a whole round. The frames in
    /// `refused` will probably be refused again, so their counts are ignored.
    #[cold]
    fn skip<C: Counts>(&self, frames: u64, step: u32, counts: &C, refused: &mut Vec<u32>) {
        let least = match refused.is_empty() {
            true if self.fresh_zero => 0,
            true => self.least,
            false => least_but(refused, frames, counts),
        };
        if least == 0 || least == u32::MAX {
            return;
        }
        let by = least.div_ceil(step).saturating_mul(step);
        for frame in 0..frames {
            let count = counts.count(FrameId(frame as u32));
            let value = count.load(Relaxed);
            if value > 0 {
                count.store(value.saturating_sub(by), Relaxed);
            }
        }
    }
}

/// Returns the least count of a frame that is not in `refused`; `u32::MAX` if there is none.
fn least_but<C: Counts>(refused: &mut Vec<u32>, frames: u64, counts: &C) -> u32 {
    refused.sort_unstable();
    refused.dedup();
    let mut others = refused.iter().copied().peekable();
    let mut least = u32::MAX;
    for frame in 0..frames as u32 {
        if others.next_if_eq(&frame).is_none() {
            least = least.min(counts.count(FrameId(frame)).load(Relaxed));
        }
        if least == 0 {
            break;
        }
    }
    least
}

impl Default for Hand {
    fn default() -> Self {
        Hand::new()
    }
}

impl Hand {
    /// Creates a hand before frame 0.
    pub fn new() -> Hand {
        Hand { at: AtomicU64::new(0) }
    }

    /// Sweeps `frames` frames until `request` is met: subtracts `step`, at least 1, from counts
    /// above 0, and offers frames whose count is 0. Returns the number taken.
    pub fn sweep<C: Counts, H: Host + ?Sized>(
        &self,
        frames: u32,
        step: u32,
        request: &EvictRequest,
        counts: &C,
        host: &mut H,
    ) -> u32 {
        let (frames, step) = (u64::from(frames.max(1)), step.max(1));
        let (mut taken, mut steps, mut round) = (0, 0, Round::new());
        let mut refused = Vec::new();
        while taken < request.frames && steps < request.steps_max {
            let start = self.at.fetch_add(RUN, Relaxed);
            let run = RUN.min(u64::from(request.steps_max - steps));
            let (mut at, mut used) = (start % frames, 0);
            while used < run && taken < request.frames && round.steps < frames {
                used += 1;
                round.steps += 1;
                let frame = FrameId(at as u32);
                at = if at + 1 == frames { 0 } else { at + 1 };
                let count = counts.count(frame);
                let value = count.load(Relaxed);
                if value > 0 {
                    let lower = value.saturating_sub(step);
                    count.store(lower, Relaxed);
                    round.saw(lower);
                } else if self.offered(frame, counts, host, &mut round) {
                    taken += 1;
                } else {
                    refused.push(frame.0);
                }
            }
            steps += used as u32;
            if used < RUN {
                // If another thread claimed frames since, ours stay unswept for this round.
                let _ = self.at.compare_exchange(start + RUN, start + used, Relaxed, Relaxed);
            }
            if round.steps >= frames {
                round.skip(frames, step, counts, &mut refused);
                round = Round::new();
            }
        }
        taken
    }

    /// Offers `frame`, whose count is 0; returns `true` if a frame was taken.
    #[inline(always)]
    fn offered<C: Counts, H: Host + ?Sized>(
        &self,
        frame: FrameId,
        counts: &C,
        host: &mut H,
        round: &mut Round,
    ) -> bool {
        match host.take(frame) {
            Ok(_) => {
                *round = Round::new();
                true
            }
            Err(why) => {
                counts.refused(frame, why);
                let value = counts.count(frame).load(Relaxed);
                if value > 0 {
                    round.saw(value);
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::PageId;

    use super::*;
    use crate::contract::OfferOutcome;

    struct Plain(Vec<AtomicU32>);

    impl Counts for Plain {
        fn count(&self, frame: FrameId) -> &AtomicU32 {
            &self.0[frame.index()]
        }
        fn refused(&self, _: FrameId, _: RefusalReason) {}
    }

    /// Host that takes all frames except pinned ones; the taken ones stay, with a count of 3.
    struct Pins<'a> {
        pinned: Vec<bool>,
        counts: &'a Plain,
        taken: Vec<u32>,
    }

    impl Host for Pins<'_> {
        fn offer(&mut self, frame: FrameId) -> OfferOutcome {
            if self.pinned[frame.index()] {
                return OfferOutcome::Refused(RefusalReason::Pinned);
            }
            self.counts.0[frame.index()].store(3, Relaxed);
            self.taken.push(frame.0);
            OfferOutcome::Taken(PageId(0))
        }
    }

    /// Sweeps step by step, as gilbert describes it.
    fn plain_sweep(counts: &mut [u32], pinned: &[bool], hand: &mut usize, step: u32) -> u32 {
        loop {
            let at = *hand % counts.len();
            *hand += 1;
            if counts[at] == 0 {
                if !pinned[at] {
                    counts[at] = 3;
                    return at as u32;
                }
            } else {
                counts[at] = counts[at].saturating_sub(step);
            }
        }
    }

    #[test]
    fn skipped_rounds_and_runs_change_no_victim() {
        let mut rng = fastrand::Rng::with_seed(5);
        for frames in [1usize, 2, 3, 15, 16, 17, 40] {
            for step in [1, 3] {
                let mut model: Vec<u32> = (0..frames).map(|_| rng.u32(0..5_000)).collect();
                let counts = Plain(model.iter().map(|&c| AtomicU32::new(c)).collect());
                let mut pinned: Vec<bool> = (0..frames).map(|_| rng.u8(0..4) == 0).collect();
                pinned[0] = false;
                let (hand, mut model_hand) = (Hand::new(), 0);
                for _ in 0..200 {
                    let mut host = Pins { pinned: pinned.clone(), counts: &counts, taken: vec![] };
                    let request =
                        EvictRequest { frames: 1, steps_max: 1 << 20, now: 0, incoming: None };
                    assert_eq!(hand.sweep(frames as u32, step, &request, &counts, &mut host), 1);
                    let expected = plain_sweep(&mut model, &pinned, &mut model_hand, step);
                    assert_eq!(host.taken, [expected]);
                    assert_eq!(hand.at.load(Relaxed) % frames as u64, (model_hand % frames) as u64);
                    for (ours, theirs) in counts.0.iter().zip(&mut model) {
                        if rng.u8(0..10) == 0 {
                            *theirs += rng.u32(0..1_000);
                            ours.store(*theirs, Relaxed);
                        }
                        assert_eq!(ours.load(Relaxed), *theirs);
                    }
                }
            }
        }
    }

    #[test]
    fn a_sweep_that_may_look_at_few_frames_looks_at_no_more_and_goes_on_there() {
        let counts = Plain((0..10).map(|_| AtomicU32::new(2)).collect());
        let hand = Hand::new();
        let mut host = Pins { pinned: vec![false; 10], counts: &counts, taken: vec![] };
        let request = EvictRequest { frames: 3, steps_max: 7, now: 0, incoming: None };
        let mut calls = 0;
        while hand.sweep(10, 1, &request, &counts, &mut host) == 0 {
            calls += 1;
            assert!(calls < 4, "20 steps suffice");
        }
        assert_eq!(host.taken[0], 0);
        assert_eq!(counts.0[9].load(Relaxed), 0);
    }
}
