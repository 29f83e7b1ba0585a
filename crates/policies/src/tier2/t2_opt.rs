//! `t2-opt`: offline, the most read hits that any second tier can have.
//!
//! **Idea** — Bélády's rule if only reads count and a page may bypass the cache: of the cached
//! pages and the requested one, the page with the farthest next read is evicted. That is the
//! source's rule, and nearly optimal. A page that is written before it is read could return with
//! that write for free, so `rule=exact` evicts such pages first and has the most read hits of all.
//!
//! **Source** — li 3.4.1 (OPT).
//!
//! **State** — A heap of the resident frames by the position of their page's next read; a flag for
//! the end of the cold start.
//!
//! **Invariants** — (1) Exactly the resident frames are ranked.
//!
//! **Cost** — Hit, admit, evict: O(log n). 28 bytes per frame, no ghosts.
//!
//! **Deviations** — The source calls its rule an upper bound, which `rule=exact` proves it is not;
//! the rule is kept as written. Among pages that are never read again, the requested one bypasses
//! the cache, else the one that was requested longest ago is evicted. If the host bypasses nothing,
//! a page that would have bypassed is the next victim by its key alone. A refused frame keeps its
//! place.
//!
//! **Defaults** — `rule=read`, as in li 3.4.1.

use std::cmp::Reverse;

use millpond_base::FrameId;

use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, NEVER, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{ColdStart, Ranking};

choice! {
    /// The rule that names the victim.
    pub enum T2OptRule {
        /// The page with the farthest next read (li 3.4.1).
        Read = "read",
        /// Like `Read`, but a page that is written before it is read goes first.
        Exact = "exact",
    }
}

config! {
    /// The parameters of the second tier's optimum.
    pub struct T2OptConfig {
        /// Rule that names the victim.
        rule: T2OptRule = T2OptRule::Read;
    }
}

/// The most read hits that a second tier can have.
pub struct T2Opt {
    ranking: Ranking<(Reverse<u64>, u64)>,
    start: ColdStart,
    rule: T2OptRule,
    now: u64,
}

impl T2Opt {
    #[inline(always)]
    fn rank(&mut self, frame: FrameId, access: &Access) {
        self.now += 1;
        self.ranking.set(frame.0, (Reverse(self.needed(access)), self.now));
    }

    /// Returns the position until which the page must be kept to hit with its next read; `NEVER` if
    /// it need not be kept.
    #[inline(always)]
    fn needed(&self, access: &Access) -> u64 {
        match self.rule {
            T2OptRule::Exact if access.next != access.next_read => NEVER,
            _ => access.next_read,
        }
    }
}

impl PolicySpec for T2Opt {
    const INFO: Info = Info {
        id: "t2-opt",
        summary: "second tier, offline: the most read hits, pages may pass by",
        family: Family::Offline,
        class: Class::Offline,
        age: Age::Ignored,
        references: References::Ignored,
        tier: Tier::Second,
        live: false,
        frame_bytes: 28.0,
        ghost_bytes: 0.0,
        source: "li 3.4.1",
    };
    const NEEDS_FUTURE: bool = true;
    type Hook = CentralHook;
    type Config = T2OptConfig;

    fn new(config: &T2OptConfig, shape: &Shape) -> T2Opt {
        T2Opt {
            ranking: Ranking::new(shape.frames),
            start: ColdStart::new(shape.frames),
            rule: config.rule,
            now: 0,
        }
    }

    fn state_bytes(&self) -> usize {
        self.ranking.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.ranking.check_holds(resident)
    }
}

impl Policy for T2Opt {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, access: &Access) {
        self.rank(frame, access);
    }

    #[inline(always)]
    fn wants(&mut self, access: &Access) -> bool {
        let last = self.ranking.first();
        !self.start.is_over() || last.is_none_or(|((next, _), _)| self.needed(access) < next.0)
    }

    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, access: &Access, _: GhostHit) {
        self.rank(frame, access);
        self.start.came();
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.start.evicting();
        let start = &mut self.start;
        self.ranking.evict(request, host, |_frame, _page| start.went()).0
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.ranking.remove(frame.0);
        self.start.went();
    }
}
