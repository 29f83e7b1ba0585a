//! Tests of the definitions beside the shipped policies.

use millpond_base::{FrameId, Mark, PageId};
use millpond_policies::config::Spec;
use millpond_policies::contract::{
    Access, EvictRequest, Frames, GhostHit, Hit, HitHook, HitOn, Host, NEVER, OfferOutcome, Policy,
    RefusalReason, Shape,
};
use millpond_policies::policy;

use super::quasi::Quasi;
use super::{Filo, LruK, Mru};

/// A host that refuses some frames.
struct Refusing {
    pages: Vec<Option<u64>>,
    refused: Vec<FrameId>,
    offered: Vec<u32>,
}

impl Host for Refusing {
    fn offer(&mut self, frame: FrameId) -> OfferOutcome {
        self.offered.push(frame.0);
        if self.refused.contains(&frame) {
            return OfferOutcome::Refused(RefusalReason::Pinned);
        }
        match self.pages[frame.0 as usize].take() {
            Some(page) => OfferOutcome::Taken(PageId(page)),
            None => OfferOutcome::Refused(RefusalReason::Absent),
        }
    }
}

fn request(steps_max: u32) -> EvictRequest {
    EvictRequest { frames: 1, steps_max, now: 0, incoming: None }
}

/// Returns the frames offered while skewed references run through a pool, in which some pages are
/// occasionally pinned during an eviction.
fn offers<P: Policy>(spec: &str, pinned: u32) -> Vec<u32>
where
    <P::Hook as HitHook>::Meta: Default,
{
    const FRAMES: u32 = 40;
    let shape = Shape { frames: FRAMES, pages_dense: None, seed: 1 };
    let mut policy = P::new(&Spec::parse(spec).unwrap().config().unwrap(), &shape);
    let metas: Vec<_> = (0..FRAMES).map(|_| Default::default()).collect();
    let frames = Frames::<P::Hook>::of(&metas);
    let pages = vec![None; FRAMES as usize];
    let mut host = Refusing { pages, refused: Vec::new(), offered: Vec::new() };
    let mut random = fastrand::Rng::with_seed(9);
    let is_central = <P::Hook as HitHook>::HIT == Hit::Central;
    for _ in 0..20_000 {
        let page = (random.f64().powi(3) * 200.0) as u64;
        let access =
            Access { page: PageId(page), mark: Mark::READ, now: 0, next: NEVER, next_read: NEVER };
        if let Some(at) = host.pages.iter().position(|held| *held == Some(page)) {
            if is_central {
                policy.hit(frames, FrameId(at as u32), &access);
            }
            continue;
        }
        let ghost_hit = policy.miss(&access);
        if !host.pages.contains(&None) {
            host.refused = (0..pinned).map(|_| FrameId(random.u32(..FRAMES))).collect();
            assert_eq!(policy.evict(frames, &request(10_000), &mut host), 1);
        }
        let at = host.pages.iter().position(Option::is_none).unwrap();
        host.pages[at] = Some(page);
        policy.admit(frames, FrameId(at as u32), &access, GhostHit(ghost_hit.0));
        if policy.hit_on() == HitOn::Unfix {
            policy.hit(frames, FrameId(at as u32), &access);
        }
        let held = (0..).zip(&host.pages).filter(|(_, page)| page.is_some());
        let resident: Vec<FrameId> = held.map(|(at, _)| FrameId(at)).collect();
        policy.check(frames, &resident).unwrap();
    }
    assert!(host.offered.len() > 3000);
    host.offered
}

#[test]
fn the_list_of_all_references_offers_what_the_shipped_lru_k_offers_refusals_or_not() {
    for (stated, shipped) in [
        ("stated-lru-k(k=1)", "lru-k(k=1)"),
        ("stated-lru-k", "lru-k"),
        ("stated-lru-k(k=3)", "lru-k(k=3)"),
        ("stated-lru-k(k=4)", "lru-k(k=4)"),
    ] {
        for pinned in [0, 5] {
            let same = offers::<LruK>(stated, pinned) == offers::<policy::LruK>(shipped, pinned);
            assert!(same, "{stated}, {pinned} frames pinned");
        }
    }
}

#[test]
fn the_stacks_offer_what_the_shipped_ones_offer_as_long_as_nothing_is_refused() {
    assert_eq!(offers::<Filo>("stated-filo", 0), offers::<policy::Filo>("filo", 0));
    assert_eq!(offers::<Mru>("stated-mru", 0), offers::<policy::Mru>("mru", 0));
    assert_ne!(offers::<Mru>("stated-mru", 0), offers::<policy::Lru>("lru", 0));
}

/// All 300 frames are refused. The policy looks three times at the stack, 1 % of its length, and
/// then at each frame of the retry queue. The look that ends a turn does not count for the next
/// one.
#[test]
fn turns_are_those_of_algorithm_1_1() {
    let mut quasi = Quasi::new(300, true);
    let pages = (0..300).map(Some).collect();
    let refused = (0..300).map(FrameId).collect();
    let mut host = Refusing { pages, refused, offered: Vec::new() };
    (0..300).for_each(|frame| quasi.push(frame));
    assert_eq!(quasi.evict(&request(12), &mut host), 0);
    assert_eq!(host.offered, [299, 298, 297, 299, 298, 297, 299, 296, 295, 294, 293, 298]);
}
