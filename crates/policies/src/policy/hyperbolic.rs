//! `hyperbolic`: of a few random frames, the one with the fewest references per time in the cache.
//!
//! **Idea** — A page's worth is its rate of references since it was loaded. Rates change with time,
//! so no order is kept: a sample is valued when a victim is needed.
//!
//! **Source** — watt 2.2, table 1; Blankstein, Sen and Freedman, USENIX ATC 2017. With
//! `candidates`: watt 6.1, where it differs from WATT only in the tracked data and in the value of
//! a page ([`parts::hunt`](crate::parts::hunt)).
//!
//! **State** — References and the time of the load beside each frame; a random generator.
//!
//! **Invariants** — (1) Of a sample, frames are offered in ascending order of references / age;
//! with `candidates`, if more than one frame is wanted, no candidate above the sample's least is
//! taken, unless nothing else can be. (2) Every frame is equally likely to be sampled. (3) A
//! resident frame has a reference, unless a thread is offering it at that moment.
//!
//! **Cost** — Hit: one load and one store in the frame's own metadata, no latch. Admit: two stores.
//! Evict: `sample` frames read and compared, no division; with `candidates` a division for each
//! examined frame, and an atomic exchange for each offered one. 8 bytes per frame, no ghosts.
//!
//! **Deviations** — Age is counted in references and not in seconds; sizes and costs are all 1.
//! Samples are drawn with repetition among all frames, and the host refuses free ones. With
//! `candidates`, a free frame has no references and is skipped, values are rounded to 24 bits, and
//! a permanently refused page counts as referenced 2³² − 1 times, which is never offered. Sampling
//! makes every oracle a band, not an equality.
//!
//! **Defaults** — `sample=10`, as WATT's simulator runs it; watt 4.1 has 20, the original 64;
//! `candidates=0`, a sample for each victim. WATT's evictor is `sample=8,candidates=64`.

use millpond_base::sync::atomic::{AtomicU32, Ordering::Relaxed};
use millpond_base::{FrameId, Tick};

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Hit, HitHook, Host, OpenPolicy, PolicySpec,
    RefusalReason, Shape, TickSource, Zeroed,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::Random as Generator;
use crate::parts::hunt::{Hunted, Plan, hunt};

/// The largest sample.
const SAMPLE_MAX: usize = 64;
/// References of a frame that holds no page, or one that a thread tries to evict.
const GONE: u32 = 0;
/// References of a page that can never be evicted; a full count stays full.
const FOREVER: u32 = u32::MAX;

config! {
    /// Parameters of [`Hyperbolic`].
    pub struct HyperbolicConfig {
        /// Frames evaluated for each victim.
        sample: u32 = 10, in 1..=64;
        /// Frames that are then compared with the sample's least value if several victims are
        /// wanted; 0: a sample for each victim.
        candidates: u32 = 0, in 0..=65_536;
    }
}

/// A page's references, and the time of its load.
#[derive(Default, Debug)]
pub struct Rate {
    references: AtomicU32,
    loaded: AtomicU32,
}

zeros!(Rate { references, loaded });

/// The hot half: a count.
pub struct CountRate;

impl HitHook for CountRate {
    type Meta = Rate;
    type Params = ();
    const HIT: Hit = Hit::Meta;
    const TICK: TickSource = TickSource::PerAccess;

    #[inline(always)]
    fn on_hit(rate: &Rate, _: &(), _: &Access) {
        // A lost increment among racing hits is within the noise of sampling.
        let references = rate.references.load(Relaxed);
        rate.references.store(references.saturating_add(1), Relaxed);
    }

    #[inline(always)]
    fn reset(rate: &Rate, _: &(), access: &Access) {
        rate.references.store(1, Relaxed);
        rate.loaded.store(access.now, Relaxed);
    }

    fn zeroed(_: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        Zeroed::fresh()
    }
}

/// The rate of an offered page, to be restored if the page stays.
#[derive(Clone, Copy)]
pub struct Kept {
    references: u32,
    loaded: u32,
}

/// A sampled frame.
#[derive(Clone, Copy, Default)]
struct Candidate {
    frame: u32,
    references: u32,
    age: u32,
}

impl Candidate {
    #[inline(always)]
    fn of(frames: Frames<'_, CountRate>, frame: u32, now: Tick) -> Candidate {
        let rate = frames.meta(FrameId(frame));
        let age = now.wrapping_sub(rate.loaded.load(Relaxed)).max(1);
        Candidate { frame, references: rate.references.load(Relaxed), age }
    }

    /// Returns `true` if the frame is worth less than `other`.
    #[inline(always)]
    fn is_below(self, other: Candidate) -> bool {
        u64::from(self.references) * u64::from(other.age)
            < u64::from(other.references) * u64::from(self.age)
    }
}

/// Sampled references per time.
pub struct Hyperbolic {
    sample: usize,
    /// 0 for a sample for each victim.
    candidates: u32,
    generator: Generator,
}

impl PolicySpec for Hyperbolic {
    const INFO: Info = Info {
        id: "hyperbolic",
        summary: "of a sample, the page with the fewest references per time",
        family: Family::Sampled,
        class: Class::Two,
        age: Age::First,
        references: References::All,
        tier: Tier::First,
        live: true,
        frame_bytes: 8.0,
        ghost_bytes: 0.0,
        source: "watt 2.2; Blankstein et al. 2017",
    };
    const IS_RANDOM: bool = true;
    type Hook = CountRate;
    type Config = HyperbolicConfig;

    fn new(config: &HyperbolicConfig, shape: &Shape) -> Hyperbolic {
        let sample = (config.sample as usize).clamp(1, SAMPLE_MAX);
        let candidates = config.candidates;
        Hyperbolic { sample, candidates, generator: Generator::new(shape.seed) }
    }

    fn state_bytes(&self) -> usize {
        0
    }

    fn check(&self, frames: Frames<'_, CountRate>, resident: &[FrameId]) -> Result<(), String> {
        match resident.iter().find(|&&f| frames.meta(f).references.load(Relaxed) == 0) {
            Some(frame) => Err(format!("invariant 3: frame {frame:?} has no reference")),
            None => Ok(()),
        }
    }
}

impl Hunted for Hyperbolic {
    type Hook = CountRate;
    type Kept = Kept;

    #[inline(always)]
    fn values<'a>(&self, now: u32, values: &mut [f32], of: impl Fn(usize) -> &'a Rate) {
        for (at, value) in values.iter_mut().enumerate() {
            let rate = of(at);
            let age = now.wrapping_sub(rate.loaded.load(Relaxed)).max(1);
            *value = rate.references.load(Relaxed) as f32 / age as f32;
        }
    }

    #[inline(always)]
    fn is_live(rate: &Rate) -> bool {
        !matches!(rate.references.load(Relaxed), GONE | FOREVER)
    }

    #[inline(always)]
    fn vanish(rate: &Rate) -> Kept {
        let loaded = rate.loaded.load(Relaxed);
        Kept { references: rate.references.swap(GONE, Relaxed), loaded }
    }

    #[inline(always)]
    fn stay(rate: &Rate, kept: Kept, why: Option<RefusalReason>) {
        // Otherwise another thread has the frame and knows its count, or has loaded another page.
        if kept.references == GONE || kept.loaded != rate.loaded.load(Relaxed) {
            return;
        }
        let is_forever = why.is_some_and(|why| !why.is_temporary());
        // Later hits are added to the earlier ones.
        let all = kept.references.saturating_add(rate.references.load(Relaxed));
        rate.references.store(if is_forever { FOREVER } else { all }, Relaxed);
    }
}

impl Hyperbolic {
    /// Draws a sample for each victim.
    #[inline(always)]
    fn sample_for_each<H: Host + ?Sized>(
        &self,
        frames: Frames<'_, CountRate>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let mut sample = [Candidate::default(); SAMPLE_MAX];
        let (mut taken, mut steps) = (0, 0);
        while taken < request.frames && steps < request.steps_max {
            let size = self.sample.min((request.steps_max - steps) as usize);
            steps += size as u32;
            let drawn = self.generator.sample(size, frames.len());
            for (candidate, frame) in sample.iter_mut().zip(drawn) {
                *candidate = Candidate::of(frames, frame, request.now);
            }
            // A refused frame gives way to the next of the sample. Otherwise a hot frame among many
            // pinned ones would never be the least of a sample.
            for offered in 0..size {
                let (mut least, mut place) = (sample[offered], offered);
                for (at, &other) in sample[..size].iter().enumerate().skip(offered + 1) {
                    if other.is_below(least) {
                        (least, place) = (other, at);
                    }
                }
                sample.swap(offered, place);
                if host.take(FrameId(least.frame)).is_ok() {
                    taken += 1;
                    break;
                }
                if host.has_enough() {
                    host.count_examined(steps);
                    return taken;
                }
            }
        }
        host.count_examined(steps);
        taken
    }
}

impl OpenPolicy for Hyperbolic {
    #[inline(always)]
    fn admit(&self, _: Frames<'_, CountRate>, _: FrameId, _: &Access, _: GhostHit) {}

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &self,
        frames: Frames<'_, CountRate>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        if self.candidates == 0 {
            return self.sample_for_each(frames, request, host);
        }
        if frames.is_empty() {
            return 0;
        }
        let plan = Plan {
            sample: self.sample as u32,
            candidates: self.candidates,
            now: request.now,
            bits: self.generator.bits(),
        };
        hunt(self, plan, frames, request, host)
    }

    fn forget(&self, frames: Frames<'_, CountRate>, frame: FrameId) {
        // A sample for each victim also offers free frames.
        if self.candidates > 0 {
            frames.meta(frame).references.store(GONE, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::Mark;

    use super::*;
    use crate::testing::TestPool;

    const SHARED: &str = "hyperbolic(sample=8,candidates=64)";

    fn pool(text: &str, frames: u32) -> TestPool<Hyperbolic> {
        TestPool::of(text, frames)
    }

    /// Makes pages of different ages, each hit by its number modulo 7.
    fn filled(text: &str, frames: u32) -> TestPool<Hyperbolic> {
        let mut pool = pool(text, frames);
        for page in 0..u64::from(frames) {
            for _ in 0..=page % 7 {
                pool.access(page, Mark::READ, 0);
                pool.now += 1;
            }
        }
        pool.now += 50;
        pool
    }

    fn worth(pool: &TestPool<Hyperbolic>, frame: u32) -> f32 {
        let mut value = [0.0];
        pool.policy.values(pool.now, &mut value, |_| &pool.metas[frame as usize]);
        value[0]
    }

    /// Returns the victims of `evict(wanted)` by watt's listing 2, one look after the other.
    fn by_the_listing(pool: &TestPool<Hyperbolic>, bits: u64, wanted: usize) -> Vec<u64> {
        let mut random = fastrand::Rng::with_seed(bits);
        let frames = pool.metas.len() as u32;
        let mut live: Vec<bool> = pool.metas.iter().map(Hyperbolic::is_live).collect();
        let page = |frame: u32| pool.host.frames[frame as usize].page.unwrap();
        let mut gone = Vec::new();
        while gone.len() < wanted {
            let drawn: Vec<u32> = (0..8).map(|_| random.u32(0..frames)).collect();
            let mut sample: Vec<u32> = drawn.into_iter().filter(|f| live[*f as usize]).collect();
            sample.sort_by(|a, b| worth(pool, *a).total_cmp(&worth(pool, *b)));
            let Some(least) = sample.first().map(|frame| worth(pool, *frame)) else { continue };
            let before = gone.len();
            for _ in 0..if wanted - before > 1 { 64 } else { 0 } {
                let frame = random.u32(0..frames);
                let is_wanted = gone.len() < wanted && live[frame as usize];
                if is_wanted && worth(pool, frame) <= least {
                    live[frame as usize] = false;
                    gone.push(page(frame));
                }
            }
            if gone.len() == before {
                live[sample[0] as usize] = false;
                gone.push(page(sample[0]));
            }
        }
        gone
    }

    #[test]
    fn with_candidates_it_evicts_as_watts_listing_does() {
        for frames in [30, 100, 180] {
            let mut pool = filled(SHARED, frames);
            let bits = Generator::new(1);
            for wanted in [2, 1, 9] {
                let expected = by_the_listing(&pool, bits.bits(), wanted);
                let before = pool.host.gone.len();
                assert_eq!(pool.evict(wanted as u32), wanted as u32);
                assert_eq!(pool.host.gone[before..], expected, "{frames} frames, {wanted} wanted");
            }
        }
    }

    #[test]
    fn with_candidates_no_frame_without_a_page_is_offered() {
        let mut pool = filled(SHARED, 64);
        (0..32).for_each(|page| pool.drop_page(page));
        let before = pool.host.offered.len();
        assert_eq!(pool.evict(16), 16);
        assert_eq!(pool.host.offered.len() - before, 16, "only what is there");
        assert!(pool.host.gone.iter().all(|page| *page >= 32));
    }

    #[test]
    fn a_page_that_stays_keeps_its_references_and_one_refused_for_good_is_not_asked_again() {
        let mut pool = filled(SHARED, 8);
        let count = |pool: &TestPool<Hyperbolic>, page| {
            let frame = pool.frame_of(page).unwrap();
            pool.metas[frame.index()].references.load(Relaxed)
        };
        (0..8).for_each(|page| pool.refuse(page, Some(RefusalReason::Pinned)));
        assert_eq!(pool.evict(2), 0);
        let counts: Vec<u32> = (0..8).map(|page| count(&pool, page)).collect();
        assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 1]);
        (0..7).for_each(|page| pool.refuse(page, Some(RefusalReason::Permanent)));
        pool.refuse(7, None);
        assert_eq!((pool.evict(2), pool.host.gone.as_slice()), (1, &[7][..]));
        let _ = pool.evict(1);
        let offers = pool.host.offered.len();
        assert_eq!((pool.evict(2), pool.host.offered.len()), (0, offers));
        pool.access(0, Mark::READ, 0);
        assert_eq!(count(&pool, 0), FOREVER, "a hit does not wake it");
    }

    #[test]
    fn hits_while_a_page_is_offered_count_and_another_page_is_left_alone() {
        let rate = |references: u32, loaded: u32| Rate {
            references: references.into(),
            loaded: loaded.into(),
        };
        let page = rate(5, 3);
        let kept = Hyperbolic::vanish(&page);
        assert!(!Hyperbolic::is_live(&page));
        page.references.store(2, Relaxed);
        Hyperbolic::stay(&page, kept, Some(RefusalReason::Pinned));
        assert_eq!(page.references.load(Relaxed), 7);
        let kept = Hyperbolic::vanish(&page);
        let again = Hyperbolic::vanish(&page);
        Hyperbolic::stay(&page, kept, None);
        Hyperbolic::stay(&page, again, Some(RefusalReason::Permanent));
        assert_eq!(page.references.load(Relaxed), 7, "two threads, and one knows the count");
        let kept = Hyperbolic::vanish(&page);
        page.references.store(1, Relaxed);
        page.loaded.store(9, Relaxed);
        Hyperbolic::stay(&page, kept, Some(RefusalReason::Latched));
        assert_eq!(page.references.load(Relaxed), 1);
    }

    #[test]
    fn batches_take_few_pages_that_are_worth_much() {
        let mut pool = filled(SHARED, 210);
        let mut all: Vec<(f32, u64)> =
            (0..210).map(|frame| (worth(&pool, frame), u64::from(frame))).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let half: Vec<u64> = all[..105].iter().map(|(_, page)| *page).collect();
        assert_eq!(pool.evict(40), 40);
        let low = pool.host.gone.iter().filter(|page| half.contains(page)).count();
        assert!(low >= 36, "only {low} of 40 are in the lower half");
    }
}
