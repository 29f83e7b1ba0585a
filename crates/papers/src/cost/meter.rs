//! Times the hits and the victims of a policy separately.
//!
//! References are classified first, untimed: hits are collected until some pages have missed. Then
//! one timed loop delivers all these hits, and another finds victims for all these pages and admits
//! them. Each policy therefore has the hits per miss that it earns, and reading the clock costs
//! next to nothing per event. Neither the drawing of references nor the page table is timed. A page
//! is evicted up to one such block later than it would be otherwise.
//!
//! Only the policy is timed: no latch is taken, and hits are independent of each other, so a
//! processor overlaps their cache misses. A policy that a hit does not reach costs nothing.

use std::time::{Duration, Instant};

use millpond_base::{FrameId, Mark, PageId};
use millpond_policies::contract::{
    Access, Cooled, HitHook, Host, OfferOutcome, PageState, Policy, RefusalReason, Shape,
};

use super::references::References;
use millpond_lab::sim::Stalled;
use millpond_policies::policy_host::PolicyHost;

/// Misses of a block, at most; fewer in a pool of fewer than eight times as many frames.
const BLOCK: usize = 256;
/// Hits of a block, at most.
const HITS_MAX: usize = 1 << 14;

const RESIDENT: u8 = 1;
const DIRTY: u8 = 2;
const COOLING: u8 = 4;
/// Frame of a page that is not resident.
const NOWHERE: u32 = u32::MAX;

/// Number of events and the time they took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Hits that were delivered.
    pub hits: u64,
    /// Total time of the hits.
    pub hit_time: Duration,
    /// Pages that found a victim and were admitted in its place.
    pub victims: u64,
    /// Total time of the victims.
    pub victim_time: Duration,
}

impl Tally {
    /// Nanoseconds of a hit; `None` without one.
    pub fn hit_ns(&self) -> Option<f64> {
        (self.hits > 0).then(|| self.hit_time.as_nanos() as f64 / self.hits as f64)
    }

    /// Nanoseconds of a victim; `None` without one.
    pub fn victim_ns(&self) -> Option<f64> {
        (self.victims > 0).then(|| self.victim_time.as_nanos() as f64 / self.victims as f64)
    }

    fn add(&mut self, other: &Tally) {
        self.hits += other.hits;
        self.hit_time += other.hit_time;
        self.victims += other.victims;
        self.victim_time += other.victim_time;
    }
}

/// A [`Meter`] with its policy's type erased.
pub trait CostMeter: Send {
    /// Continues until `victims` pages found a victim, or until the timed parts took `limit`; it
    /// delivers at least a hit and a victim.
    ///
    /// # Errors
    /// [`Stalled`] when the policy finds no victim.
    fn run(&mut self, victims: u64, limit: Duration) -> Result<Tally, Stalled>;

    /// Everything since the pool was full.
    fn all(&self) -> Tally;

    /// Bytes of the policy's state now: the frames' metadata, and its own with its ghosts.
    fn bytes(&self) -> usize;
}

/// A policy over a pool that is full.
pub struct Meter<P: Policy> {
    host: PolicyHost<P>,
    pool: Pool,
    references: References,
    position: usize,
    /// Frame of each page.
    frame_of: Vec<u32>,
    hits: Vec<(FrameId, PageId, Mark)>,
    misses: Vec<(PageId, Mark)>,
    /// The frames of the last block's pages, and the pages that left for them, in order.
    moves: Vec<(PageId, FrameId, PageId)>,
    all: Tally,
}

impl<P: Policy> Meter<P> {
    /// A policy over a pool of `frames` frames, at least 1, filled with the first pages there are.
    pub fn new(config: &P::Config, frames: u32, references: References, seed: u64) -> Meter<P> {
        let shape = Shape { frames, pages_dense: None, seed };
        let mut meter = Meter {
            host: PolicyHost::new(config, &shape),
            pool: Pool::new(frames),
            position: 0,
            frame_of: vec![NOWHERE; references.pages() as usize],
            references,
            hits: Vec::new(),
            misses: Vec::new(),
            moves: Vec::new(),
            all: Tally::default(),
        };
        for frame in 0..frames {
            let page = PageId(u64::from(frame));
            let now = meter.host.tick();
            let access = Access { page, mark: Mark::READ, now, next: 0, next_read: 0 };
            let ghost_hit = meter.host.miss(&access);
            meter.pool.load(FrameId(frame), page, Mark::READ);
            meter.host.admit(FrameId(frame), &access, ghost_hit);
            meter.frame_of[frame as usize] = frame;
        }
        meter
    }

    /// Collects the next block: hits, and pages that missed, each once.
    fn collect(&mut self) {
        self.hits.clear();
        self.misses.clear();
        let most = (self.pool.flags.len() / 8).clamp(1, BLOCK);
        while self.misses.len() < most && self.hits.len() < HITS_MAX {
            let (page, mark) = self.references.at(self.position);
            self.position += 1;
            match self.frame_of[page.0 as usize] {
                NOWHERE if self.misses.iter().any(|(missed, _)| *missed == page) => {}
                NOWHERE => self.misses.push((page, mark)),
                frame => self.hits.push((FrameId(frame), page, mark)),
            }
        }
    }

    /// Not inlined: a profiler counts instructions by this name.
    #[inline(never)]
    fn deliver_all_hits(&mut self) {
        for (frame, page, mark) in &self.hits {
            let now = self.host.tick();
            let access = Access { page: *page, mark: *mark, now, next: 0, next_read: 0 };
            let cooling = P::Hook::COOLS && self.pool.revive(*frame);
            self.host.hit(*frame, &access, cooling);
        }
    }

    /// Not inlined, like `deliver_all_hits`.
    #[inline(never)]
    fn replace_all_misses(&mut self) -> Result<(), NoVictim> {
        for (page, mark) in &self.misses {
            let now = self.host.tick();
            let access = Access { page: *page, mark: *mark, now, next: 0, next_read: 0 };
            let ghost_hit = self.host.miss(&access);
            self.host.evict(&mut self.pool, 1, Some((*page, ghost_hit)));
            let (frame, gone) = self.pool.free.pop().ok_or(NoVictim)?;
            self.moves.push((*page, frame, gone));
            self.pool.load(frame, *page, *mark);
            self.host.admit(frame, &access, ghost_hit);
        }
        Ok(())
    }

    fn block(&mut self) -> Result<Tally, Stalled> {
        self.collect();
        let begun = Instant::now();
        self.deliver_all_hits();
        let hit_time = begun.elapsed();
        for (frame, _, mark) in &self.hits {
            self.pool.mark(*frame, *mark);
        }
        self.moves.clear();
        let begun = Instant::now();
        let replaced = self.replace_all_misses();
        let victim_time = begun.elapsed();
        for (page, frame, gone) in &self.moves {
            self.frame_of[gone.0 as usize] = NOWHERE;
            self.frame_of[page.0 as usize] = frame.0;
        }
        let frames = self.pool.flags.len() as u32;
        let stalled = |_| Stalled { policy: P::INFO.id, frames, reference: self.position as u64 };
        replaced.map_err(stalled)?;
        let (hits, victims) = (self.hits.len() as u64, self.misses.len() as u64);
        Ok(Tally { hits, hit_time, victims, victim_time })
    }
}

impl<P: Policy> CostMeter for Meter<P> {
    fn run(&mut self, victims: u64, limit: Duration) -> Result<Tally, Stalled> {
        let mut round = Tally::default();
        loop {
            round.add(&self.block()?);
            let is_late = round.hit_time + round.victim_time >= limit;
            let has_both = round.hits > 0 && round.victims > 0;
            if has_both && (round.victims >= victims || is_late) {
                self.all.add(&round);
                return Ok(round);
            }
        }
    }

    fn all(&self) -> Tally {
        self.all
    }

    fn bytes(&self) -> usize {
        self.host.bytes()
    }
}

/// Returns the bytes that a policy would use for a pool without frames, the part that does not grow
/// with the pool. It is extrapolated from pools of one and of two frames before their first pages.
pub fn fixed_bytes<P: Policy>(config: &P::Config) -> usize {
    let of = |frames| {
        PolicyHost::<P>::new(config, &Shape { frames, pages_dense: None, seed: 1 }).bytes()
    };
    (2 * of(1)).saturating_sub(of(2))
}

struct NoVictim;

/// The frames of the pool.
struct Pool {
    page_of: Vec<PageId>,
    flags: Vec<u8>,
    /// Frames that were freed, with the pages that were in them.
    free: Vec<(FrameId, PageId)>,
}

impl Pool {
    fn new(frames: u32) -> Pool {
        let frames = frames as usize;
        Pool { page_of: vec![PageId(0); frames], flags: vec![0; frames], free: Vec::new() }
    }

    #[inline(always)]
    fn load(&mut self, frame: FrameId, page: PageId, mark: Mark) {
        self.page_of[frame.index()] = page;
        self.flags[frame.index()] = RESIDENT | if mark.is_write() { DIRTY } else { 0 };
    }

    fn mark(&mut self, frame: FrameId, mark: Mark) {
        self.flags[frame.index()] |= if mark.is_write() { DIRTY } else { 0 };
    }

    /// Clears the frame's cooling mark; returns `true` if it was set.
    #[inline(always)]
    fn revive(&mut self, frame: FrameId) -> bool {
        let flags = &mut self.flags[frame.index()];
        let was = *flags & COOLING != 0;
        *flags &= !COOLING;
        was
    }
}

impl Host for Pool {
    #[inline(always)]
    fn offer(&mut self, frame: FrameId) -> OfferOutcome {
        match self.flags.get_mut(frame.index()) {
            Some(flags) if *flags & RESIDENT != 0 => {
                *flags = 0;
                let page = self.page_of[frame.index()];
                self.free.push((frame, page));
                OfferOutcome::Taken(page)
            }
            _ => OfferOutcome::Refused(RefusalReason::Absent),
        }
    }

    #[inline(always)]
    fn cool(&mut self, frame: FrameId) -> Cooled {
        match self.flags.get_mut(frame.index()) {
            Some(flags) if *flags & (RESIDENT | COOLING) == RESIDENT => {
                *flags |= COOLING;
                Cooled::Yes
            }
            Some(flags) if *flags & RESIDENT != 0 => Cooled::Refused(RefusalReason::Changed),
            _ => Cooled::Refused(RefusalReason::Absent),
        }
    }

    #[inline(always)]
    fn state(&self, frame: FrameId) -> PageState {
        match self.flags.get(frame.index()) {
            Some(flags) if flags & DIRTY != 0 => PageState::Dirty,
            _ => PageState::Clean,
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond_policies::config::NoConfig;
    use millpond_policies::policy::{Lru, Random};

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn meter<P: Policy>(frames: u32) -> Meter<P> {
        Meter::new(&P::Config::default(), frames, References::new(frames, 1), 1)
    }

    /// Asserts that frames and pages refer to each other, and that the policy's own invariants
    /// hold.
    fn check<P: Policy>(meter: &Meter<P>) {
        let resident: Vec<FrameId> = (0..meter.pool.flags.len() as u32).map(FrameId).collect();
        for frame in &resident {
            let page = meter.pool.page_of[frame.index()];
            assert_ne!(meter.pool.flags[frame.index()] & RESIDENT, 0);
            assert_eq!(meter.frame_of[page.0 as usize], frame.0);
        }
        let placed = meter.frame_of.iter().filter(|frame| **frame != NOWHERE).count();
        assert_eq!(placed, resident.len());
        meter.host.check(&resident).unwrap();
    }

    #[test]
    fn hits_and_victims_are_counted_and_the_pool_stays_full() {
        let mut meter = meter::<Lru>(64);
        check(&meter);
        let first = meter.run(100, LONG).unwrap();
        assert!((100..108).contains(&first.victims), "whole blocks of 8: {first:?}");
        assert!(first.hits > 0 && first.victim_time > Duration::ZERO);
        let second = meter.run(1, LONG).unwrap();
        assert!((1..=8).contains(&second.victims), "{second:?}");
        assert_eq!(meter.all().victims, first.victims + second.victims);
        check(&meter);
    }

    #[test]
    fn a_better_policy_earns_more_hits_for_each_victim() {
        let per_victim = |tally: Tally| tally.hits as f64 / tally.victims as f64;
        let random = per_victim(meter::<Random>(256).run(4000, LONG).unwrap());
        let lru = per_victim(meter::<Lru>(256).run(4000, LONG).unwrap());
        assert!(lru > random, "{lru} {random}");
    }

    #[test]
    fn time_that_is_over_ends_a_round_after_a_block() {
        let mut meter = meter::<Lru>(64);
        let round = meter.run(u64::MAX, Duration::ZERO).unwrap();
        assert!((1..=8).contains(&round.victims), "{round:?}");
    }

    #[test]
    fn one_frame_is_enough() {
        let mut meter = meter::<Random>(1);
        assert!(meter.run(50, LONG).unwrap().victims >= 50);
        check(&meter);
        assert_eq!((fixed_bytes::<Random>(&NoConfig {}), meter.bytes()), (0, 0));
        assert_eq!(fixed_bytes::<Lru>(&NoConfig {}), 0, "eight for each frame, and no more");
    }

    #[test]
    fn nothing_has_no_cost() {
        let none = Tally::default();
        assert_eq!((none.hit_ns(), none.victim_ns()), (None, None));
        let time = Duration::from_nanos(30);
        let some = Tally { hits: 3, hit_time: time, victims: 2, victim_time: time };
        assert_eq!((some.hit_ns(), some.victim_ns()), (Some(10.0), Some(15.0)));
    }
}
