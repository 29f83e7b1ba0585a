//! `watt`: write-aware timestamp tracking: of a few random pages, the one worth least is evicted.
//!
//! **Idea** — A page is worth its access frequency, and nobody knows the right span for measuring
//! it. So measure over every span that the last few timestamps delimit, and believe the highest.
//! Timestamps of writes are worth extra, so that dirty pages stay for as long as that pays.
//!
//! **Source** — watt 3 (tracking, value, refinements), 4.3 (parameters, variants), 5 (fast form).
//!
//! **State** — One cache line of stamps beside each frame, in two rings: accesses and writes. The
//! clock is the host's: one tick per fixed number of evictions, an *epoch*. A random generator.
//!
//! **Invariants** — (1) A resident frame is known, unless a thread is offering it at that moment.
//! (2) A ring holds the last stamps of its kind, at most one per epoch, youngest at its head;
//! racing hits may lose or misplace one, which watt 5 accepts. (3) If one frame is wanted, the
//! least valued evictable frame of the sample is taken; if more are wanted, no candidate above the
//! sample's least value is taken, unless nothing else can be. (4) A permanently refused frame is
//! not offered again while its page stays.
//!
//! **Cost** — Hit: one comparison, and two stores if the epoch is new; no latch. Admit: 64 bytes
//! written. Evict: `sample` cache lines, and if more than one frame is wanted `candidates` more,
//! which load while earlier victims are offered, and a vector of divisions for each, by AVX-512 or
//! AVX2 if the machine has them; no latch. 64 bytes per frame, no ghosts.
//!
//! **Deviations** — Frames are drawn with replacement, and a sample as large as the pool is the
//! whole pool. Frames without a page are skipped; refused ones are replaced by the next best, and
//! if the number of draws reaches the number of frames without a victim, all are offered in turn.
//! The WATT authors' simulator lets ages begin at 1, so that a page of the current epoch has a
//! finite value (as with `age_from=1`), and counts epochs by loads, including those that fill the
//! pool. With both, hits and writes are within the noise of the draws. Without chance (every page
//! examined, a tick per reference), 30 of its 33 cells are met exactly and the others within 4
//! hits, which are ties. In the bit variant a write counts as `1 + write_weight` accesses of its
//! subfrequencies, as there.
//!
//! **Defaults** — watt 4.3: 8 accesses, 4 writes, samples of 8, 4 epochs per cache replacement,
//! dampening 0.1, maximum, write weight 4; `candidates=64` as in its listing 2, whose 64 epochs
//! are `epochs=64`. A page of the current epoch is worth +∞ (`age_from=0`).
//!
//! The file is long because one policy is one file: the twin by the paper's listing, against which
//! the tests compare, has no other user.

use std::marker::PhantomData;

use millpond_base::FrameId;

use crate::config::{Param, ParamError};
use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Hit, HitHook, Host, OpenPolicy, PolicySpec,
    RefusalReason, Shape, TickSource, Zeroed,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::Random as Generator;
use crate::parts::hunt::{Hunted, Plan, hunt};
use crate::parts::stamps::{Ring, SLOTS, Stamps};
use crate::parts::worth::{Aggregate, StampLog, Tracking, Worth, stamp};

/// The speed of the clock: epochs per replacement of the whole cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Epochs {
    /// A number of epochs.
    PerReplacement(u32),
    /// One per eviction.
    Max,
}

impl Param for Epochs {
    fn read(text: &str) -> Option<Epochs> {
        if text == "max" {
            return Some(Epochs::Max);
        }
        text.parse().ok().filter(|n| *n > 0).map(Epochs::PerReplacement)
    }

    fn write(&self) -> String {
        match self {
            Epochs::PerReplacement(n) => n.to_string(),
            Epochs::Max => "max".to_string(),
        }
    }

    fn takes() -> String {
        "a number of epochs per cache replacement, or max".to_string()
    }
}

config! {
    /// Parameters of [`Watt`].
    pub struct WattConfig {
        /// Frames examined to find the least valued one; the size of the pool examines all of them.
        sample: u32 = 8, in 1..=65_536;
        /// Access timestamps kept per page; together with `writes` at most 15, one cache line.
        accesses: u32 = 8, in 1..=15;
        /// Write timestamps kept per page.
        writes: u32 = 4, in 0..=8;
        /// Epochs per replacement of the whole cache, or max: one per eviction.
        epochs: Epochs = Epochs::PerReplacement(4);
        /// Factor of the first-order subfrequency.
        dampening: f64 = 0.1, in 0.0..=1.0;
        /// Function that computes a value from the subfrequencies.
        aggregate: Aggregate = Aggregate::Max;
        /// Cost of a write in reads; 0 ignores writes.
        write_weight: f64 = 4.0, in 0.0..=1e6;
        /// Contents of the lists: accesses and writes, reads and writes, or one list with a bit.
        log: StampLog = StampLog::Both;
        /// Frames compared with the sample's least value if several victims are wanted.
        candidates: u32 = 64, in 1..=65_536;
        /// Age in epochs of a timestamp of the current epoch: 0 makes its page worth +∞.
        age_from: u32 = 0, in 0..=1;
    }
    check one_line;
}

fn one_line(config: &WattConfig) -> Result<(), ParamError> {
    let stamps = config.accesses + config.writes;
    if config.log == StampLog::Bit || stamps as usize <= SLOTS {
        return Ok(());
    }
    Err(ParamError::Impossible {
        name: "accesses".to_string(),
        value: config.accesses.to_string(),
        reason: format!(
            "with writes={} it makes {stamps} stamps per page, and a cache line holds {SLOTS}",
            config.writes
        ),
    })
}

/// Clock of the stamps.
pub trait WattClock: Send + Sync + 'static {
    /// The host's clock.
    const TICK: TickSource;
}

/// Ticks by evictions: the policy as published.
pub struct ByEvictions;

impl WattClock for ByEvictions {
    const TICK: TickSource = TickSource::PerEviction;
}

/// Ticks by references, without epochs, for comparison with simulators that do so.
pub struct ByReferences;

impl WattClock for ByReferences {
    const TICK: TickSource = TickSource::PerAccess;
}

/// The hot half: a stamp, if the epoch is new.
pub struct WattHook<C>(PhantomData<C>);

impl<C: WattClock> HitHook for WattHook<C> {
    type Meta = Stamps;
    type Params = Tracking;
    const HIT: Hit = Hit::Meta;
    const TICK: TickSource = C::TICK;
    const READS_PAGE: bool = false;

    #[inline(always)]
    fn is_noop(stamps: &Stamps, tracking: &Tracking, access: &Access) -> bool {
        tracking.knows(stamps, access.now, access.mark)
    }

    #[inline(always)]
    fn on_hit(stamps: &Stamps, tracking: &Tracking, access: &Access) {
        tracking.track(stamps, access.now, access.mark);
    }

    #[inline(always)]
    fn reset(stamps: &Stamps, tracking: &Tracking, access: &Access) {
        stamps.clear();
        tracking.track(stamps, access.now, access.mark);
    }

    fn zeroed(_: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        Zeroed::fresh()
    }
}

/// Write-aware timestamp tracking.
pub struct Watt<C = ByEvictions> {
    tracking: Tracking,
    worth: Worth,
    sample: u32,
    candidates: u32,
    evictions_per_tick: u32,
    generator: Generator,
    _clock: PhantomData<C>,
}

impl<C: WattClock> PolicySpec for Watt<C> {
    const INFO: Info = Info {
        id: "watt",
        summary: "of a few random pages the one with the least access and write frequency goes",
        family: Family::Sampled,
        class: Class::Two,
        age: Age::Some,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 64.0,
        ghost_bytes: 0.0,
        source: "watt 3, 4.3, 5",
    };
    const IS_RANDOM: bool = true;
    type Hook = WattHook<C>;
    type Config = WattConfig;

    fn new(config: &WattConfig, shape: &Shape) -> Watt<C> {
        let tracking = Tracking::new(config.log, config.accesses, config.writes);
        Watt {
            tracking,
            worth: Worth::new(
                tracking,
                config.aggregate,
                config.dampening as f32,
                config.write_weight as f32,
                config.age_from,
            ),
            sample: config.sample,
            candidates: config.candidates,
            evictions_per_tick: match config.epochs {
                Epochs::PerReplacement(n) => (shape.frames / n.max(1)).max(1),
                Epochs::Max => 1,
            },
            generator: Generator::new(shape.seed),
            _clock: PhantomData,
        }
    }

    fn params(&self) -> Tracking {
        self.tracking
    }

    fn evictions_per_tick(&self) -> u32 {
        self.evictions_per_tick
    }

    fn state_bytes(&self) -> usize {
        self.worth.bytes()
    }

    fn check(&self, frames: Frames<'_, WattHook<C>>, resident: &[FrameId]) -> Result<(), String> {
        for &frame in resident {
            let stamps = frames.meta(frame);
            if !stamps.is_known() {
                return Err(format!("invariant 1: frame {} is not known", frame.0));
            }
            // Their order is not verified, since racing hits may have broken it.
            let copy = stamps.copy();
            let bare = |ring: Ring| !ring.is_empty() && copy.iter(ring).next().is_none();
            if self.tracking.rings().into_iter().all(bare) {
                return Err(format!("invariant 2: nothing is logged for frame {}", frame.0));
            }
        }
        Ok(())
    }
}

impl<C: WattClock> Hunted for Watt<C> {
    type Hook = WattHook<C>;
    type Kept = ();

    #[inline(always)]
    fn values<'a>(&self, now: u32, values: &mut [f32], of: impl Fn(usize) -> &'a Stamps) {
        self.worth.values(now, values, of);
    }

    #[inline(always)]
    fn is_live(stamps: &Stamps) -> bool {
        stamps.is_live()
    }

    #[inline(always)]
    fn vanish(stamps: &Stamps) {
        stamps.vanish();
    }

    #[inline(always)]
    fn stay(stamps: &Stamps, _: (), why: Option<RefusalReason>) {
        stamps.stay(why.is_some_and(|why| !why.is_temporary()));
    }
}

impl<C: WattClock> OpenPolicy for Watt<C> {
    #[inline(always)]
    fn admit(&self, frames: Frames<'_, WattHook<C>>, frame: FrameId, _: &Access, _: GhostHit) {
        frames.meta(frame).appear();
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &self,
        frames: Frames<'_, WattHook<C>>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        if frames.is_empty() {
            return 0;
        }
        let plan = Plan {
            sample: self.sample,
            candidates: self.candidates,
            now: stamp(request.now),
            bits: self.generator.bits(),
        };
        hunt(self, plan, frames, request, host)
    }

    fn forget(&self, frames: Frames<'_, WattHook<C>>, frame: FrameId) {
        frames.meta(frame).vanish();
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::{Mark, PageId};

    use super::*;
    use crate::config::Spec;
    use crate::testing::TestPool;

    fn config(text: &str) -> WattConfig {
        Spec::parse(text).unwrap().config().unwrap()
    }

    fn pool(text: &str, frames: u32) -> TestPool<Watt> {
        TestPool::new(&config(text), frames)
    }

    /// Returns the value at tick `now` of a page that was referenced at these ticks, with writes
    /// marked.
    fn value(text: &str, references: &[(u32, bool)], now: u32) -> f32 {
        let pool = pool(text, 100);
        let stamps = Stamps::default();
        for &(tick, write) in references {
            let mark = if write { Mark::WRITE } else { Mark::READ };
            let access = Access { page: PageId(1), mark, now: tick, next: 0, next_read: 0 };
            WattHook::<ByEvictions>::on_hit(&stamps, &pool.policy.params(), &access);
        }
        pool.policy.worth.value(&stamps, stamp(now))
    }

    fn is_close(a: f32, b: f32) -> bool {
        (a - b).abs() <= 1e-6 * a.abs().max(b.abs())
    }

    const EXAMPLE: [(u32, bool); 4] = [(0, false), (8, false), (15, false), (42, false)];

    #[test]
    fn the_worked_example_of_watt_3_1_has_its_subfrequencies() {
        // At 50: 1/8, 2/35, 3/42, 4/50.
        let of = |text: &str| value(text, &EXAMPLE, 50);
        assert!(is_close(of("watt(dampening=1)"), 1.0 / 8.0));
        assert!(is_close(of("watt(dampening=1,aggregate=min)"), 2.0 / 35.0));
        let mean = (1.0 / 8.0 + 2.0 / 35.0 + 3.0 / 42.0 + 4.0 / 50.0) / 4.0;
        assert!(is_close(of("watt(dampening=1,aggregate=mean)"), mean));
        assert!(is_close(of("watt(dampening=1,aggregate=median)"), 4.0 / 50.0));
        // Dampened, 1/8 counts for 0.0125, and the long-run frequency wins.
        assert!(is_close(of("watt"), 4.0 / 50.0));
        assert!(is_close(of("watt(aggregate=min)"), 0.1 / 8.0));
        // A shorter log forgets the oldest access.
        assert!(is_close(of("watt(accesses=3)"), 3.0 / 42.0));
        assert!(is_close(of("watt(accesses=1)"), 0.1 / 8.0));
    }

    #[test]
    fn a_page_of_this_epoch_is_worth_more_than_any_other_and_an_empty_log_nothing() {
        assert_eq!(value("watt", &EXAMPLE, 42), f32::INFINITY);
        assert_eq!(value("watt(dampening=0,aggregate=mean)", &EXAMPLE, 42), f32::INFINITY);
        assert_eq!(value("watt(log=bit)", &EXAMPLE, 42), f32::INFINITY);
        assert!(is_close(value("watt(age_from=1,dampening=1)", &EXAMPLE, 42), 1.0));
        for text in ["watt", "watt(log=bit)", "watt(aggregate=mean)", "watt(aggregate=median)"] {
            assert_eq!(value(text, &[], 42), 0.0);
        }
    }

    #[test]
    fn writes_are_logged_and_weighed_as_each_variant_says() {
        let references = [(0, false), (5, true), (10, false), (10, true), (15, false)];
        let of = |text: &str| value(text, &references, 20);
        // Accesses at 0, 5, 10, 15: 0.1/5, 2/10, 3/15, 4/20. Writes at 5, 10: 2/15, 0.1/10.
        assert!(is_close(of("watt"), 0.2 + 4.0 * 2.0 / 15.0));
        assert!(is_close(of("watt(write_weight=0)"), 0.2));
        assert!(is_close(of("watt(writes=0)"), 0.2));
        assert!(is_close(of("watt(writes=1)"), 0.2 + 4.0 * 0.1 / 10.0));
        // Reads at 0, 10, 15: 3/20 and 2/10. Writes count as accesses, too.
        assert!(is_close(of("watt(log=strict)"), 0.2 + 5.0 * 2.0 / 15.0));
        // Weights 1, 5, 5, 1 from the youngest: 0.1/5, 6/10, 11/15, 12/20.
        assert!(is_close(of("watt(log=bit)"), 11.0 / 15.0));
    }

    #[test]
    fn more_stamps_than_a_line_holds_are_an_error() {
        let read = |text: &str| Spec::parse(text).unwrap().config::<WattConfig>();
        assert!(read("watt(accesses=12)").unwrap_err().to_string().contains("16 stamps"));
        for fits in ["watt(accesses=11)", "watt(accesses=15,writes=0)", "watt(accesses=15,log=bit)"]
        {
            assert!(read(fits).is_ok(), "{fits}");
        }
        assert!(read("watt(epochs=0)").is_err());
        assert_eq!(
            Watt::<ByEvictions>::new(
                &config("watt(epochs=max)"),
                &Shape { frames: 100, pages_dense: None, seed: 1 },
            )
            .evictions_per_tick(),
            1
        );
    }

    #[test]
    fn a_sample_of_everything_evicts_the_least_valued_page_that_can_go() {
        let mut pool = pool("watt(sample=100)", 4);
        for page in 0..4 {
            pool.access(page, Mark::READ, 0);
            pool.now += 3;
        }
        pool.access(0, Mark::READ, 0);
        pool.now += 3;
        pool.refuse(1, Some(RefusalReason::Pinned));
        pool.access(4, Mark::READ, 0);
        assert_eq!(pool.host.gone, [2], "0 was referenced again, 1 is pinned");
        pool.refuse(1, None);
        pool.now += 3;
        pool.access(5, Mark::READ, 0);
        assert_eq!(pool.host.gone, [2, 1]);
    }

    #[test]
    fn a_dirty_page_outlives_clean_ones_of_the_same_accesses() {
        let mut pool = pool("watt(sample=100)", 8);
        (0..8).for_each(|page| {
            pool.access(page, if page == 0 { Mark::WRITE } else { Mark::READ }, 0);
        });
        pool.now = 1;
        assert_eq!(pool.evict(7), 7);
        assert_eq!(pool.pages(), [0]);
    }

    #[test]
    fn batches_take_candidates_no_better_than_the_samples_least() {
        let mut pool = pool("watt", 256);
        for page in 0..256 {
            pool.now = u32::try_from(page / 16).unwrap();
            pool.access(page, Mark::READ, 0);
        }
        pool.now = 20;
        assert_eq!(pool.evict(32), 32);
        let old = pool.host.gone.iter().filter(|page| **page < 128).count();
        assert!(old >= 30, "only {old} of the 32 were in the older half");
    }

    /// Returns the victims of `evict(wanted)` with the defaults, by watt's listing 2, one look
    /// after the other.
    fn by_the_listing(pool: &TestPool<Watt>, bits: u64, wanted: usize) -> Vec<u64> {
        let mut random = fastrand::Rng::with_seed(bits);
        let frames = pool.metas.len() as u32;
        let mut live: Vec<bool> = pool.metas.iter().map(Stamps::is_live).collect();
        let value = |f: u32| pool.policy.worth.value(&pool.metas[f as usize], stamp(pool.now));
        let page = |f: u32| pool.host.frames[f as usize].page.unwrap();
        let mut gone = Vec::new();
        let take = |f: u32, live: &mut Vec<bool>, gone: &mut Vec<u64>| {
            if pool.host.frames[f as usize].refuse.is_none() {
                live[f as usize] = false;
                gone.push(page(f));
            }
        };
        while gone.len() < wanted {
            let drawn: Vec<u32> = (0..8).map(|_| random.u32(0..frames)).collect();
            let mut sample: Vec<u32> = drawn.into_iter().filter(|f| live[*f as usize]).collect();
            sample.sort_by(|a, b| value(*a).total_cmp(&value(*b)));
            let Some(least) = sample.first().map(|f| value(*f)) else { continue };
            let before = gone.len();
            let candidates = if wanted - before > 1 { 64 } else { 0 };
            for _ in 0..candidates {
                let f = random.u32(0..frames);
                if gone.len() < wanted && live[f as usize] && value(f) <= least {
                    take(f, &mut live, &mut gone);
                }
            }
            for f in sample {
                if gone.len() == before {
                    take(f, &mut live, &mut gone);
                }
            }
        }
        gone
    }

    #[test]
    fn batches_drawn_ahead_are_those_of_the_listing() {
        for seed in 0..60 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let frames = rng.u32(20..200);
            let mut pool = pool("watt", frames);
            for page in 0..u64::from(frames) {
                pool.access(page, if rng.bool() { Mark::READ } else { Mark::WRITE }, 0);
                pool.now += u32::from(rng.u8(0..9) == 0);
            }
            pool.now += 1;
            (0..u64::from(frames)).filter(|page| page % 9 == 0).for_each(|page| {
                pool.refuse(page, Some(RefusalReason::Pinned));
            });
            let bits = Generator::new(1);
            for wanted in [2, 1, 7] {
                let expected = by_the_listing(&pool, bits.bits(), wanted);
                let before = pool.host.gone.len();
                assert_eq!(pool.evict(wanted as u32), wanted as u32);
                assert_eq!(pool.host.gone[before..], expected, "seed {seed}, {wanted} wanted");
            }
        }
    }

    #[test]
    fn one_page_that_can_go_is_found_and_refused_for_good_is_not_asked_again() {
        for frames in [1, 2, 3, 40] {
            let mut pool = pool("watt", frames);
            let last = u64::from(frames) - 1;
            (0..=last).for_each(|page| assert!(!pool.access(page, Mark::READ, 0)));
            (0..last).for_each(|page| pool.refuse(page, Some(RefusalReason::Permanent)));
            assert_eq!(pool.evict(2), 1);
            assert_eq!(pool.host.gone, [last]);
            assert_eq!(pool.evict(1), 0);
            let offers = pool.host.offered.len();
            assert_eq!(pool.evict(1), 0);
            assert_eq!(pool.host.offered.len(), offers);
        }
    }
}
