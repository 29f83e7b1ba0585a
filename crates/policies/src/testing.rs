//! A small pool for the policies' own tests: demand paging, refusals by page, checks each step.

use std::collections::HashSet;

use millpond_base::{FrameId, Mark, PageId};

use crate::config::Spec;
use crate::contract::{
    Access, Frames, Goal, Hit, Host, Policy, Recall, Shape, TickSource, Touch, TouchOn, Verdict,
    Why,
};

struct Slots {
    page_of: Vec<Option<u64>>,
    refused: HashSet<u64>,
}

impl Host for Slots {
    fn offer(&mut self, frame: FrameId) -> Verdict {
        let slot = &mut self.page_of[frame.index()];
        match *slot {
            None => Verdict::Refused(Why::Absent),
            Some(page) if self.refused.contains(&page) => Verdict::Refused(Why::Pinned),
            Some(page) => {
                *slot = None;
                Verdict::Taken(PageId(page))
            }
        }
    }
}

/// A pool under policy `P`, for tests.
pub(crate) struct Small<P: Policy> {
    pub policy: P,
    params: <P::Touch as Touch>::Params,
    metas: Vec<<P::Touch as Touch>::Meta>,
    slots: Slots,
    now: u32,
}

impl<P: Policy> Small<P> {
    /// `spec` is the policy as on the command line; its id is not looked at.
    pub fn new(spec: &str, frames: u32) -> Small<P> {
        let config = Spec::parse(spec).unwrap().config().unwrap();
        let policy = P::new(&config, &Shape { frames, pages_dense: None, seed: 1 });
        let mut metas = Vec::new();
        metas.resize_with(frames as usize, Default::default);
        let slots = Slots { page_of: vec![None; frames as usize], refused: HashSet::new() };
        Small { params: policy.params(), policy, metas, slots, now: 0 }
    }

    /// Refuses to let these pages go, and only these.
    pub fn refuse(&mut self, pages: &[u64]) {
        self.slots.refused = pages.iter().copied().collect();
    }

    /// One reference; whether it hit.
    pub fn reference(&mut self, page: u64) -> bool {
        if P::Touch::TICK == TickSource::PerAccess {
            self.now += 1;
        }
        let access =
            Access { page: PageId(page), mark: Mark::READ, now: self.now, next: 0, next_read: 0 };
        let frames = Frames::<P::Touch>::of(&self.metas);
        if let Some(at) = self.slots.page_of.iter().position(|p| *p == Some(page)) {
            let frame = FrameId(at as u32);
            P::Touch::touch(frames.meta(frame), &self.params, &access);
            if P::Touch::HIT == Hit::Central {
                self.policy.hit(frames, frame, &access);
            }
            self.check();
            return true;
        }
        assert!(!P::Touch::UNFIX || self.policy.touch_on() == TouchOn::Fix);
        let recall = self.policy.miss(&access);
        if self.slots.page_of.iter().all(Option::is_some) {
            assert_eq!(self.evict(1, Some((access.page, recall))), 1, "no victim");
        }
        let free = self.slots.page_of.iter().position(Option::is_none).unwrap();
        self.slots.page_of[free] = Some(page);
        let (frames, frame) = (Frames::of(&self.metas), FrameId(free as u32));
        P::Touch::reset(frames.meta(frame), &self.params, &access);
        self.policy.admit(frames, frame, &access, recall);
        self.check();
        false
    }

    /// Evicts so many frames; says how many went.
    pub fn evict(&mut self, count: u32, incoming: Option<(PageId, Recall)>) -> u32 {
        let steps_max = 16 * self.metas.len() as u32;
        let goal = Goal { frames: count, steps_max, now: self.now, incoming };
        let taken = self.policy.evict(Frames::of(&self.metas), &goal, &mut self.slots);
        self.check();
        taken
    }

    /// Drops a resident page without the policy's doing.
    pub fn forget(&mut self, page: u64) {
        let at = self.slots.page_of.iter().position(|p| *p == Some(page)).unwrap();
        self.slots.page_of[at] = None;
        self.policy.forget(Frames::of(&self.metas), FrameId(at as u32));
        self.check();
    }

    /// References in order; how many hit.
    pub fn run(&mut self, pages: impl IntoIterator<Item = u64>) -> u32 {
        pages.into_iter().map(|p| u32::from(self.reference(p))).sum()
    }

    /// The resident pages, sorted.
    pub fn pages(&self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.slots.page_of.iter().flatten().copied().collect();
        pages.sort_unstable();
        pages
    }

    fn check(&self) {
        let pages = self.slots.page_of.iter().enumerate();
        let resident: Vec<FrameId> =
            pages.filter(|(_, p)| p.is_some()).map(|(i, _)| FrameId(i as u32)).collect();
        self.policy.check(Frames::of(&self.metas), &resident).unwrap();
    }
}

/// Drives a policy through references, refusals, drops and evictions ahead in pools of 1, 2, 3
/// and 17 frames; its invariants are checked at each step, and a takeable frame must be found.
pub(crate) fn survives_everything<P: Policy>(spec: &str) {
    for frames in [1, 2, 3, 17] {
        let mut rng = fastrand::Rng::with_seed(u64::from(frames));
        let mut pool = Small::<P>::new(spec, frames);
        for _ in 0..4_000 {
            let pages = pool.pages();
            match rng.u8(0..20) {
                0 if pages.len() > 1 => pool.refuse(&pages[1..]),
                1 => pool.refuse(&[]),
                2 if !pages.is_empty() => pool.forget(pages[rng.usize(0..pages.len())]),
                3 if !pages.is_empty() => {
                    let free = pages.iter().filter(|p| !pool.slots.refused.contains(p)).count();
                    let goal = rng.u32(1..4);
                    assert_eq!(pool.evict(goal, None), goal.min(free as u32), "{frames} frames");
                }
                _ => {
                    let page = rng.u64(0..u64::from(frames) * 3);
                    if pages.len() == frames as usize
                        && pages.iter().all(|p| pool.slots.refused.contains(p))
                    {
                        pool.refuse(&[]);
                    }
                    pool.reference(page);
                }
            }
        }
    }
}
