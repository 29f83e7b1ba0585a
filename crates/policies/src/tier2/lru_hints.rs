//! `lru-hints`: least recently used among the pages that leave the first tier.
//!
//! **Idea** — A page written to make room (SYNCH, REPLACE) will be read here next; a page just read
//! (READ), or written to bound recovery (RECOV), is in the first tier and will not. So only the
//! former are worth a frame, or a move in the list.
//!
//! **Source** — li 3.3.2, algorithm 3.1.
//!
//! **State** — One list of the resident frames, the next victim at the front; a flag for the end of
//! the cold start.
//!
//! **Invariants** — (1) The list holds exactly the resident frames. (2) Frames whose page had a
//! positive request come after all others, in the order of the last such request.
//!
//! **Cost** — Hit: relink, if the hint is positive. Admit: link. Evict: unlink, O(1). 8 bytes per
//! frame, no ghosts.
//!
//! **Deviations** — The cold start ends permanently when the cache is first full. The source tests
//! for a full cache each time, which is the same if frames are never freed. An unwanted page that
//! is admitted enters at the victim's end, as in the cold start. A refused frame moves to the
//! recent end.
//!
//! **Defaults** — No parameters. A write without a reason counts as REPLACE.

use millpond_base::FrameId;

use crate::config::NoConfig;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{ColdStart, Hint, Links, List};

/// Least recently used among the pages that leave the first tier.
pub struct LruHints {
    links: Links,
    list: List,
    start: ColdStart,
}

impl PolicySpec for LruHints {
    const INFO: Info = Info {
        id: "lru-hints",
        summary: "second tier: lru over pages written to make room, others pass by",
        family: Family::SecondTier,
        class: Class::Two,
        age: Age::Last,
        references: References::Some,
        tier: Tier::Second,
        live: false,
        frame_bytes: 8.0,
        ghost_bytes: 0.0,
        source: "li 3.3.2, algorithm 3.1",
    };
    type Hook = CentralHook;
    type Config = NoConfig;

    fn new(_config: &NoConfig, shape: &Shape) -> LruHints {
        LruHints {
            links: Links::new(shape.frames),
            list: List::new(),
            start: ColdStart::new(shape.frames),
        }
    }

    fn state_bytes(&self) -> usize {
        self.links.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.list.check(&self.links)?;
        let (listed, there) = (self.list.len() as usize, resident.len());
        if listed != there || self.start.resident() as usize != there {
            return Err(format!("invariant 1: {listed} frames are listed, {there} are resident"));
        }
        Ok(())
    }
}

impl Policy for LruHints {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, access: &Access) {
        if Hint::of(access.mark).is_positive() {
            self.list.move_to_back(&mut self.links, frame.0);
        }
    }

    #[inline(always)]
    fn wants(&mut self, access: &Access) -> bool {
        Hint::of(access.mark).is_positive() || !self.start.is_over()
    }

    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, access: &Access, _: GhostHit) {
        if Hint::of(access.mark).is_positive() {
            self.list.push_back(&mut self.links, frame.0);
        } else {
            self.list.push_front(&mut self.links, frame.0);
        }
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
        self.list.evict(&mut self.links, request, host, |_frame| start.went())
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.list.remove(&mut self.links, frame.0);
        self.start.went();
    }
}
