//! A small pool for the unit tests of policies, driven through contract calls only: demand paging,
//! dirty and cooling pages, refusals and drops; the policy's invariants are checked at each step.

use millpond_base::{FrameId, Mark, PageId, Tick};

use crate::config::Spec;
use crate::contract::{
    Access, Cooled, EvictRequest, Frames, GhostHit, Hit, HitHook, HitOn, Host, OfferOutcome,
    PageState, Policy, RefusalReason, Shape, TickSource,
};

/// The state of a frame.
#[derive(Clone, Default)]
pub(crate) struct TestFrame {
    pub page: Option<u64>,
    pub dirty: bool,
    pub cooling: bool,
    /// Reason that the page is refused.
    pub refuse: Option<RefusalReason>,
    /// Set if the page in the last frame must be evicted first.
    pub has_others_below: bool,
}

/// The pool's side: pages, dirty state and refusals.
pub(crate) struct TestHost {
    pub frames: Vec<TestFrame>,
    /// Pages in the order of their eviction.
    pub gone: Vec<u64>,
    /// Every frame that was offered, in order.
    pub offered: Vec<u32>,
}

impl TestHost {
    /// Creates `frames` empty frames.
    pub fn new(frames: u32) -> TestHost {
        let frames = vec![TestFrame::default(); frames as usize];
        TestHost { frames, gone: Vec::new(), offered: Vec::new() }
    }
}

impl Host for TestHost {
    fn offer(&mut self, frame: FrameId) -> OfferOutcome {
        self.offered.push(frame.0);
        let slot = &mut self.frames[frame.index()];
        let Some(page) = slot.page else { return OfferOutcome::Refused(RefusalReason::Absent) };
        if let Some(why) = slot.refuse {
            return OfferOutcome::Refused(why);
        }
        if slot.has_others_below
            && let Some(below) = self.frames.iter().rposition(|f| f.page.is_some_and(|p| p != page))
        {
            return OfferOutcome::EvictChildFirst(FrameId(below as u32));
        }
        let slot = &mut self.frames[frame.index()];
        *slot = TestFrame::default();
        self.gone.push(page);
        OfferOutcome::Taken(PageId(page))
    }

    fn cool(&mut self, frame: FrameId) -> Cooled {
        let slot = &mut self.frames[frame.index()];
        match (slot.page, slot.refuse) {
            (None, _) => Cooled::Refused(RefusalReason::Absent),
            (_, Some(why)) => Cooled::Refused(why),
            _ if slot.cooling => Cooled::Refused(RefusalReason::Changed),
            _ => {
                slot.cooling = true;
                Cooled::Yes
            }
        }
    }

    fn state(&self, frame: FrameId) -> PageState {
        match self.frames[frame.index()].dirty {
            true => PageState::Dirty,
            false => PageState::Clean,
        }
    }
}

/// A pool of a few frames under policy `P`.
pub(crate) struct TestPool<P: Policy> {
    pub policy: P,
    pub metas: Vec<<P::Hook as HitHook>::Meta>,
    pub host: TestHost,
    pub now: Tick,
}

impl<P: Policy> TestPool<P> {
    /// Creates an empty pool of `frames` frames.
    pub fn new(config: &P::Config, frames: u32) -> TestPool<P> {
        let policy = P::new(config, &Shape { frames, pages_dense: None, seed: 1 });
        let mut metas = Vec::new();
        metas.resize_with(frames as usize, Default::default);
        TestPool { policy, metas, host: TestHost::new(frames), now: 0 }
    }

    /// Creates a pool with parameters as on the command line; the id is ignored.
    pub fn of(spec: &str, frames: u32) -> TestPool<P> {
        TestPool::new(&Spec::parse(spec).unwrap().config().unwrap(), frames)
    }

    /// Reads a page whose next use is unknown; returns `true` on a hit.
    pub fn reference(&mut self, page: u64) -> bool {
        self.access(page, Mark::READ, 0)
    }

    /// References `page`, evicting if needed; returns `true` on a hit.
    pub fn access(&mut self, page: u64, mark: Mark, next: u64) -> bool {
        if P::Hook::TICK == TickSource::PerAccess {
            self.now += 1;
        }
        let access = Access { page: PageId(page), mark, now: self.now, next, next_read: next };
        let found = self.frame_of(page);
        match found {
            Some(frame) => self.hit(frame, &access),
            None => self.load(&access),
        }
        self.check();
        found.is_some()
    }

    fn hit(&mut self, frame: FrameId, access: &Access) {
        let slot = &mut self.host.frames[frame.index()];
        slot.dirty |= access.mark.is_write();
        if std::mem::take(&mut slot.cooling) {
            self.policy.revive(Frames::of(&self.metas), frame);
        }
        self.touched(frame, access);
    }

    fn touched(&mut self, frame: FrameId, access: &Access) {
        let frames = Frames::<P::Hook>::of(&self.metas);
        P::Hook::on_hit(frames.meta(frame), &self.policy.params(), access);
        if P::Hook::HIT == Hit::Central {
            self.policy.hit(frames, frame, access);
        }
    }

    fn load(&mut self, access: &Access) {
        let ghost_hit = self.policy.miss(access);
        if self.host.frames.iter().all(|f| f.page.is_some()) {
            assert_eq!(self.evict_for(1, Some((access.page, ghost_hit))), 1, "no victim");
        }
        let free = self.host.frames.iter().position(|f| f.page.is_none()).unwrap();
        let slot = &mut self.host.frames[free];
        (slot.page, slot.dirty) = (Some(access.page.0), access.mark.is_write());
        let (frames, frame) = (Frames::<P::Hook>::of(&self.metas), FrameId(free as u32));
        P::Hook::reset(frames.meta(frame), &self.policy.params(), access);
        self.policy.admit(frames, frame, access, ghost_hit);
        if P::Hook::UNFIX && self.policy.hit_on() != HitOn::Fix {
            self.touched(frame, access);
        }
    }

    /// Evicts `count` frames ahead; returns the number taken.
    pub fn evict(&mut self, count: u32) -> u32 {
        self.evict_for(count, None)
    }

    fn evict_for(&mut self, count: u32, incoming: Option<(PageId, GhostHit)>) -> u32 {
        let steps_max = 64 * self.metas.len() as u32 + 64;
        let request = EvictRequest { frames: count, steps_max, now: self.now, incoming };
        let taken = self.policy.evict(Frames::of(&self.metas), &request, &mut self.host);
        self.check();
        taken
    }

    /// References pages in order; returns the number of hits.
    pub fn run(&mut self, pages: impl IntoIterator<Item = u64>) -> usize {
        pages.into_iter().filter(|&page| self.reference(page)).count()
    }

    /// Drops `page` without the policy's decision.
    pub fn drop_page(&mut self, page: u64) {
        let frame = self.frame_of(page).unwrap();
        self.host.frames[frame.index()] = TestFrame::default();
        self.policy.forget(Frames::of(&self.metas), frame);
        self.check();
    }

    /// Writes `page` back.
    pub fn clean(&mut self, page: u64) {
        let frame = self.frame_of(page).unwrap();
        self.host.frames[frame.index()].dirty = false;
        self.policy.cleaned(Frames::of(&self.metas), frame);
        self.check();
    }

    /// Refuses the resident `page` for this reason from now on, or no longer with `None`.
    pub fn refuse(&mut self, page: u64, why: Option<RefusalReason>) {
        let frame = self.frame_of(page).unwrap();
        self.host.frames[frame.index()].refuse = why;
    }

    /// Returns the frame of `page`.
    pub fn frame_of(&self, page: u64) -> Option<FrameId> {
        let at = self.host.frames.iter().position(|f| f.page == Some(page))?;
        Some(FrameId(at as u32))
    }

    /// Returns the resident pages, in order of their numbers.
    pub fn pages(&self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.host.frames.iter().filter_map(|f| f.page).collect();
        pages.sort_unstable();
        pages
    }

    /// Verifies the policy's invariants.
    pub fn check(&self) {
        let frames = self.host.frames.iter().enumerate().filter(|(_, f)| f.page.is_some());
        let resident: Vec<FrameId> = frames.map(|(i, _)| FrameId(i as u32)).collect();
        self.policy.check(Frames::of(&self.metas), &resident).unwrap();
    }
}

/// Returns a skewed reference string: page numbers below `pages`, small ones more often.
pub(crate) fn skewed(pages: u64, references: usize, seed: u64) -> Vec<u64> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let draw = |rng: &mut fastrand::Rng| rng.u64(0..pages);
    (0..references).map(|_| draw(&mut rng).min(draw(&mut rng)).min(draw(&mut rng))).collect()
}

/// Drives a policy through references, refusals, drops and evictions ahead in pools of 1, 2, 3 and
/// 17 frames. Its invariants are checked at each step, and it must find a takeable frame.
pub(crate) fn survives_everything<P: Policy>(spec: &str) {
    for frames in [1, 2, 3, 17] {
        let mut rng = fastrand::Rng::with_seed(u64::from(frames));
        let mut pool = TestPool::<P>::of(spec, frames);
        for _ in 0..4_000 {
            let pages = pool.pages();
            let free = pages.iter().filter(|&&p| is_free(&pool, p)).count() as u32;
            match rng.u8(0..20) {
                0 if pages.len() > 1 => refuse_all(&mut pool, Some(RefusalReason::Pinned), 1),
                1 => refuse_all(&mut pool, None, 0),
                2 if !pages.is_empty() => pool.drop_page(pages[rng.usize(0..pages.len())]),
                3 if !pages.is_empty() => {
                    let request = rng.u32(1..4);
                    assert_eq!(pool.evict(request), request.min(free), "{frames} frames");
                }
                _ => {
                    if pages.len() == frames as usize && free == 0 {
                        refuse_all(&mut pool, None, 0);
                    }
                    pool.reference(rng.u64(0..u64::from(frames) * 3));
                }
            }
        }
    }
}

fn is_free<P: Policy>(pool: &TestPool<P>, page: u64) -> bool {
    pool.frame_of(page).is_some_and(|f| pool.host.frames[f.index()].refuse.is_none())
}

/// Refuses all resident pages except the first `but` ones, for this reason, or no longer with
/// `None`.
fn refuse_all<P: Policy>(pool: &mut TestPool<P>, why: Option<RefusalReason>, but: usize) {
    for (at, page) in pool.pages().into_iter().enumerate() {
        pool.refuse(page, if at < but { None } else { why });
    }
}
