//! A tiny pool for unit tests: pages in frames, refusals on demand, through contract calls only.

use std::collections::BTreeMap;

use millpond_base::{FrameId, Mark, PageId};

use crate::contract::{
    Access, Frames, Goal, Hit, Host, Policy, Shape, TickSource, Touch, TouchOn, Verdict, Why,
};

/// The host's side: what is where, and what is refused.
#[derive(Default)]
pub struct TestHost {
    /// The page in each frame.
    pub pages: Vec<Option<PageId>>,
    /// What is answered instead of taking a frame.
    pub answers: BTreeMap<u32, Verdict>,
    /// Every frame that was offered, in order.
    pub offered: Vec<u32>,
}

impl Host for TestHost {
    fn offer(&mut self, frame: FrameId) -> Verdict {
        self.offered.push(frame.0);
        if let Some(answer) = self.answers.get(&frame.0) {
            return *answer;
        }
        match self.pages[frame.index()].take() {
            Some(page) => Verdict::Taken(page),
            None => Verdict::Refused(Why::Absent),
        }
    }
}

/// A pool of a few frames under a policy.
pub struct TestPool<P: Policy> {
    pub policy: P,
    pub metas: Vec<<P::Touch as Touch>::Meta>,
    pub host: TestHost,
    pub now: u32,
}

impl<P: Policy> TestPool<P> {
    /// An empty pool of so many frames.
    pub fn new(config: &P::Config, frames: u32) -> TestPool<P> {
        let shape = Shape { frames, pages_dense: None, seed: 7 };
        let mut metas = Vec::new();
        metas.resize_with(frames as usize, Default::default);
        let host = TestHost { pages: vec![None; frames as usize], ..TestHost::default() };
        TestPool { policy: P::new(config, &shape), metas, host, now: 0 }
    }

    /// Has the policy evict; says how many went.
    pub fn evict(&mut self, frames: u32, incoming: Option<u64>) -> u32 {
        let steps_max = self.host.pages.len() as u32 * 4 + 64;
        let incoming = incoming.map(|p| (PageId(p), crate::contract::Recall::NONE));
        let goal = Goal { frames, steps_max, now: self.now, incoming };
        self.policy.evict(Frames::of(&self.metas), &goal, &mut self.host)
    }

    /// The frame of `page`.
    pub fn frame_of(&self, page: u64) -> Option<FrameId> {
        let at = self.host.pages.iter().position(|p| *p == Some(PageId(page)))?;
        Some(FrameId(at as u32))
    }

    /// One reference; whether it hit. Checks the policy's invariants after it.
    pub fn reference(&mut self, page: u64) -> bool {
        if P::Touch::TICK == TickSource::PerAccess {
            self.now += 1;
        }
        let access =
            Access { page: PageId(page), mark: Mark::READ, now: self.now, next: 0, next_read: 0 };
        let found = self.frame_of(page);
        match found {
            Some(frame) => self.touched(frame, &access),
            None => self.load(&access),
        }
        self.check();
        found.is_some()
    }

    fn load(&mut self, access: &Access) {
        let recall = self.policy.miss(access);
        if self.host.pages.iter().all(Option::is_some) {
            assert_eq!(self.evict(1, Some(access.page.0)), 1, "no victim");
        }
        let free = self.host.pages.iter().position(Option::is_none).expect("a free frame");
        let frame = FrameId(free as u32);
        self.host.pages[free] = Some(access.page);
        let frames = Frames::<P::Touch>::of(&self.metas);
        P::Touch::reset(frames.meta(frame), &self.policy.params(), access);
        self.policy.admit(frames, frame, access, recall);
        if P::Touch::UNFIX && self.policy.touch_on() != TouchOn::Fix {
            self.touched(frame, access);
        }
    }

    fn touched(&mut self, frame: FrameId, access: &Access) {
        let frames = Frames::<P::Touch>::of(&self.metas);
        P::Touch::touch(frames.meta(frame), &self.policy.params(), access);
        if P::Touch::HIT == Hit::Central {
            self.policy.hit(frames, frame, access);
        }
    }

    /// References in a row; how many hit.
    pub fn references(&mut self, pages: impl IntoIterator<Item = u64>) -> usize {
        pages.into_iter().filter(|&p| self.reference(p)).count()
    }

    /// Drops `page` without the policy's doing.
    pub fn drop_page(&mut self, page: u64) {
        let frame = self.frame_of(page).expect("a resident page");
        self.host.pages[frame.index()] = None;
        self.policy.forget(Frames::of(&self.metas), frame);
        self.check();
    }

    /// From now on frame `frame` is refused; None: no longer.
    pub fn refuse(&mut self, frame: u32, why: Option<Why>) {
        match why {
            Some(why) => self.host.answers.insert(frame, Verdict::Refused(why)),
            None => self.host.answers.remove(&frame),
        };
    }

    /// The resident pages, in order of their numbers.
    pub fn pages(&self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.host.pages.iter().flatten().map(|p| p.0).collect();
        pages.sort_unstable();
        pages
    }

    /// Verifies the policy's invariants.
    pub fn check(&self) {
        let pages = self.host.pages.iter().enumerate();
        let resident: Vec<FrameId> =
            pages.filter(|(_, p)| p.is_some()).map(|(i, _)| FrameId(i as u32)).collect();
        self.policy.check(Frames::of(&self.metas), &resident).expect("invariants hold");
    }
}

/// A skewed reference string: page numbers below `pages`, small ones more often.
pub fn skewed(pages: u64, references: usize, seed: u64) -> Vec<u64> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let draw = |rng: &mut fastrand::Rng| rng.u64(0..pages);
    (0..references).map(|_| draw(&mut rng).min(draw(&mut rng)).min(draw(&mut rng))).collect()
}
