//! `dgclock-v2`: `gclock-v2` with weights by the page's place in its tree.
//!
//! **Idea** — A root is used again sooner than a leaf. The weights that GCLOCK gives every page
//! are given by type here, so that the hand wears down the precious ones later.
//!
//! **Source** — gilbert 1.2.11, 1.2.11.2 (after Effelsberg and Härder 1984).
//!
//! **State** — A usage count and the page's type beside each frame; the hand.
//!
//! **Invariants** — (1) Only a frame whose count is 0 is offered. (2) A frame's type is one of the
//! four.
//!
//! **Cost** — Hit: a load and a store in the frame's own metadata. Admit: two stores. Evict: a
//! sweep, F/S steps per miss and R/S per hit at most. 8 bytes per frame, no ghosts.
//!
//! **Deviations** — The type is what the reference's mark says: kind and depth below the root.
//! Pages of which nothing is known are no B-tree pages, so that without marks this is
//! `gclock-v2`. Effelsberg and Härder rescale all counts when they grow; gilbert does not, and
//! neither do we: rounds that can find no victim are skipped
//! ([`parts::sweep`](crate::parts::sweep)), and counts stop at 2³⁰.
//!
//! **Defaults** — F 25/25/10/5 and R 5/5/2/1 for other pages, roots, their children and what lies
//! deeper, S 1, `variant=fix-full`: as gilbert runs it. His *x2* is F 50/50/25/10, R 10/10/5/2.

use millpond_base::sync::atomic::{AtomicU32, Ordering::Relaxed};
use millpond_base::{FrameId, Mark};

use crate::contract::{
    Access, Frames, Goal, Hit, Host, OpenPolicy, Recall, Rules, Shape, Touch, TouchOn, Why,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{CountOn, Counts, Hand};

/// Counts stop here, so that none can overflow.
const MAX: u32 = 1 << 30;

config! {
    /// Parameters of [`DgclockV2`].
    pub struct DgclockV2Config {
        /// F of a page outside B-trees: its count when it was just loaded.
        f: u32 = 25, in 0..=MAX;
        /// F of a root.
        f_root: u32 = 25, in 0..=MAX;
        /// F of a root's child.
        f_root_1: u32 = 10, in 0..=MAX;
        /// F of what lies deeper.
        f_deep: u32 = 5, in 0..=MAX;
        /// R of a page outside B-trees: what a reference sets its count to.
        r: u32 = 5, in 0..=MAX;
        /// R of a root.
        r_root: u32 = 5, in 0..=MAX;
        /// R of a root's child.
        r_root_1: u32 = 2, in 0..=MAX;
        /// R of what lies deeper.
        r_deep: u32 = 1, in 0..=MAX;
        /// S: what a pass of the hand takes.
        s: u32 = 1, in 1..=MAX;
        /// Which events count as references.
        variant: CountOn = CountOn::FixFull;
    }
}

/// Which of the four weights a page has.
#[inline(always)]
fn class_of(mark: Mark) -> u32 {
    match (mark.kind().is_btree(), mark.depth()) {
        (false, _) => 0,
        (true, 0) => 1,
        (true, 1) => 2,
        (true, _) => 3,
    }
}

/// What the hit path knows.
#[derive(Clone, Copy, Default, Debug)]
pub struct DgV2Params {
    f: [u32; 4],
    r: [u32; 4],
}

impl DgV2Params {
    /// A reference to a page of that type.
    #[inline(always)]
    fn refer(&self, typed: &TypedV2, class: u32) {
        let class = class as usize & 3;

        typed.count.store(self.r[class], Relaxed);
    }
}

/// A frame's count and its page's type.
#[derive(Default, Debug)]
pub struct TypedV2 {
    count: AtomicU32,
    class: AtomicU32,
}

/// The hot half: a count that goes by the page's type.
pub struct SetByType;

impl Touch for SetByType {
    type Meta = TypedV2;
    type Params = DgV2Params;
    const HIT: Hit = Hit::Meta;
    const UNFIX: bool = true;

    #[inline(always)]
    fn touch(typed: &TypedV2, params: &DgV2Params, access: &Access) {
        // The mark, not the type at load: a root that was split is a root no more.
        let class = class_of(access.mark);
        if typed.class.load(Relaxed) != class {
            typed.class.store(class, Relaxed);
        }
        params.refer(typed, class);
    }

    #[inline(always)]
    fn reset(typed: &TypedV2, params: &DgV2Params, access: &Access) {
        let class = class_of(access.mark);
        typed.class.store(class, Relaxed);
        typed.count.store(params.f[class as usize & 3], Relaxed);
    }
}

/// GCLOCK with weights by type, whose hits set.
pub struct DgclockV2 {
    params: DgV2Params,
    step: u32,
    variant: CountOn,
    hand: Hand,
}

struct Swept<'a> {
    frames: Frames<'a, SetByType>,
    policy: &'a DgclockV2,
}

impl Counts for Swept<'_> {
    #[inline(always)]
    fn count(&self, frame: FrameId) -> &AtomicU32 {
        &self.frames.meta(frame).count
    }

    fn refused(&self, frame: FrameId, why: Why) {
        if self.policy.variant.refusals() && why != Why::Absent {
            let typed = self.frames.meta(frame);
            self.policy.params.refer(typed, typed.class.load(Relaxed));
        }
    }
}

impl Rules for DgclockV2 {
    const INFO: Info = Info {
        id: "dgclock-v2",
        summary: "gclock-v2 with weights by page type and depth",
        family: Family::Clock,
        class: Class::Two,
        age: Age::Last,
        references: References::Last,
        tier: Tier::First,
        live: true,
        frame_bytes: 8.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.11.2",
    };
    type Touch = SetByType;
    type Config = DgclockV2Config;

    fn new(config: &DgclockV2Config, _shape: &Shape) -> DgclockV2 {
        let c = config;
        DgclockV2 {
            params: DgV2Params {
                f: [c.f, c.f_root, c.f_root_1, c.f_deep],
                r: [c.r, c.r_root, c.r_root_1, c.r_deep],
            },
            step: c.s,
            variant: c.variant,
            hand: Hand::new(),
        }
    }

    fn params(&self) -> DgV2Params {
        self.params
    }

    fn touch_on(&self) -> TouchOn {
        self.variant.touch_on()
    }

    fn state_bytes(&self) -> usize {
        0
    }

    fn check(&self, frames: Frames<'_, SetByType>, resident: &[FrameId]) -> Result<(), String> {
        for &frame in resident {
            let class = frames.meta(frame).class.load(Relaxed);
            if class > 3 {
                return Err(format!("invariant 2: frame {frame:?} is of type {class}"));
            }
        }
        Ok(())
    }
}

impl OpenPolicy for DgclockV2 {
    #[inline(always)]
    fn admit(&self, _: Frames<'_, SetByType>, _: FrameId, _: &Access, _: Recall) {}

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &self,
        frames: Frames<'_, SetByType>,
        goal: &Goal,
        host: &mut H,
    ) -> u32 {
        let swept = Swept { frames, policy: self };
        self.hand.sweep(frames.len(), self.step, goal, &swept, host)
    }

    fn forget(&self, _: Frames<'_, SetByType>, _: FrameId) {}
}

#[cfg(test)]
mod tests {
    use millpond_base::{PageId, PageKind};

    use super::*;

    #[test]
    fn weights_go_by_kind_and_depth() {
        let shape = Shape { frames: 4, pages_dense: None, seed: 1 };
        let policy = DgclockV2::new(&DgclockV2Config::default(), &shape);
        let params = policy.params();
        let tree = |depth| Mark::READ.with_kind(PageKind::BTREE_INNER, depth);
        let other = Mark::READ.with_kind(PageKind::OTHER, 2);
        let cases = [(Mark::READ, 25, 5), (other, 25, 5), (tree(0), 25, 5), (tree(1), 10, 2)];
        for (mark, f, r) in cases.into_iter().chain([(tree(2), 5, 1), (tree(9), 5, 1)]) {
            let access = Access { page: PageId(0), mark, now: 0, next: 0, next_read: 0 };
            let typed = TypedV2::default();
            SetByType::reset(&typed, &params, &access);
            assert_eq!(typed.count.load(Relaxed), f);
            SetByType::touch(&typed, &params, &access);
            assert_eq!(typed.count.load(Relaxed), r);
        }
    }
}
