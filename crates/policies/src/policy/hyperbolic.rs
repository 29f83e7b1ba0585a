//! `hyperbolic`: of a few random frames, the one with the fewest references per time in the cache.
//!
//! **Idea** — A page's worth is its rate of references since it was loaded. Rates change with time,
//! so no order is kept: a sample is valued when a victim is needed.
//!
//! **Source** — watt 2.2, table 1; Blankstein, Sen and Freedman, USENIX ATC 2017.
//!
//! **State** — References and the time of the load beside each frame; a random generator.
//!
//! **Invariants** — (1) Of a sample, frames are offered in ascending order of references / age.
//! (2) Every frame is equally likely to be sampled. (3) A resident frame has a reference.
//!
//! **Cost** — Hit: one load and one store in the frame's own metadata, no latch. Admit: two stores.
//! Evict: `sample` frames read and compared, no division. 8 bytes per frame, no ghosts.
//!
//! **Deviations** — Age is counted in references and not in seconds; sizes and costs are all 1.
//! Samples are drawn with repetition among all frames, and what is free is refused by the host.
//! Sampling makes every oracle a band, not an equality.
//!
//! **Defaults** — `sample=10`, as WATT's simulator runs it; watt 4.1 has 20, the original 64.

use millpond_base::sync::atomic::{AtomicU32, Ordering::Relaxed};
use millpond_base::{FrameId, Tick};

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Hit, HitHook, Host, OpenPolicy, PolicySpec, Shape,
    TickSource, Zeroed,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::Random as Generator;

/// The largest sample.
const SAMPLE_MAX: usize = 64;

config! {
    /// Parameters of [`Hyperbolic`].
    pub struct HyperbolicConfig {
        /// Frames valued for each victim.
        sample: u32 = 10, in 1..=64;
    }
}

/// What a frame's page has done since it was loaded.
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

    /// Whether it is worth less than `other`.
    #[inline(always)]
    fn is_below(self, other: Candidate) -> bool {
        u64::from(self.references) * u64::from(other.age)
            < u64::from(other.references) * u64::from(self.age)
    }
}

/// Sampled references per time.
pub struct Hyperbolic {
    sample: usize,
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
        Hyperbolic { sample, generator: Generator::new(shape.seed) }
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
        let mut sample = [Candidate::default(); SAMPLE_MAX];
        let (mut taken, mut steps) = (0, 0);
        while taken < request.frames && steps < request.steps_max {
            let size = self.sample.min((request.steps_max - steps) as usize);
            steps += size as u32;
            let drawn = self.generator.sample(size, frames.len());
            for (candidate, frame) in sample.iter_mut().zip(drawn) {
                *candidate = Candidate::of(frames, frame, request.now);
            }
            // A refused frame gives way to the next of the sample: hot frames among many that are
            // pinned would never be the least of one.
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

    fn forget(&self, _: Frames<'_, CountRate>, _: FrameId) {}
}
