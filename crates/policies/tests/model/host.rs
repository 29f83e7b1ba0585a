//! The model's frames, and what it returns to a policy that evicts.

use millpond_base::{FrameId, PageId};
use millpond_policies::contract::{Cooled, Host, OfferOutcome, PageState, RefusalReason};

/// One frame. The flags are independent: the host is free to be in any of these states.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The page, from its load on.
    pub page: Option<PageId>,
    /// The page's load has not ended: the policy knows nothing of it.
    pub loading: bool,
    pub pins: u32,
    pub latched: bool,
    pub permanent: bool,
    pub dirty: bool,
    /// The page's write was begun and has not ended.
    pub writing: bool,
    pub cooling: bool,
    /// The page was dropped while the policy evicted; the policy is notified afterwards.
    pub vanished: bool,
    pub parent: Option<u32>,
    pub children: Vec<u32>,
}

impl Frame {
    /// Returns `true` if the policy must know the frame.
    pub fn is_resident(&self) -> bool {
        self.page.is_some() && !self.loading
    }
}

/// The model's frames, its habits, and what happened during one eviction.
pub struct ModelHost {
    pub frames: Vec<Frame>,
    pub takes_dirty: bool,
    pub may_offer_absent: bool,
    /// The number in 256 offers that meet a page that changes meanwhile.
    pub changes: u8,
    /// The number that meet one that is dropped meanwhile.
    pub vanishes: u8,
    pub random: fastrand::Rng,
    /// The frames that this eviction took.
    pub taken: Vec<FrameId>,
    /// Frames whose page vanished during this eviction.
    pub vanished: Vec<FrameId>,
    /// Cooling frames that were hit during this eviction; the policy is notified afterwards.
    pub revived: Vec<FrameId>,
    /// Top-level questions of this eviction: offers that are not a child's, and coolings.
    pub offers: u64,
    pub coolings: u64,
    /// The policy's mistake, if any.
    pub fault: Option<String>,
    /// A hash of every call and its result so far.
    pub log: u64,
    following: bool,
}

impl ModelHost {
    pub fn new(frames: u32, takes_dirty: bool, may_offer_absent: bool, seed: u64) -> ModelHost {
        ModelHost {
            frames: vec![Frame::default(); frames as usize],
            takes_dirty,
            may_offer_absent,
            changes: 0,
            vanishes: 0,
            random: fastrand::Rng::with_seed(seed),
            taken: Vec::new(),
            vanished: Vec::new(),
            revived: Vec::new(),
            offers: 0,
            coolings: 0,
            fault: None,
            log: 0xcbf2_9ce4_8422_2325,
            following: false,
        }
    }

    /// Adds to the log.
    pub fn note(&mut self, what: u64) {
        self.log = (self.log ^ what).wrapping_mul(0x0100_0000_01b3).rotate_left(17);
    }

    /// Starts an eviction.
    pub fn begin(&mut self) {
        self.taken.clear();
        self.vanished.clear();
        self.revived.clear();
        (self.offers, self.coolings) = (0, 0);
    }

    /// Frames that hold a page the policy knows.
    pub fn resident(&self) -> Vec<FrameId> {
        let all = (0..self.frames.len() as u32).map(FrameId);
        all.filter(|f| self.frames[f.index()].is_resident()).collect()
    }

    /// Returns `true` if some frame would be taken if it were offered, leaving chance aside.
    pub fn has_takeable(&self) -> bool {
        self.frames.iter().any(|f| {
            let free = f.pins == 0 && !f.latched && !f.permanent && !f.writing && !f.vanished;
            f.is_resident() && free && f.children.is_empty() && (self.takes_dirty || !f.dirty)
        })
    }

    /// The page has left `frame`, which has no children.
    pub fn clear(&mut self, frame: u32) {
        self.unswizzle(frame);
        self.frames[frame as usize] = Frame::default();
    }

    /// `frame` has no parent any more.
    pub fn unswizzle(&mut self, frame: u32) {
        if let Some(parent) = self.frames[frame as usize].parent.take() {
            self.frames[parent as usize].children.retain(|c| *c != frame);
        }
    }

    fn answer(&mut self, frame: FrameId) -> OfferOutcome {
        let index = frame.index();
        let Some(held) = self.frames.get(index).cloned() else {
            self.blame(format!("offered frame {}, which the pool does not have", frame.0));
            return OfferOutcome::Refused(RefusalReason::Absent);
        };
        if held.vanished {
            return OfferOutcome::Refused(RefusalReason::Absent);
        }
        let Some(page) = held.page.filter(|_| !held.loading) else {
            if !self.may_offer_absent {
                let again = if self.taken.contains(&frame) { ", taken in this call" } else { "" };
                self.blame(format!("offered frame {}, which holds no page{again}", frame.0));
            }
            return OfferOutcome::Refused(RefusalReason::Absent);
        };
        if held.latched {
            return OfferOutcome::Refused(RefusalReason::Latched);
        }
        if held.pins > 0 {
            return OfferOutcome::Refused(RefusalReason::Pinned);
        }
        if let Some(child) = held.children.first() {
            return OfferOutcome::EvictChildFirst(FrameId(*child));
        }
        if held.permanent {
            return OfferOutcome::Refused(RefusalReason::Permanent);
        }
        if held.writing || (held.dirty && !self.takes_dirty) {
            self.frames[index].writing = true;
            return OfferOutcome::Refused(RefusalReason::Dirty);
        }
        if self.vanishes > 0 && self.random.u8(..) < self.vanishes {
            self.unswizzle(frame.0);
            self.frames[index].vanished = true;
            self.vanished.push(frame);
            return OfferOutcome::Refused(RefusalReason::Absent);
        }
        if self.changes > 0 && self.random.u8(..) < self.changes {
            if std::mem::take(&mut self.frames[index].cooling) {
                self.revived.push(frame);
            }
            return OfferOutcome::Refused(RefusalReason::Changed);
        }
        self.clear(frame.0);
        self.taken.push(frame);
        OfferOutcome::Taken(page)
    }

    fn blame(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }
}

impl Host for ModelHost {
    fn offer(&mut self, frame: FrameId) -> OfferOutcome {
        self.offers += u64::from(!self.following);
        let verdict = self.answer(frame);
        let code = match verdict {
            OfferOutcome::Taken(page) => page.0 << 3,
            OfferOutcome::Refused(why) => (why as u64) << 3 | 1,
            OfferOutcome::EvictChildFirst(child) => u64::from(child.0) << 3 | 2,
        };
        self.note(u64::from(frame.0) << 32 ^ code);
        verdict
    }

    /// Counts offers that follow an `Instead` apart from the policy's own.
    fn take(&mut self, frame: FrameId) -> Result<(FrameId, PageId), RefusalReason> {
        struct Follow<'a>(&'a mut ModelHost);
        impl Host for Follow<'_> {
            fn offer(&mut self, frame: FrameId) -> OfferOutcome {
                let verdict = self.0.offer(frame);
                self.0.following = true;
                verdict
            }
        }
        let result = Follow(self).take(frame);
        self.following = false;
        result
    }

    fn cool(&mut self, frame: FrameId) -> Cooled {
        self.coolings += 1;
        let Some(held) = self.frames.get(frame.index()).cloned() else {
            self.blame(format!("cooled frame {}, which the pool does not have", frame.0));
            return Cooled::Refused(RefusalReason::Absent);
        };
        let hot = |c: &&u32| !self.frames[**c as usize].cooling;
        let cooled = match held.children.iter().find(hot) {
            _ if !held.is_resident() || held.vanished => Cooled::Refused(RefusalReason::Absent),
            _ if held.cooling => Cooled::Refused(RefusalReason::Changed),
            _ if held.pins > 0 => Cooled::Refused(RefusalReason::Pinned),
            _ if held.latched => Cooled::Refused(RefusalReason::Latched),
            _ if held.permanent => Cooled::Refused(RefusalReason::Permanent),
            Some(child) => Cooled::CoolChildFirst(FrameId(*child)),
            None => Cooled::Yes,
        };
        if cooled == Cooled::Yes {
            self.frames[frame.index()].cooling = true;
        }
        self.note(u64::from(frame.0) << 40 | 7);
        cooled
    }

    fn state(&self, frame: FrameId) -> PageState {
        match self.frames.get(frame.index()) {
            Some(held) if held.is_resident() && held.dirty => PageState::Dirty,
            _ => PageState::Clean,
        }
    }
}
