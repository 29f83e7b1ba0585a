//! `pro-io`: offline, a page that costs nothing to evict, else the one needed last.
//!
//! **Idea** — Evicting a page costs a write if it is dirty, unless that write is due anyway, and a
//! read if it is read before it is written. Evicting a page that costs nothing is always right;
//! when each costs something, the page whose next request is farthest ahead is evicted.
//!
//! **Source** — li 5.4, 5.5.1, algorithm 5.1.
//!
//! **State** — A heap of the resident frames, those that cost nothing first, by the position of
//! their page's next request; a list of frames whose state must be requested.
//!
//! **Invariants** — (1) Exactly the resident frames are ranked. (2) Every frame whose state may
//! have changed since it was ranked is marked.
//!
//! **Cost** — Hit and admit: O(log n). Evict: O(log n) for each frame written since the last
//! eviction, and for the victim. 33 bytes per frame, no ghosts.
//!
//! **Deviations** — The source's case B2b (some pages cost two, some one) is decided by distance,
//! as there; it is not known to be optimal. Among pages that cost nothing, the one needed last is
//! evicted; any is as good (theorem 5.2). In a host that knows no pre-clean pages they count as
//! dirty. A refused frame keeps its place.
//!
//! **Defaults** — No parameters.

use std::cmp::Reverse;

use millpond_base::FrameId;

use crate::config::NoConfig;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, NEVER, PageState, Policy,
    PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::Ranking;

/// The next request is a read.
const READ_NEXT: u8 = 1;
/// The state must be requested.
const STALE: u8 = 2;
/// The page was dirty, and not pre-clean, at the last request.
const OWES: u8 = 4;

/// A page that costs nothing to evict, else the one needed last.
pub struct ProIo {
    ranking: Ranking<(bool, Reverse<u64>)>,
    flags: Vec<u8>,
    stale: Vec<u32>,
}

impl ProIo {
    #[inline(always)]
    fn rank(&mut self, frame: FrameId, access: &Access, owes: u8) {
        let flags = &mut self.flags[frame.index()];
        let read_next = access.next != NEVER && access.next == access.next_read;
        *flags = (*flags & STALE) | owes | if read_next { READ_NEXT } else { 0 };
        let costs = *flags & (READ_NEXT | OWES) != 0;
        self.ranking.set(frame.0, (costs, Reverse(access.next)));
        if access.mark.is_write() {
            self.mark_stale(frame);
        }
    }

    #[inline(always)]
    fn mark_stale(&mut self, frame: FrameId) {
        let flags = &mut self.flags[frame.index()];
        if *flags & STALE == 0 {
            *flags |= STALE;
            self.stale.push(frame.0);
        }
    }

    /// Requests the state of frames that were written since.
    fn refresh<H: Host + ?Sized>(&mut self, host: &H) {
        while let Some(frame) = self.stale.pop() {
            let flags = &mut self.flags[frame as usize];
            *flags &= !(STALE | OWES);
            let Some((_, next)) = self.ranking.key(frame) else { continue };
            if host.state(FrameId(frame)) == PageState::Dirty {
                *flags |= OWES;
            }
            self.ranking.set(frame, (*flags & (READ_NEXT | OWES) != 0, next));
        }
    }
}

impl PolicySpec for ProIo {
    const INFO: Info = Info {
        id: "pro-io",
        summary: "second tier, offline: a page that costs no i/o, else the one needed last",
        family: Family::Offline,
        class: Class::Offline,
        age: Age::Ignored,
        references: References::Ignored,
        tier: Tier::Second,
        live: false,
        frame_bytes: 33.0,
        ghost_bytes: 0.0,
        source: "li 5.5.1, algorithm 5.1",
    };
    const NEEDS_FUTURE: bool = true;
    type Hook = CentralHook;
    type Config = NoConfig;

    fn new(_config: &NoConfig, shape: &Shape) -> ProIo {
        ProIo {
            ranking: Ranking::new(shape.frames),
            flags: vec![0; shape.frames as usize],
            stale: Vec::new(),
        }
    }

    fn state_bytes(&self) -> usize {
        self.ranking.bytes() + self.flags.capacity() + self.stale.capacity() * 4
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.ranking.check_holds(resident)?;
        let marked = self.flags.iter().filter(|f| **f & STALE != 0).count();
        if marked != self.stale.len() {
            return Err(format!("invariant 2: {marked} marks, {} listed", self.stale.len()));
        }
        Ok(())
    }
}

impl Policy for ProIo {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, access: &Access) {
        let owes = self.flags[frame.index()] & OWES;
        self.rank(frame, access, owes);
    }

    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, access: &Access, _: GhostHit) {
        self.rank(frame, access, 0);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.refresh(host);
        self.ranking.evict(request, host, |_frame, _page| ()).0
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.ranking.remove(frame.0);
    }

    fn cleaned(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.mark_stale(frame);
    }
}
