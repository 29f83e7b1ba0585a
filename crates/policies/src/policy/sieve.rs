//! `sieve`: a queue in order of arrival, and a hand that sifts out unused pages.
//!
//! **Idea** — CLOCK puts a spared page among the newest, where it hides for a whole round. Leave
//! it where it is: survivors stay together at the old end, new pages are soon met by the hand.
//!
//! **Source** — Zhang et al., NSDI 2024.
//!
//! **State** — A list of the frames in order of arrival; a visited bit beside each frame; the
//! hand, which is the frame to examine next.
//!
//! **Invariants** — (1) The list holds exactly the resident frames. (2) The hand is a listed
//! frame, or none, and then the sweep restarts at the oldest.
//!
//! **Cost** — Hit: set a mark in the frame's own metadata if it is not set, no latch. Admit: link.
//! Evict: a sweep, amortised one frame per hit, and an unlink. 9 bytes per frame, no ghosts.
//!
//! **Deviations** — None. Hits equal libCacheSim's and those of WATT's simulator in every cell;
//! the Caffeine simulator 3.2.4 differs from both. A refused frame is skipped.
//!
//! **Defaults** — No parameters.

use millpond_base::FrameId;

use crate::config::NoConfig;
use crate::contract::{Access, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::list::NIL;
use crate::parts::{Links, List, MarkHook, take_mark};

/// Order of arrival, sifted by a hand.
pub struct Sieve {
    links: Links,
    list: List,
    /// Frame to examine next; [`NIL`] for the oldest.
    hand: u32,
}

impl Sieve {
    #[inline(always)]
    fn unlink(&mut self, frame: FrameId) {
        if self.hand == frame.0 {
            self.hand = self.links.next(frame.0).unwrap_or(NIL);
        }
        self.list.remove(&mut self.links, frame.0);
    }
}

impl PolicySpec for Sieve {
    const INFO: Info = Info {
        id: "sieve",
        summary: "a hand sifts a queue in order of arrival; survivors stay where they are",
        family: Family::Clock,
        class: Class::Two,
        age: Age::First,
        references: References::Last,
        tier: Tier::First,
        live: true,
        frame_bytes: 9.0,
        ghost_bytes: 0.0,
        source: "Zhang et al. NSDI 2024",
    };
    type Hook = MarkHook;
    type Config = NoConfig;

    fn new(_config: &NoConfig, shape: &Shape) -> Sieve {
        Sieve { links: Links::new(shape.frames), list: List::new(), hand: NIL }
    }

    fn state_bytes(&self) -> usize {
        self.links.bytes()
    }

    fn check(&self, _frames: Frames<'_, MarkHook>, resident: &[FrameId]) -> Result<(), String> {
        self.list.check(&self.links)?;
        let (listed, there) = (self.list.len() as usize, resident.len());
        if listed != there {
            return Err(format!("invariant 1: {listed} frames are listed, {there} are resident"));
        }
        if self.hand != NIL && !resident.contains(&FrameId(self.hand)) {
            return Err(format!("invariant 2: the hand is at frame {}, which is free", self.hand));
        }
        Ok(())
    }
}

impl Policy for Sieve {
    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, MarkHook>,
        frame: FrameId,
        _access: &Access,
        _recall: GhostHit,
    ) {
        self.list.push_back(&mut self.links, frame.0);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, MarkHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let (mut taken, mut steps, mut refused) = (0, 0, 0u64);
        while taken < request.frames && steps < request.steps_max {
            let at = if self.hand == NIL { self.list.front() } else { Some(self.hand) };
            let Some(at) = at else { break };
            steps += 1;
            self.hand = self.links.next(at).unwrap_or(NIL);
            if take_mark(frames.meta(FrameId(at))) {
                continue;
            }
            match host.take(FrameId(at)) {
                Ok((frame, _page)) => {
                    self.unlink(frame);
                    taken += 1;
                }
                Err(_why) => {
                    refused += 1;
                    // The first round may have spent itself on clearing marks.
                    if refused >= 2 * u64::from(self.list.len()) {
                        break;
                    }
                }
            }
        }
        taken
    }

    fn forget(&mut self, _frames: Frames<'_, MarkHook>, frame: FrameId) {
        self.unlink(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPool, survives_everything};

    #[test]
    fn survivors_stay_and_the_hand_goes_on_from_the_victim() {
        let mut pool = TestPool::<Sieve>::of("sieve", 4);
        pool.run([1, 2, 3, 4, 1, 3]);
        // The hand passes 1, takes 2; then passes 3, takes 4; then 5, which was not used.
        pool.reference(5);
        assert_eq!(pool.pages(), [1, 3, 4, 5]);
        pool.reference(6);
        assert_eq!(pool.pages(), [1, 3, 5, 6]);
        pool.reference(7);
        assert_eq!(pool.pages(), [1, 3, 6, 7]);
    }

    #[test]
    fn refusals_drops_and_tiny_pools_break_nothing() {
        survives_everything::<Sieve>("sieve");
    }
}
