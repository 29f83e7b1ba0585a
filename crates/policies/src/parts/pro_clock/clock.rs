//! The clock: its nodes and their counts, admission, eviction, ghosts.

use millpond_base::sync::atomic::Ordering::Relaxed;
use millpond_base::{FrameId, PageId};

use super::super::list::{Links, List, NIL};
use super::super::map::PageMap;
use super::super::mark::{MarkHook, take_mark};
use crate::contract::{EvictRequest, Frames, Host};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Out,
    Hot,
    Cold,
    ColdInTest,
    Ghost,
}

impl Kind {
    pub(super) fn is_cold_frame(self) -> bool {
        matches!(self, Kind::Cold | Kind::ColdInTest)
    }

    pub(super) fn is_in_test(self) -> bool {
        matches!(self, Kind::ColdInTest | Kind::Ghost)
    }
}

/// Rule for the target number of cold frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColdTarget {
    /// The target is fixed.
    Static,
    /// CLOCK-Pro: up with each use in a test period, down with each test period that ends without
    /// one.
    Tests,
    /// CLOCK-Pro+: up with each use of a ghost, down with each use of a demoted page, by the
    /// quotient of their numbers.
    Utility,
}

/// Options of a clock.
#[derive(Clone, Copy, Debug)]
pub struct ProClockOptions {
    /// Number of frames.
    pub frames: u32,
    /// Number of pages if they are dense, as in [`crate::contract::Shape`].
    pub pages_dense: Option<u64>,
    /// Minimum and initial target of cold frames, before it is clamped to the pool.
    pub cold_min: u32,
    /// Maximum target of cold frames.
    pub cold_max: u32,
    /// Maximum number of ghosts.
    pub ghosts_max: u64,
    /// Rule for the target.
    pub target: ColdTarget,
}

/// Three hands on one clock.
pub struct ProClock {
    pub(super) frames: u32,
    pub(super) rule: ColdTarget,
    pub(super) cold_min: u32,
    pub(super) cold_max: u32,
    pub(super) target: u32,
    pub(super) ghosts_max: u64,
    pub(super) links: Links,
    pub(super) list: List,
    pub(super) kind: Vec<Kind>,
    pub(super) is_demoted: Vec<bool>,
    pub(super) demoted: u32,
    pub(super) hot: u32,
    pub(super) cold: u32,
    pub(super) in_test: u32,
    pub(super) hand_hot: u32,
    pub(super) hand_cold: u32,
    pub(super) hand_test: u32,
    pub(super) map: PageMap,
    pub(super) pages: Vec<PageId>,
    pub(super) free: Vec<u32>,
}

impl ProClock {
    /// Creates an empty clock.
    pub fn new(options: &ProClockOptions) -> ProClock {
        let frames = options.frames;
        // At least two cold frames, if the pool has two hot ones as well.
        let cold_min = options.cold_min.max(2).min(frames / 2).max(1);
        let cold_max = options.cold_max.min(frames - cold_min).max(cold_min);
        let room = options.ghosts_max.min(u64::from(frames)) as usize;
        ProClock {
            frames,
            rule: options.target,
            cold_min,
            cold_max,
            target: cold_min,
            ghosts_max: options.ghosts_max,
            links: Links::new(frames),
            list: List::new(),
            kind: vec![Kind::Out; frames as usize],
            is_demoted: vec![false; frames as usize],
            demoted: 0,
            hot: 0,
            cold: 0,
            in_test: 0,
            hand_hot: NIL,
            hand_cold: NIL,
            hand_test: NIL,
            map: PageMap::new(options.pages_dense, room),
            pages: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Returns `true` if `page` has a ghost.
    #[inline(always)]
    pub fn has_ghost(&self, page: PageId) -> bool {
        self.map.get(page).is_some()
    }

    /// Returns the target number of cold frames.
    pub fn target(&self) -> u32 {
        self.target
    }

    /// Returns the number of hot frames.
    pub fn hot(&self) -> u32 {
        self.hot
    }

    /// Returns the node after `node` towards the head; after the head, the oldest.
    #[inline(always)]
    pub(super) fn after(&self, node: u32) -> u32 {
        self.links.next(node).or(self.list.front()).unwrap_or(NIL)
    }

    #[inline(always)]
    pub(super) fn set_kind(&mut self, node: u32, kind: Kind) {
        let old = std::mem::replace(&mut self.kind[node as usize], kind);
        self.hot -= u32::from(old == Kind::Hot);
        self.cold -= u32::from(old.is_cold_frame());
        self.in_test -= u32::from(old.is_in_test());
        self.hot += u32::from(kind == Kind::Hot);
        self.cold += u32::from(kind.is_cold_frame());
        self.in_test += u32::from(kind.is_in_test());
    }

    /// Removes `node` from the clock; hands that pointed at it move on.
    pub(super) fn unlink(&mut self, node: u32) {
        let next = self.after(node);
        let next = if next == node { NIL } else { next };
        for hand in [&mut self.hand_hot, &mut self.hand_cold, &mut self.hand_test] {
            if *hand == node {
                *hand = next;
            }
        }
        self.list.remove(&mut self.links, node);
        self.set_kind(node, Kind::Out);
    }

    pub(super) fn push_head(&mut self, node: u32, kind: Kind) {
        self.list.push_back(&mut self.links, node);
        self.set_kind(node, kind);
    }

    pub(super) fn move_to_head(&mut self, node: u32, kind: Kind) {
        self.unlink(node);
        self.push_head(node, kind);
    }

    pub(super) fn drop_ghost(&mut self, node: u32) {
        self.unlink(node);
        let slot = node - self.frames;
        self.map.remove(self.pages[slot as usize]);
        self.free.push(slot);
    }

    /// Clears the mark of a demoted frame and returns `true` if it was set.
    pub(super) fn take_demoted(&mut self, frame: u32) -> bool {
        let was = std::mem::replace(&mut self.is_demoted[frame as usize], false);
        self.demoted -= u32::from(was);
        was
    }

    pub(super) fn raise_target(&mut self, by: u32) {
        self.target = self.target.saturating_add(by).min(self.cold_max);
    }

    pub(super) fn lower_target(&mut self, by: u32) {
        self.target = self.target.saturating_sub(by).max(self.cold_min);
    }

    /// Records that a demoted page was used.
    pub(super) fn demoted_was_used(&mut self) {
        if self.rule == ColdTarget::Utility {
            let demoted = self.demoted + 1;
            self.lower_target((self.map.len() as u32 / demoted).max(1));
        }
    }

    /// Admits the page that was loaded into `frame`; `remembered` if it had a ghost when it
    /// missed.
    pub fn admit(
        &mut self,
        frames: Frames<'_, MarkHook>,
        frame: FrameId,
        page: PageId,
        remembered: bool,
    ) {
        let free = self.frames - self.hot - self.cold;
        let ghost = if remembered { self.map.get(page) } else { None };
        let mut kind = Kind::ColdInTest;
        if let Some(slot) = ghost {
            if self.may_promote(frames, self.frames + slot) {
                kind = Kind::Hot;
            }
            // The hot hand may have passed its ghost.
            if let Some(slot) = self.map.get(page) {
                self.drop_ghost(self.frames + slot);
            }
        } else if free > self.cold_min && self.hot < self.frames - self.target {
            // While the pool fills up, pages are hot first.
            kind = Kind::Hot;
        }
        self.push_head(frame.0, kind);
        self.settle(frames);
    }

    /// Records that `frame`, which held `page`, was taken.
    pub(super) fn taken(&mut self, frames: Frames<'_, MarkHook>, frame: FrameId, page: PageId) {
        self.take_demoted(frame.0);
        if self.kind[frame.index()] == Kind::ColdInTest && self.ghosts_max > 0 {
            self.leave_ghost(frame, page);
        } else {
            self.unlink(frame.0);
        }
        while self.map.len() as u64 > self.ghosts_max {
            self.settle_test();
            if self.hand_test == NIL {
                break;
            }
            let oldest = self.hand_test;
            self.end_test(frames, oldest);
            self.settle_test();
        }
        self.settle_cold();
    }

    /// Replaces `frame` by a ghost of `page`.
    pub(super) fn leave_ghost(&mut self, frame: FrameId, page: PageId) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.pages[slot as usize] = page;
                slot
            }
            None => {
                self.pages.push(page);
                self.kind.push(Kind::Out);
                self.pages.len() as u32 - 1
            }
        };
        let node = self.frames + slot;
        self.links.grow_to(node);
        self.list.replace(&mut self.links, frame.0, node);
        for hand in [&mut self.hand_hot, &mut self.hand_cold, &mut self.hand_test] {
            if *hand == frame.0 {
                *hand = node;
            }
        }
        self.set_kind(frame.0, Kind::Out);
        self.set_kind(node, Kind::Ghost);
        self.map.insert(page, slot);
    }

    /// Takes victims at the cold hand, or at the hot one if all cold frames were refused.
    pub fn evict<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, MarkHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let (mut taken, mut steps) = (0, 0);
        let (mut refused_cold, mut refused_hot) = (0, 0);
        while taken < request.frames && steps < request.steps_max {
            steps += 1;
            let from_cold = refused_cold < self.cold;
            if !from_cold && refused_hot >= self.hot {
                break;
            }
            let at = if from_cold { self.hand_cold } else { self.hand_hot };
            let mark = frames.meta(FrameId(at));
            if from_cold && mark.load(Relaxed) {
                self.spare_cold(frames, at);
                // It may be offered when the hand comes round, which is worth another round.
                refused_cold = 0;
                continue;
            }
            if !from_cold && take_mark(mark) {
                self.move_to_head(at, Kind::Hot);
                self.settle(frames);
                refused_hot = 0;
                continue;
            }
            match host.take(FrameId(at)) {
                Ok((frame, page)) => {
                    taken += 1;
                    let was_hot = self.kind[frame.index()] == Kind::Hot;
                    self.taken(frames, frame, page);
                    if was_hot {
                        self.settle(frames);
                    }
                }
                Err(_why) => {
                    self.move_to_head(at, self.kind[at as usize]);
                    self.settle(frames);
                    *(if from_cold { &mut refused_cold } else { &mut refused_hot }) += 1;
                }
            }
        }
        taken
    }

    /// Forgets the dropped page in `frame`.
    pub fn forget(&mut self, frames: Frames<'_, MarkHook>, frame: FrameId) {
        self.take_demoted(frame.0);
        self.unlink(frame.0);
        self.settle(frames);
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.links.bytes()
            + self.kind.capacity()
            + self.is_demoted.capacity()
            + self.map.bytes()
            + self.pages.capacity() * size_of::<PageId>()
            + self.free.capacity() * 4
    }

    /// Verifies the invariants of the module.
    ///
    /// # Errors
    /// The broken invariant.
    pub fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        self.list.check(&self.links)?;
        let kinds: Vec<Kind> = self.list.iter(&self.links).map(|n| self.kind[n as usize]).collect();
        let count = |is: fn(&Kind) -> bool| kinds.iter().filter(|k| is(k)).count() as u32;
        let counts =
            [count(|k| *k == Kind::Hot), count(|k| k.is_cold_frame()), count(|k| k.is_in_test())];
        if counts != [self.hot, self.cold, self.in_test]
            || (self.hot + self.cold) as usize != resident.len()
        {
            return Err(format!("invariant 1: {counts:?}, {} resident", resident.len()));
        }
        let oldest = |is: fn(&Kind) -> bool| {
            self.list.iter(&self.links).find(|n| is(&self.kind[*n as usize])).unwrap_or(NIL)
        };
        let hands = [oldest(|k| *k == Kind::Hot), oldest(|k| k.is_cold_frame())];
        if hands != [self.hand_hot, self.hand_cold] {
            return Err(format!(
                "invariant 2: hands at {} and {}, not {hands:?}",
                self.hand_hot, self.hand_cold
            ));
        }
        let ghosts = count(|k| *k == Kind::Ghost);
        if ghosts as usize != self.map.len() || u64::from(ghosts) > self.ghosts_max {
            return Err(format!("invariant 3: {ghosts} ghosts, {} found", self.map.len()));
        }
        let demoted = self.is_demoted.iter().filter(|d| **d).count();
        if demoted != self.demoted as usize
            || !(self.cold_min..=self.cold_max).contains(&self.target)
        {
            return Err(format!("invariant 4: {demoted} demoted, target {}", self.target));
        }
        Ok(())
    }
}
