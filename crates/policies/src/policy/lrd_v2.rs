//! `lrd-v2`: least reference density, with ageing.
//!
//! **Idea** — Like `lrd-v1`, but old references fade: every count is lowered at regular intervals,
//! so that a page that was used much for a while is evicted afterwards.
//!
//! **Source** — gilbert 1.2.12, 1.2.12.2, algorithm 1.14 (after Effelsberg and Härder 1984).
//!
//! **State** — A reference count beside each frame with the interval it is of; in the tournament
//! the count as last seen and the time of the load, and one match per frame.
//!
//! **Invariants** — (1) Exactly the resident frames take part. (2) Of those not yet offered, the
//! least dense is offered.
//!
//! **Cost** — Hit: a load and a store in the frame's own metadata, no latch. Admit: one walk up the
//! tournament, O(log frames). Evict: the matches whose result time has changed, and one walk for
//! each winner that was hit since; `linear` examines all frames. 40 to 56 bytes per frame,
//! depending on the distance to a power of two; no ghosts.
//!
//! **Deviations** — gilbert's search of all frames is `search=linear`; by default a tournament
//! finds the same victims ([`parts::density`](crate::parts::density)). Densities are compared as
//! products, not as rounded quotients; among equals the lowest frame is evicted, as in his search.
//! A refused frame is not offered again in the same eviction. A temporary refusal counts as a
//! reference, a permanent one as if every reference so far had been to that page. Counts are
//! lowered when they are next touched or compared, once for each interval passed; for more than 32
//! at once, factors are multiplied before rounding.
//!
//! **Defaults** — `period=10, aging=subtract, by=10`: gilbert's *10 − 10*. His *2 · 0.75* is
//! `period=2,aging=multiply,by=0.75`.

use millpond_base::FrameId;
use millpond_base::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Hit, HitHook, Host, Policy, PolicySpec, RefusalReason,
    Shape, TickSource, Zeroed,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::density::{Search, Tournament};

choice! {
    /// The effect of ageing on a count.
    pub enum Aging {
        /// Subtracts from the count, down to 0.
        Subtract = "subtract",
        /// Multiplies the count by a factor below 1, rounding down.
        Multiply = "multiply",
    }
}

config! {
    /// Parameters of [`LrdV2`].
    pub struct LrdV2Config {
        /// Method of finding the least dense frame.
        search: Search = Search::Tournament;
        /// References between two ageings, in multiples of the number of frames.
        period: u32 = 10, in 1..=1_000_000;
        /// Effect of ageing on a count.
        aging: Aging = Aging::Subtract;
        /// Amount that is subtracted, or the factor; factors above 1 are 1.
        by: f64 = 10.0, in 0.0..=1e9;
    }
}

/// The hit path's parameters of ageing.
#[derive(Clone, Copy, Debug)]
pub struct Ageing {
    aging: Aging,
    by: f64,
    /// References between two ageings.
    period: u32,
}

impl Default for Ageing {
    fn default() -> Self {
        Ageing { aging: Aging::Subtract, by: 10.0, period: u32::MAX }
    }
}

impl Ageing {
    /// Returns the interval of a reference at tick `now`; ageing comes after an interval's last
    /// reference.
    #[inline(always)]
    fn interval(&self, now: u32) -> u32 {
        now.wrapping_sub(1) / self.period
    }

    /// Returns the number of ageings from one interval to another. The clock wraps, so intervals
    /// form a circle. A clock that seems to go back a little belongs to a late thread, and ages
    /// nothing.
    fn between(&self, since: u32, interval: u32) -> u32 {
        let circle = u64::from(u32::MAX / self.period) + 1;
        let times = (u64::from(interval) + circle - u64::from(since)) % circle;
        if circle - times <= circle / 256 { 0 } else { times as u32 }
    }

    /// Returns a count after `times` ageings.
    fn aged(&self, count: u32, times: u32) -> u32 {
        if self.aging == Aging::Subtract {
            return count.saturating_sub((self.by * f64::from(times)).min(4e9) as u32);
        }
        let factor = self.by.min(1.0);
        let mut left = count;
        for _ in 0..times.min(32) {
            left = (f64::from(left) * factor) as u32;
        }
        match times.saturating_sub(32) {
            0 => left,
            more => (f64::from(left) * factor.powf(f64::from(more))) as u32,
        }
    }
}

/// A reference count, and the interval in which it was last lowered.
#[derive(Default, Debug)]
pub struct AgedCount {
    references: AtomicU32,
    interval: AtomicU32,
}

zeros!(AgedCount { references, interval });

impl AgedCount {
    /// Returns the count in `interval`.
    #[inline(always)]
    fn at(&self, interval: u32, ageing: &Ageing) -> u32 {
        let count = self.references.load(Relaxed);
        let since = self.interval.load(Relaxed);
        if since == interval { count } else { ageing.aged(count, ageing.between(since, interval)) }
    }

    #[inline(always)]
    fn set(&self, count: u32, interval: u32) {
        self.references.store(count, Relaxed);
        if self.interval.load(Relaxed) != interval {
            self.interval.store(interval, Relaxed);
        }
    }
}

/// The hot half: a count.
pub struct CountAged;

impl HitHook for CountAged {
    type Meta = AgedCount;
    type Params = Ageing;
    const HIT: Hit = Hit::Meta;
    const TICK: TickSource = TickSource::PerAccess;

    #[inline(always)]
    fn on_hit(references: &AgedCount, ageing: &Ageing, access: &Access) {
        let interval = ageing.interval(access.now);
        references.set(references.at(interval, ageing).saturating_add(1), interval);
    }

    #[inline(always)]
    fn reset(references: &AgedCount, ageing: &Ageing, access: &Access) {
        references.set(1, ageing.interval(access.now));
    }

    fn zeroed(_: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        Zeroed::fresh()
    }
}

/// Least reference density with ageing.
pub struct LrdV2 {
    tournament: Tournament,
    ageing: Ageing,
    interval: u32,
}

impl PolicySpec for LrdV2 {
    const INFO: Info = Info {
        id: "lrd-v2",
        summary: "least references per time in the pool, and old references fade",
        family: Family::Frequency,
        class: Class::Two,
        age: Age::Some,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 40.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.12.2",
    };
    type Hook = CountAged;
    type Config = LrdV2Config;

    fn new(config: &LrdV2Config, shape: &Shape) -> LrdV2 {
        let period = u64::from(config.period) * u64::from(shape.frames);
        let period = u32::try_from(period).unwrap_or(u32::MAX).max(1);
        LrdV2 {
            tournament: Tournament::new(shape.frames, config.search),
            ageing: Ageing { aging: config.aging, by: config.by, period },
            interval: 0,
        }
    }

    fn params(&self) -> Ageing {
        self.ageing
    }

    fn state_bytes(&self) -> usize {
        self.tournament.bytes()
    }

    fn check(&self, _frames: Frames<'_, CountAged>, resident: &[FrameId]) -> Result<(), String> {
        self.tournament.check(resident)
    }
}

impl Policy for LrdV2 {
    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CountAged>,
        frame: FrameId,
        access: &Access,
        _recall: GhostHit,
    ) {
        self.tournament.load(frame.0, 1, access.now);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, CountAged>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let (interval, ageing) = (self.ageing.interval(request.now), self.ageing);
        let live = |frame| frames.meta(frame).at(interval, &ageing);
        if interval != self.interval {
            // Known counts must not exceed the true ones.
            self.interval = interval;
            self.tournament.revise(|frame| live(FrameId(frame)));
        }
        let refused = |frame, why: RefusalReason, now: u64| {
            let count = live(frame);
            let all = u32::try_from(now).unwrap_or(u32::MAX);
            let more = if why.is_temporary() { count.saturating_add(1) } else { count.max(all) };
            frames.meta(frame).set(more, interval);
        };
        self.tournament.evict(request, host, live, refused)
    }

    fn forget(&mut self, _frames: Frames<'_, CountAged>, frame: FrameId) {
        self.tournament.leave(frame.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_fade_by_interval_however_late_that_is_noticed() {
        let ageing = Ageing { aging: Aging::Multiply, by: 0.5, period: 100 };
        assert_eq!((ageing.interval(100), ageing.interval(101)), (0, 1));
        let (seen, unseen) = (AgedCount::default(), AgedCount::default());
        seen.set(1001, 0);
        unseen.set(1001, 0);
        for interval in 1..=5 {
            seen.set(seen.at(interval, &ageing), interval);
            assert_eq!(seen.at(interval, &ageing), unseen.at(interval, &ageing));
        }
        assert_eq!(unseen.at(5, &ageing), 31);
        assert_eq!(unseen.at(1 << 25, &ageing), 0);
        let ageing = Ageing { aging: Aging::Subtract, by: 10.0, period: 100 };
        assert_eq!((unseen.at(3, &ageing), unseen.at(101, &ageing)), (971, 0));
    }

    #[test]
    fn counts_go_on_fading_when_the_clock_wraps() {
        for period in [1, 7, 100, 1 << 20, u32::MAX] {
            let ageing = Ageing { aging: Aging::Subtract, by: 10.0, period };
            let count = AgedCount::default();
            count.set(1000, ageing.interval(0));
            assert_eq!(count.at(ageing.interval(1), &ageing), 990, "period {period}");
            if period < 1 << 20 {
                let later = ageing.interval(period.wrapping_mul(2) + 1);
                assert_eq!(count.at(later, &ageing), 970, "period {period}");
            }
        }
    }

    #[test]
    fn a_clock_that_is_a_little_late_ages_nothing() {
        let ageing = Ageing { aging: Aging::Subtract, by: 10.0, period: 100 };
        let count = AgedCount::default();
        count.set(1000, 7);
        assert_eq!(count.at(6, &ageing), 1000);
        count.set(1000, 0);
        assert_eq!(count.at(ageing.interval(0), &ageing), 1000, "late over the wrap");
    }
}
