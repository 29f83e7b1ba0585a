//! Unsent replies of a connection, and the volume of its requests in progress.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::volume::Room;
use millpond_base::PastPoison;

/// Maximum number of buffers per system call.
const PARTS_MAX: usize = 128;

/// A reply: a header, and bytes that were read.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub head: Vec<u8>,
    pub body: Option<Room>,
    /// Bytes that its request was admitted with.
    pub cost: u64,
}

impl Reply {
    fn len(&self) -> usize {
        self.head.len() + self.body.as_ref().map_or(0, |body| body.len())
    }
}

/// Replies that one thread is sending; the first may be sent in part.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    replies: VecDeque<Reply>,
    /// Bytes of the first reply that were sent.
    done: usize,
}

impl Unsent {
    pub fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// Returns the next bytes to send.
    pub fn parts(&self) -> Vec<IoSlice<'_>> {
        let bytes = |reply| {
            let Reply { head, body, .. }: &Reply = reply;
            [&head[..], body.as_deref().unwrap_or(&[])]
        };
        let mut skip = self.done;
        let rest = |part| {
            let part: &[u8] = part;
            let from = skip.min(part.len());
            skip -= from;
            part.get(from..).unwrap_or(&[])
        };
        let parts = self.replies.iter().flat_map(bytes).map(rest);
        parts.filter(|part| !part.is_empty()).take(PARTS_MAX).map(IoSlice::new).collect()
    }

    /// Records that `count` more bytes were sent. Returns the finished replies.
    fn advance(&mut self, count: usize) -> VecDeque<Reply> {
        self.done += count;
        let mut ended = VecDeque::new();
        while self.replies.front().is_some_and(|reply| reply.len() <= self.done) {
            let Some(reply) = self.replies.pop_front() else { break };
            self.done -= reply.len();
            ended.push_back(reply);
        }
        ended
    }
}

/// The connection is broken: nothing more can be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Broken;

/// Shared state of a connection's reader, the workers, and its sender.
#[derive(Debug)]
pub(super) struct Outbox {
    bytes_max: u64,
    requests_max: u32,
    state: Mutex<State>,
    /// Wakes the reader, which waits for room.
    room: Condvar,
    /// Wakes the sender, which waits for replies that no other thread could send.
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    replies: VecDeque<Reply>,
    /// Bytes of admitted requests whose replies are not sent.
    bytes: u64,
    requests: u32,
    /// Set while a thread sends; it also takes replies pushed in the meantime.
    is_sending: bool,
    /// Bytes left to the sender.
    unsent: Option<Unsent>,
    /// Set while the reader waits.
    is_waiting: bool,
    /// Set once no more requests come.
    is_closing: bool,
    is_broken: bool,
}

impl State {
    fn done(&mut self, cost: u64) {
        self.bytes = self.bytes.saturating_sub(cost);
        self.requests = self.requests.saturating_sub(1);
    }

    fn admits(&self, outbox: &Outbox, cost: u64) -> bool {
        let bytes = self.bytes.saturating_add(cost);
        self.requests == 0 || (self.requests < outbox.requests_max && bytes <= outbox.bytes_max)
    }

    fn admit(&mut self, cost: u64) {
        self.bytes = self.bytes.saturating_add(cost);
        self.requests += 1;
    }
}

impl Outbox {
    pub fn new(bytes_max: u64, requests_max: u32) -> Outbox {
        let (state, room, left) = (Mutex::default(), Condvar::new(), Condvar::new());
        Outbox { bytes_max, requests_max: requests_max.max(1), state, room, left }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing below can panic between two steps.
        self.state.lock().past_poison()
    }

    /// Wakes the threads that wait for a change. Waking costs a system call even if nobody waits.
    fn tell(&self, state: &State) {
        if state.is_waiting {
            self.room.notify_one();
        }
        if state.is_broken || (state.is_closing && state.requests == 0) {
            self.left.notify_one();
        }
    }

    /// Admits a request of `cost` bytes if there is room. Returns `true` if it did.
    pub fn admits(&self, cost: u64) -> Result<bool, Broken> {
        let mut state = self.state();
        if state.is_broken {
            return Err(Broken);
        }
        let is_admitted = state.admits(self, cost);
        if is_admitted {
            state.admit(cost);
        }
        Ok(is_admitted)
    }

    /// Waits until a request of `cost` bytes is admitted. A single request always is. One thread at
    /// a time may call this.
    pub fn admit(&self, cost: u64) -> Result<(), Broken> {
        let mut state = self.state();
        while !state.is_broken && !state.admits(self, cost) {
            state.is_waiting = true;
            state = self.room.wait(state).past_poison();
            state.is_waiting = false;
        }
        if state.is_broken {
            return Err(Broken);
        }
        state.admit(cost);
        Ok(())
    }

    /// Reverts the admission of a request that gets no reply.
    pub fn withdraw(&self, cost: u64) {
        let mut state = self.state();
        state.done(cost);
        self.tell(&state);
    }

    /// Queues replies. Never waits.
    pub fn push(&self, replies: impl IntoIterator<Item = Reply>) {
        let mut state = self.state();
        if state.is_broken {
            replies.into_iter().for_each(|reply| state.done(reply.cost));
            self.tell(&state);
        } else {
            state.replies.extend(replies);
        }
    }

    /// Takes replies to send. `None` if there are none, or another thread is sending and will take
    /// them.
    pub fn take(&self) -> Option<Unsent> {
        let mut state = self.state();
        if state.is_sending || state.is_broken || state.replies.is_empty() {
            return None;
        }
        state.is_sending = true;
        Some(Unsent { replies: std::mem::take(&mut state.replies), done: 0 })
    }

    /// Records that the sending thread has sent `count` bytes. After the last of them, other
    /// threads may send.
    pub fn sent(&self, unsent: &mut Unsent, count: usize) {
        let ended = unsent.advance(count);
        let mut state = self.state();
        ended.iter().for_each(|reply| state.done(reply.cost));
        state.is_sending = !unsent.is_empty();
        self.tell(&state);
    }

    /// Leaves the rest of the bytes to the sender.
    pub fn leave(&self, unsent: Unsent) {
        self.state().unsent = Some(unsent);
        self.left.notify_one();
    }

    /// Waits, in the sender, for replies that others left; `None` once no more can come.
    pub fn wait(&self) -> Option<Unsent> {
        let mut state = self.state();
        loop {
            if state.is_broken || (state.is_closing && state.requests == 0) {
                return None;
            }
            if let Some(unsent) = state.unsent.take() {
                return Some(unsent);
            }
            state = self.left.wait(state).past_poison();
        }
    }

    /// Ends the requests: no more come.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_closing = true;
        self.tell(&state);
    }

    /// Marks the connection as broken: no more can be sent.
    pub fn break_off(&self) {
        let mut state = self.state();
        state.is_broken = true;
        let dropped = std::mem::take(&mut state.replies);
        dropped.iter().for_each(|reply| state.done(reply.cost));
        self.tell(&state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(cost: u64) -> Reply {
        Reply { head: vec![1; 3], body: None, cost }
    }

    /// Sends all queued replies, and returns the number of bytes.
    fn send(outbox: &Outbox) -> usize {
        let mut count = 0;
        while let Some(mut unsent) = outbox.take() {
            let bytes: usize = unsent.parts().iter().map(|part| part.len()).sum();
            outbox.sent(&mut unsent, bytes);
            count += bytes;
        }
        count
    }

    #[test]
    fn no_more_is_under_way_than_the_limit_says_but_one_request_always_is() {
        let outbox = Outbox::new(100, 2);
        assert_eq!(outbox.admits(1000), Ok(true));
        assert_eq!(outbox.admits(1), Ok(false));
        outbox.push([reply(1000)]);
        assert_eq!(send(&outbox), 3);
        outbox.admit(60).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| outbox.admit(60));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waits.is_finished(), "more bytes than the limit");
            outbox.push([reply(60)]);
            assert_eq!(send(&outbox), 3);
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
            let sender = scope.spawn(|| outbox.wait().is_none());
            outbox.push([reply(10)]);
            assert_eq!(send(&outbox), 3);
            std::thread::sleep(std::time::Duration::from_millis(5));
            assert!(!sender.is_finished());
            outbox.push([reply(10)]);
            assert_eq!(send(&outbox), 3);
            assert!(sender.join().unwrap());
        });
    }

    #[test]
    fn one_sends_at_a_time_and_what_it_leaves_the_sender_gets_from_where_it_stopped() {
        let outbox = Outbox::new(1000, 8);
        let of = |fill: u8| Reply { head: vec![fill; 3], body: None, cost: 10 };
        (0..3).for_each(|_| outbox.admit(10).unwrap());
        outbox.push([of(1), of(2)]);
        let mut unsent = outbox.take().unwrap();
        outbox.push([of(3)]);
        assert!(outbox.take().is_none(), "somebody sends");
        outbox.sent(&mut unsent, 4);
        assert_eq!(outbox.state().bytes, 20);
        outbox.leave(unsent);
        assert!(outbox.take().is_none(), "the sender sends");
        let mut left = outbox.wait().unwrap();
        assert_eq!(left.parts().concat_all(), [2, 2]);
        outbox.sent(&mut left, 2);
        assert!(left.is_empty());
        assert_eq!(outbox.take().unwrap().parts().concat_all(), [3, 3, 3]);
    }

    trait Concat {
        fn concat_all(&self) -> Vec<u8>;
    }

    impl Concat for Vec<IoSlice<'_>> {
        fn concat_all(&self) -> Vec<u8> {
            self.iter().flat_map(|part| part.iter().copied()).collect()
        }
    }

    #[test]
    fn a_broken_outbox_takes_replies_and_forgets_them() {
        let outbox = Outbox::new(100, 8);
        outbox.admit(10).unwrap();
        outbox.admit(10).unwrap();
        outbox.push([reply(10)]);
        outbox.break_off();
        outbox.push([reply(10)]);
        assert!(outbox.take().is_none() && outbox.wait().is_none());
        assert_eq!(outbox.admit(1), Err(Broken));
        assert_eq!(outbox.state().requests, 0);
    }
}
