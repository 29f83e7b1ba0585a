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
//! **Deviations** — The type is that of the reference's mark: kind and depth below the root.
//! Unknown pages count as outside B-trees, so without marks this is `gclock-v2`. Effelsberg and
//! Härder rescale all counts when they grow. gilbert does not, and neither do we: rounds that can
//! find no victim are skipped ([`parts::sweep`](crate::parts::sweep)), and counts stop at 2³⁰.
//!
//! **Defaults** — F 25/25/10/5 and R 5/5/2/1 for other pages, roots, their children and deeper
//! pages, S 1, `variant=fix-full`: as gilbert runs it. His *x2* is F 50/50/25/10, R 10/10/5/2.

use millpond_base::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::contract::{Access, Hit, HitHook, Zeroed};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::typed_usage::{TypedCount, TypedUsageConfig, Weights};
use crate::parts::usage_clock::{Usage, UsageClock, UsageRule};

/// GCLOCK with weights by type, whose hits set.
pub type DgclockV2 = UsageClock<SetByType>;

/// The hot half: a hit sets the count to the R of the page's type.
pub struct SetByType;

impl HitHook for SetByType {
    type Meta = TypedCount;
    type Params = Weights;
    const HIT: Hit = Hit::Meta;
    const UNFIX: bool = true;

    #[inline(always)]
    fn on_hit(typed: &TypedCount, weights: &Weights, access: &Access) {
        typed.count.store(typed.r_of(weights, access), Relaxed);
    }

    #[inline(always)]
    fn reset(typed: &TypedCount, weights: &Weights, access: &Access) {
        typed.reset(weights, access);
    }

    fn zeroed(_: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        Zeroed::fresh()
    }
}

impl UsageRule for SetByType {
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
    type Config = TypedUsageConfig;

    fn read(config: &TypedUsageConfig) -> Usage<Weights> {
        config.usage()
    }

    #[inline(always)]
    fn count(typed: &TypedCount) -> &AtomicU32 {
        &typed.count
    }

    #[inline(always)]
    fn refer(typed: &TypedCount, weights: &Weights) {
        typed.count.store(typed.r(weights), Relaxed);
    }

    fn check(typed: &TypedCount, _: &Weights) -> Result<(), String> {
        typed.check()
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::{Mark, PageId, PageKind};

    use super::*;
    use crate::contract::{PolicySpec, Shape};

    #[test]
    fn weights_go_by_kind_and_depth() {
        let shape = Shape { frames: 4, pages_dense: None, seed: 1 };
        let policy = DgclockV2::new(&TypedUsageConfig::default(), &shape);
        let params = policy.params();
        let tree = |depth| Mark::READ.with_kind(PageKind::BTREE_INNER, depth);
        let other = Mark::READ.with_kind(PageKind::OTHER, 2);
        let cases = [(Mark::READ, 25, 5), (other, 25, 5), (tree(0), 25, 5), (tree(1), 10, 2)];
        for (mark, f, r) in cases.into_iter().chain([(tree(2), 5, 1), (tree(9), 5, 1)]) {
            let access = Access { page: PageId(0), mark, now: 0, next: 0, next_read: 0 };
            let typed = TypedCount::default();
            SetByType::reset(&typed, &params, &access);
            assert_eq!(typed.count.load(Relaxed), f);
            SetByType::on_hit(&typed, &params, &access);
            assert_eq!(typed.count.load(Relaxed), r);
        }
    }
}
