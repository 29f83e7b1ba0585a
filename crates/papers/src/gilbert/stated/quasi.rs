//! A stack with a retry queue and per-thread turns (gilbert 1.2.2.2, algorithm 1.1, with a stack
//! instead of the queue, as in 1.2.3 and 1.2.5.1).
//!
//! Differences from the part that the shipped policies use: each thread has its own turns, a turn
//! of the stack is exactly 1 % of its length, no refusal ends a call, and a candidate is out of
//! its list while it is tried.

use std::collections::HashMap;
use std::thread::ThreadId;

use millpond_base::FrameId;
use millpond_policies::contract::{EvictRequest, Host, RefusalReason};
use millpond_policies::parts::list::{Links, List, check_holds};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Out,
    Stack,
    Retry,
    /// Refused permanently, and not offered again.
    Excluded,
}

#[derive(Clone, Copy, Default)]
struct Turn {
    on_retry: bool,
    checks: u32,
}

/// The two lists and the turns.
pub(super) struct Quasi {
    links: Links,
    stack: List,
    retry: List,
    place: Vec<Place>,
    turns: HashMap<ThreadId, Turn>,
    excludes: bool,
}

impl Quasi {
    /// Creates empty lists for `frames` frames. With `excludes`, frames that can never be evicted
    /// are not retried.
    pub fn new(frames: u32, excludes: bool) -> Quasi {
        Quasi {
            links: Links::new(frames),
            stack: List::new(),
            retry: List::new(),
            place: vec![Place::Out; frames as usize],
            turns: HashMap::new(),
            excludes,
        }
    }

    /// Moves a frame from any list to the top of the stack.
    pub fn push(&mut self, frame: u32) {
        self.remove(frame);
        self.stack.push_back(&mut self.links, frame);
        self.place[frame as usize] = Place::Stack;
    }

    /// Removes a frame from any list.
    pub fn remove(&mut self, frame: u32) {
        match std::mem::replace(&mut self.place[frame as usize], Place::Out) {
            Place::Stack => self.stack.remove(&mut self.links, frame),
            Place::Retry => self.retry.remove(&mut self.links, frame),
            Place::Excluded | Place::Out => {}
        }
    }

    /// Removes the next candidate from its list and returns it.
    fn select(&mut self) -> Option<u32> {
        let turn = self.turns.entry(std::thread::current().id()).or_default();
        let (stack, retry) = (self.stack.len(), self.retry.len());
        let goes_on = match turn.on_retry {
            false => f64::from(turn.checks) < 0.01 * f64::from(stack) || retry == 0,
            true => turn.checks < retry || stack == 0,
        };
        if goes_on {
            turn.checks = turn.checks.saturating_add(1);
        } else {
            *turn = Turn { on_retry: !turn.on_retry, checks: 0 };
        }
        let frame = match turn.on_retry {
            false => self.stack.pop_back(&mut self.links),
            true => self.retry.pop_front(&mut self.links),
        }?;
        self.place[frame as usize] = Place::Out;
        Some(frame)
    }

    /// Offers candidates until the request is met or the host's limit of a call is reached.
    pub fn evict<H: Host + ?Sized>(&mut self, request: &EvictRequest, host: &mut H) -> u32 {
        let (mut taken, mut steps) = (0, 0);
        while taken < request.frames && steps < request.steps_max {
            steps += 1;
            let Some(offered) = self.select() else { break };
            match host.take(FrameId(offered)) {
                Ok((gone, _)) if gone.0 == offered => taken += 1,
                Ok((child, _)) => {
                    self.remove(child.0);
                    self.refused(offered, RefusalReason::Pinned);
                    taken += 1;
                }
                Err(why) => self.refused(offered, why),
            }
        }
        taken
    }

    fn refused(&mut self, frame: u32, why: RefusalReason) {
        if self.excludes && !why.is_temporary() {
            self.place[frame as usize] = Place::Excluded;
            return;
        }
        self.retry.push_back(&mut self.links, frame);
        self.place[frame as usize] = Place::Retry;
    }

    pub fn bytes(&self) -> usize {
        self.links.bytes() + self.place.capacity()
    }

    /// Checks that every resident frame is in one of the lists, or excluded.
    pub fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        let is_excluded = |frame: &FrameId| self.place[frame.0 as usize] == Place::Excluded;
        let listed: Vec<FrameId> = resident.iter().copied().filter(|f| !is_excluded(f)).collect();
        check_holds(&[&self.stack, &self.retry], &self.links, &listed)
    }
}
