//! A tiny pool for unit tests of what a page owes to storage: dirty pages, cleaning, cooling,
//! refusals by page and reason.

use millpond_base::{FrameId, Mark, PageId, Tick};

use crate::contract::{
    Access, Cooled, Frames, Goal, Hit, Host, PageState, Policy, Recall, Shape, TickSource, Touch,
    Verdict, Why,
};

/// The pool's side: which page is where, what is dirty or cooling, and who is refused why.
pub struct Frame {
    pub page: Option<u64>,
    pub dirty: bool,
    pub cooling: bool,
    pub refuse: Option<Why>,
}

pub struct Table {
    pub frames: Vec<Frame>,
    /// Pages in the order they went.
    pub gone: Vec<u64>,
    pub offers: u32,
}

impl Host for Table {
    fn offer(&mut self, frame: FrameId) -> Verdict {
        self.offers += 1;
        let slot = &mut self.frames[frame.index()];
        let Some(page) = slot.page else { return Verdict::Refused(Why::Absent) };
        if let Some(why) = slot.refuse {
            return Verdict::Refused(why);
        }
        (slot.page, slot.dirty, slot.cooling) = (None, false, false);
        self.gone.push(page);
        Verdict::Taken(PageId(page))
    }

    fn cool(&mut self, frame: FrameId) -> Cooled {
        let slot = &mut self.frames[frame.index()];
        match (slot.page, slot.refuse) {
            (None, _) => Cooled::Refused(Why::Absent),
            (_, Some(why)) => Cooled::Refused(why),
            _ if slot.cooling => Cooled::Refused(Why::Changed),
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

/// A policy over such a table.
pub struct Mini<P: Policy> {
    pub policy: P,
    pub metas: Vec<<P::Touch as Touch>::Meta>,
    pub table: Table,
    pub now: Tick,
}

impl<P: Policy> Mini<P> {
    pub fn new(config: &P::Config, frames: u32) -> Mini<P> {
        let policy = P::new(config, &Shape { frames, pages_dense: None, seed: 1 });
        let mut metas = Vec::new();
        metas.resize_with(frames as usize, Default::default);
        let slot = || Frame { page: None, dirty: false, cooling: false, refuse: None };
        let frames = std::iter::repeat_with(slot).take(frames as usize).collect();
        Mini { policy, metas, table: Table { frames, gone: Vec::new(), offers: 0 }, now: 0 }
    }

    pub fn frame_of(&self, page: u64) -> Option<FrameId> {
        let at = self.table.frames.iter().position(|f| f.page == Some(page))?;
        Some(FrameId(at as u32))
    }

    /// References `page`, evicting if need be, and checks the policy's invariants; whether it hit.
    pub fn access(&mut self, page: u64, mark: Mark, next: u64) -> bool {
        if P::Touch::TICK == TickSource::PerAccess {
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
        let slot = &mut self.table.frames[frame.index()];
        slot.dirty |= access.mark.is_write();
        let was_cooling = std::mem::take(&mut slot.cooling);
        let frames = Frames::<P::Touch>::of(&self.metas);
        if was_cooling {
            self.policy.revive(frames, frame);
        }
        P::Touch::touch(frames.meta(frame), &self.policy.params(), access);
        if P::Touch::HIT == Hit::Central {
            self.policy.hit(frames, frame, access);
        }
    }

    fn load(&mut self, access: &Access) {
        let recall = self.policy.miss(access);
        let is_free = |t: &Table| t.frames.iter().position(|f| f.page.is_none());
        if is_free(&self.table).is_none() {
            assert_eq!(self.evict(1, Some((access.page, recall))), 1, "no victim");
        }
        let at = is_free(&self.table).unwrap();
        let slot = &mut self.table.frames[at];
        (slot.page, slot.dirty) = (Some(access.page.0), access.mark.is_write());
        slot.refuse = None;
        let (frames, frame) = (Frames::<P::Touch>::of(&self.metas), FrameId(at as u32));
        P::Touch::reset(frames.meta(frame), &self.policy.params(), access);
        self.policy.admit(frames, frame, access, recall);
    }

    /// Asks for so many frames.
    pub fn evict(&mut self, wanted: u32, incoming: Option<(PageId, Recall)>) -> u32 {
        let steps_max = 64 * self.metas.len() as u32 + 64;
        let goal = Goal { frames: wanted, steps_max, now: self.now, incoming };
        let taken = self.policy.evict(Frames::of(&self.metas), &goal, &mut self.table);
        self.check();
        taken
    }

    /// Drops the page without the policy's doing.
    pub fn drop_page(&mut self, page: u64) {
        let frame = self.frame_of(page).unwrap();
        self.table.frames[frame.index()].page = None;
        self.table.frames[frame.index()].cooling = false;
        self.policy.forget(Frames::of(&self.metas), frame);
        self.check();
    }

    /// Writes the page back.
    pub fn clean(&mut self, page: u64) {
        let frame = self.frame_of(page).unwrap();
        self.table.frames[frame.index()].dirty = false;
        self.policy.cleaned(Frames::of(&self.metas), frame);
        self.check();
    }

    /// From now on the page is refused for this reason, or no more.
    pub fn refuse(&mut self, page: u64, why: Option<Why>) {
        let frame = self.frame_of(page).unwrap();
        self.table.frames[frame.index()].refuse = why;
    }

    /// The pages that are there, in ascending order.
    pub fn pages(&self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.table.frames.iter().filter_map(|f| f.page).collect();
        pages.sort_unstable();
        pages
    }

    pub fn check(&self) {
        let frames = self.table.frames.iter().enumerate().filter(|(_, f)| f.page.is_some());
        let resident: Vec<FrameId> = frames.map(|(i, _)| FrameId(i as u32)).collect();
        self.policy.check(Frames::of(&self.metas), &resident).unwrap();
    }
}
