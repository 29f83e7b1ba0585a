//! The three hands: their movement to the oldest node of their kind, and their work on the way.

use millpond_base::FrameId;
use millpond_base::sync::atomic::Ordering::Relaxed;

use super::super::list::NIL;
use super::super::mark::{MarkHook, take_mark};
use super::clock::{ColdTarget, Kind, ProClock};
use crate::contract::Frames;

impl ProClock {
    /// Ends the test period of `node`, if it is in one; a ghost is dropped with it.
    pub(super) fn end_test(&mut self, frames: Frames<'_, MarkHook>, node: u32) {
        let used = match self.kind[node as usize] {
            Kind::ColdInTest => {
                self.set_kind(node, Kind::Cold);
                frames.meta(FrameId(node)).load(Relaxed)
            }
            Kind::Ghost => {
                self.drop_ghost(node);
                false
            }
            _ => return,
        };
        match (self.rule, used) {
            (ColdTarget::Tests, true) => self.raise_target(1),
            (ColdTarget::Tests, false) => self.lower_target(1),
            _ => {}
        }
    }

    /// Moves the hot hand to the oldest hot frame, and the others to the oldest of their kinds.
    pub fn settle(&mut self, frames: Frames<'_, MarkHook>) {
        self.settle_cold();
        self.settle_hot(frames);
        self.settle_test();
    }

    pub(super) fn settle_cold(&mut self) {
        if self.cold == 0 {
            self.hand_cold = NIL;
            return;
        }
        let mut at = self.start(self.hand_cold);
        while !self.kind[at as usize].is_cold_frame() {
            at = self.after(at);
        }
        self.hand_cold = at;
    }

    pub(super) fn settle_hot(&mut self, frames: Frames<'_, MarkHook>) {
        if self.hot == 0 {
            self.hand_hot = NIL;
            return;
        }
        let mut at = self.start(self.hand_hot);
        while self.kind[at as usize] != Kind::Hot {
            let passed = at;
            at = self.after(at);
            self.end_test(frames, passed);
        }
        self.hand_hot = at;
        self.settle_test();
    }

    pub(super) fn settle_test(&mut self) {
        if self.in_test == 0 {
            self.hand_test = NIL;
            return;
        }
        let mut at = self.start(self.hand_test);
        while !self.kind[at as usize].is_in_test() {
            at = self.after(at);
        }
        self.hand_test = at;
    }

    /// Returns the node at which a hand continues: its own, or the oldest one.
    pub(super) fn start(&self, hand: u32) -> u32 {
        if hand == NIL { self.list.front().unwrap_or(NIL) } else { hand }
    }

    /// Finds an unused hot frame that is older than `trigger`, and demotes it; returns `true` if
    /// there was one.
    pub(super) fn run_hot(&mut self, frames: Frames<'_, MarkHook>, trigger: u32) -> bool {
        let mut demoted = false;
        while self.hand_hot != trigger && self.hand_hot != NIL && !demoted {
            let at = self.hand_hot;
            if self.kind[at as usize] == Kind::Hot {
                if take_mark(frames.meta(FrameId(at))) {
                    self.move_to_head(at, Kind::Hot);
                } else {
                    self.move_to_head(at, Kind::Cold);
                    self.is_demoted[at as usize] = true;
                    self.demoted += 1;
                    demoted = true;
                }
                continue;
            }
            let was_used = at < self.frames
                && self.is_demoted[at as usize]
                && frames.meta(FrameId(at)).load(Relaxed);
            if was_used {
                self.take_demoted(at);
                self.demoted_was_used();
            }
            self.hand_hot = self.after(at);
            self.end_test(frames, at);
        }
        self.settle_hot(frames);
        demoted
    }

    /// Returns `true` if a used node in test may become hot. Demotes hot frames as needed for the
    /// target.
    pub(super) fn may_promote(&mut self, frames: Frames<'_, MarkHook>, node: u32) -> bool {
        let kind = self.kind[node as usize];
        if !kind.is_in_test() {
            return false;
        }
        match self.rule {
            ColdTarget::Tests => self.raise_target(1),
            ColdTarget::Utility if kind == Kind::Ghost => {
                self.raise_target((self.demoted / (self.map.len() as u32).max(1)).max(1));
            }
            _ => {}
        }
        while self.hot >= self.frames - self.target {
            if !self.kind[node as usize].is_in_test() || !self.run_hot(frames, node) {
                return false;
            }
        }
        true
    }

    /// Moves the cold hand by one step, at a used frame.
    pub(super) fn spare_cold(&mut self, frames: Frames<'_, MarkHook>, at: u32) {
        let in_test = self.kind[at as usize] == Kind::ColdInTest;
        let kind = if in_test {
            if self.may_promote(frames, at) { Kind::Hot } else { Kind::ColdInTest }
        } else {
            if self.take_demoted(at) {
                self.demoted_was_used();
            }
            Kind::ColdInTest
        };
        take_mark(frames.meta(FrameId(at)));
        self.take_demoted(at);
        self.move_to_head(at, kind);
        self.settle_cold();
        if self.hand_hot == NIL {
            self.settle_hot(frames);
        }
    }
}
