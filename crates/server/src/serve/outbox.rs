//! Replies of a connection that are to be sent, and how much of it is under way.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::volume::Room;

/// A reply: a header, and bytes that were read.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub head: Vec<u8>,
    pub body: Option<Room>,
    /// Bytes that its request was admitted with.
    pub cost: u64,
}

/// The connection is broken: nothing more can be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Broken;

/// What is between a connection's reader, the workers, and its sender.
#[derive(Debug)]
pub(super) struct Outbox {
    bytes_max: u64,
    requests_max: u32,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    replies: VecDeque<Reply>,
    /// Of admitted requests whose replies are not sent.
    bytes: u64,
    requests: u32,
    /// No more requests come.
    is_closing: bool,
    is_broken: bool,
}

impl State {
    fn done(&mut self, cost: u64) {
        self.bytes = self.bytes.saturating_sub(cost);
        self.requests = self.requests.saturating_sub(1);
    }
}

impl Outbox {
    pub fn new(bytes_max: u64, requests_max: u32) -> Outbox {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Outbox { bytes_max, requests_max: requests_max.max(1), state, changed }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing below can panic between two steps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request of `cost` bytes may be under way. One is always admitted.
    pub fn admit(&self, cost: u64) -> Result<(), Broken> {
        let mut state = self.state();
        let is_full = |state: &State| {
            let bytes = state.bytes.saturating_add(cost);
            state.requests >= self.requests_max || (state.requests > 0 && bytes > self.bytes_max)
        };
        while !state.is_broken && is_full(&state) {
            state = self.wait(state);
        }
        if state.is_broken {
            return Err(Broken);
        }
        state.bytes = state.bytes.saturating_add(cost);
        state.requests += 1;
        Ok(())
    }

    /// Undoes the admission of a request that gets no reply.
    pub fn withdraw(&self, cost: u64) {
        self.state().done(cost);
        self.changed.notify_all();
    }

    /// A reply is to be sent. Never waits.
    pub fn push(&self, reply: Reply) {
        let mut state = self.state();
        if state.is_broken {
            state.done(reply.cost);
        } else {
            state.replies.push_back(reply);
        }
        self.changed.notify_all();
    }

    /// Waits for replies, and takes those that there are; `None`: there are no more.
    pub fn take(&self) -> Option<VecDeque<Reply>> {
        let mut state = self.state();
        loop {
            if !state.replies.is_empty() {
                return Some(std::mem::take(&mut state.replies));
            }
            if state.is_broken || (state.is_closing && state.requests == 0) {
                return None;
            }
            state = self.wait(state);
        }
    }

    /// A reply has been sent.
    pub fn sent(&self, cost: u64) {
        self.state().done(cost);
        self.changed.notify_all();
    }

    /// No more requests come.
    pub fn close(&self) {
        self.state().is_closing = true;
        self.changed.notify_all();
    }

    /// Nothing more can be sent.
    pub fn break_off(&self) {
        let mut state = self.state();
        state.is_broken = true;
        let dropped = std::mem::take(&mut state.replies);
        dropped.iter().for_each(|reply| state.done(reply.cost));
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(cost: u64) -> Reply {
        Reply { head: vec![1], body: None, cost }
    }

    #[test]
    fn no_more_is_under_way_than_the_limit_says_but_one_request_always_is() {
        let outbox = Outbox::new(100, 2);
        outbox.admit(1000).unwrap();
        outbox.push(reply(1000));
        assert_eq!(outbox.take().unwrap().len(), 1);
        outbox.sent(1000);
        outbox.admit(60).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| outbox.admit(60));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waits.is_finished(), "more bytes than the limit");
            outbox.push(reply(60));
            outbox.take().unwrap();
            outbox.sent(60);
            assert_eq!(waits.join().unwrap(), Ok(()));
            outbox.admit(1).unwrap();
            let waits = scope.spawn(|| outbox.admit(1));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waits.is_finished(), "more requests than the limit");
            outbox.break_off();
            assert_eq!(waits.join().unwrap(), Err(Broken));
        });
    }

    #[test]
    fn what_was_admitted_is_replied_to_before_a_closed_outbox_ends() {
        let outbox = Outbox::new(100, 8);
        outbox.admit(10).unwrap();
        outbox.admit(10).unwrap();
        outbox.close();
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let mut count = 0;
                while let Some(replies) = outbox.take() {
                    count += replies.len();
                    replies.iter().for_each(|reply| outbox.sent(reply.cost));
                }
                count
            });
            outbox.push(reply(10));
            std::thread::sleep(std::time::Duration::from_millis(5));
            outbox.push(reply(10));
            assert_eq!(sender.join().unwrap(), 2);
        });
    }

    #[test]
    fn a_broken_outbox_takes_replies_and_forgets_them() {
        let outbox = Outbox::new(100, 8);
        outbox.admit(10).unwrap();
        outbox.admit(10).unwrap();
        outbox.push(reply(10));
        outbox.break_off();
        outbox.push(reply(10));
        assert!(outbox.take().is_none());
        assert_eq!(outbox.admit(1), Err(Broken));
        assert_eq!(outbox.state().requests, 0);
    }
}
