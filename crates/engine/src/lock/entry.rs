//! One key lock: its holders, and its waiters in order (rule 3).

use std::collections::VecDeque;
use std::sync::Arc;

use super::mode::LockMode;
use super::name::Name;
use super::waiter::Waiter;

/// A key lock that some owner holds or waits for.
pub(super) struct Entry {
    pub name: Name,
    state: State,
    /// Index of the key among its owner's writes, if it is held in `X`.
    write: u32,
}

enum State {
    /// The usual case: one owner, nobody waits.
    One(u64, LockMode),
    Many(Box<Many>),
}

#[derive(Default)]
struct Many {
    holders: Vec<(u64, LockMode)>,
    /// Requests in the order in which they are served: a holder that upgrades comes first.
    queue: VecDeque<Request>,
}

struct Request {
    id: u64,
    mode: LockMode,
    waiter: Arc<Waiter>,
}

/// Outcome of a request for a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// The owner held the lock already. In `X`, this is the index of the key among the owner's
    /// writes.
    Held(u32),
    /// The owner has a new lock.
    New,
    /// The owner held the lock in `S`, and holds it in `X` now.
    Upgraded,
    /// The request is in the queue.
    Queued,
}

impl Entry {
    pub fn new(name: Name, id: u64, mode: LockMode, write: u32) -> Entry {
        debug_assert!(matches!(mode, LockMode::S | LockMode::X), "keys are locked in S and X");
        Entry { name, state: State::One(id, mode), write }
    }

    /// Grants the request of `id`, or queues it unless it is in the queue already.
    pub fn request(&mut self, id: u64, mode: LockMode, write: u32, waiter: &Arc<Waiter>) -> Answer {
        debug_assert!(matches!(mode, LockMode::S | LockMode::X), "keys are locked in S and X");
        if let State::One(holder, held) = &mut self.state {
            if *holder == id {
                if held.covers(mode) {
                    return Answer::Held(self.write);
                }
                (*held, self.write) = (mode, write);
                return Answer::Upgraded;
            }
            let first = (*holder, *held);
            let many = Many { holders: vec![first], queue: VecDeque::new() };
            self.state = State::Many(Box::new(many));
        }
        let State::Many(many) = &mut self.state else { return Answer::Queued };
        let answer = many.request(id, mode, waiter);
        if mode == LockMode::X && matches!(answer, Answer::New | Answer::Upgraded) {
            self.write = write;
        }
        match answer {
            Answer::Held(_) => Answer::Held(self.write),
            answer => answer,
        }
    }

    /// Returns the mode in which `id` holds the lock, if it does.
    pub fn held_by(&self, id: u64) -> Option<LockMode> {
        match &self.state {
            State::One(holder, mode) => (*holder == id).then_some(*mode),
            State::Many(many) => many.held_by(id),
        }
    }

    /// Releases the lock of `id`. Returns `true` if the entry has neither holders nor waiters now.
    pub fn release(&mut self, id: u64) -> bool {
        debug_assert!(self.held_by(id).is_some(), "owner {id} releases what it holds");
        match &mut self.state {
            State::One(holder, _) => *holder == id,
            State::Many(many) => {
                many.holders.retain(|(holder, _)| *holder != id);
                many.settle()
            }
        }
    }

    /// Downgrades the lock of `id` from `X` to `S`.
    pub fn downgrade(&mut self, id: u64) {
        debug_assert_eq!(self.held_by(id), Some(LockMode::X), "X becomes S");
        match &mut self.state {
            State::One(holder, mode) if *holder == id => *mode = LockMode::S,
            State::One(..) => {}
            State::Many(many) => {
                for holder in many.holders.iter_mut().filter(|(holder, _)| *holder == id) {
                    holder.1 = LockMode::S;
                }
                many.settle();
            }
        }
    }

    /// Removes the request of `id` from the queue. Returns `true` if the entry has neither holders
    /// nor waiters now.
    pub fn leave_queue(&mut self, id: u64) -> bool {
        let State::Many(many) = &mut self.state else { return false };
        many.queue.retain(|request| request.id != id);
        many.settle()
    }

    /// Returns the owners that block the queued request of `id`.
    pub fn blockers(&self, id: u64) -> Vec<u64> {
        let State::Many(many) = &self.state else { return Vec::new() };
        let queued = many.queue.iter().find(|request| request.id == id);
        queued.map_or_else(Vec::new, |request| many.blockers(id, request.mode).collect())
    }
}

impl Many {
    fn held_by(&self, id: u64) -> Option<LockMode> {
        self.holders.iter().find(|(holder, _)| *holder == id).map(|(_, mode)| *mode)
    }

    /// Returns the blockers of `id`. These are the holders of a mode that is incompatible with
    /// `mode` and, unless `id` holds the lock already, the owners that wait in front of it for such
    /// a mode.
    fn blockers(&self, id: u64, mode: LockMode) -> impl Iterator<Item = u64> {
        let holders = self
            .holders
            .iter()
            .filter(move |(holder, held)| *holder != id && !held.goes_with(mode));
        let queue: usize = if self.held_by(id).is_some() { 0 } else { self.queue.len() };
        let ahead = self.queue.iter().take(queue).take_while(move |request| request.id != id);
        let ahead = ahead.filter(move |request| !request.mode.goes_with(mode));
        holders.map(|(holder, _)| *holder).chain(ahead.map(|request| request.id))
    }

    fn request(&mut self, id: u64, mode: LockMode, waiter: &Arc<Waiter>) -> Answer {
        let held = self.held_by(id);
        if held.is_some_and(|held| held.covers(mode)) {
            return Answer::Held(0);
        }
        if self.blockers(id, mode).next().is_none() {
            self.queue.retain(|request| request.id != id);
            if held.is_none() {
                self.holders.push((id, mode));
                debug_assert!(self.is_compatible(), "modes that are held together are compatible");
                return Answer::New;
            }
            for holder in self.holders.iter_mut().filter(|(holder, _)| *holder == id) {
                holder.1 = mode;
            }
            debug_assert!(self.is_compatible(), "modes that are held together are compatible");
            return Answer::Upgraded;
        }
        if !self.queue.iter().any(|request| request.id == id) {
            let request = Request { id, mode, waiter: Arc::clone(waiter) };
            let at = match held {
                Some(_) => {
                    let holds = |request: &&Request| self.held_by(request.id).is_some();
                    self.queue.iter().take_while(holds).count()
                }
                None => self.queue.len(),
            };
            self.queue.insert(at, request);
            debug_assert!(
                self.queue.iter().is_sorted_by_key(|request| self.held_by(request.id).is_none()),
                "holders that upgrade are served first"
            );
        }
        Answer::Queued
    }

    /// Returns whether each owner holds the lock once, and all held modes are compatible.
    fn is_compatible(&self) -> bool {
        self.holders.iter().enumerate().all(|(at, (id, mode))| {
            let mut others = self.holders.iter().skip(at + 1);
            others.all(|(other, held)| other != id && held.goes_with(*mode))
        })
    }

    /// Wakes the waiters that nothing blocks any more. Returns `true` if no holder and no waiter is
    /// left.
    fn settle(&self) -> bool {
        for request in &self.queue {
            if self.blockers(request.id, request.mode).next().is_none() {
                request.waiter.wake();
            }
        }
        self.holders.is_empty() && self.queue.is_empty()
    }
}
