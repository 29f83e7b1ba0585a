//! Group commit: one leader makes records durable for all threads that wait.
//!
//! A thread that needs a durable record, and finds no leader, leads. It takes all published
//! records, writes their blocks with one call, syncs the device once, and advances the durable LSN.
//! So a thread that is alone hands no work to another thread. A thread that comes in the meantime
//! waits for the end of this round if the batch has its record, and for the end of the next round
//! otherwise. When a round ends, all of its waiters wake, and one waiter of the next round wakes to
//! lead it.

use std::io::IoSlice;
use std::ops::Range;
use std::time::{Duration, Instant};

use millpond_base::Lsn;
use millpond_base::PastPoison;
use millpond_base::sync::atomic::Ordering;
use millpond_base::sync::{Condvar, MutexGuard, thread};
use millpond_device::{AlignedBuffer, DeviceError, WriteRequest};

use super::error::LogError;
use super::group_commit::{GroupCommitWait, Leader, State};
use super::options::BLOCK;
use super::ring::Consumer;
use super::shared::Shared;
use crate::stats::Wait;
use crate::stats::counters::{Counter, Timing};

/// Number of times that a leader looks again for records before its own that are still being
/// copied, and number of these looks without yielding to other threads. Under a model checker
/// nothing happens until it yields.
const LOOKS: u32 = if cfg!(feature = "model") { 2 } else { 200 };
const LOOKS_SPINNING: u32 = if cfg!(feature = "model") { 0 } else { 180 };

impl Shared {
    fn count(&self, counter: Counter, amount: u64) {
        self.statistics.counters.add(counter, amount);
    }

    /// Returns once everything before `end` is durable. Without a leader, the calling thread leads,
    /// and waits for its batch to grow as `group` demands. The statistics count the wait under
    /// `what`, if given.
    pub(super) fn wait(
        &self,
        what: Option<Wait>,
        end: u64,
        group: GroupCommitWait,
    ) -> Result<(), LogError> {
        if self.ring.durable() >= end {
            return Ok(());
        }
        let tail = self.ring.tail();
        if end > tail {
            let (path, at, tail) = (self.path().to_path_buf(), Lsn(end), Lsn(tail));
            return Err(LogError::BeyondTail { path, at, tail });
        }
        let _waiting = what.map(|what| self.statistics.wait(what));
        let mut has_led = false;
        let mut state = self.flush.state.lock().past_poison();
        loop {
            if self.ring.durable() >= end {
                let shared = u64::from(what == Some(Wait::Log) && !has_led);
                self.count(Counter::LogWaitsShared, shared);
                return Ok(());
            }
            if let Some(error) = &state.poison {
                return Err(error.clone());
            }
            state = if state.is_led {
                self.follow(state, end)
            } else {
                has_led = true;
                self.lead(state, end, group)
            };
        }
    }

    /// Waits until a round has ended.
    fn follow<'s>(&'s self, mut state: MutexGuard<'s, State>, end: u64) -> MutexGuard<'s, State> {
        debug_assert!(state.is_led, "a follower waits for a leader");
        let flush = &self.flush;
        let is_covered = state.is_open || end <= state.target;
        let round = state.round + u64::from(!is_covered);
        let side = (round % 2) as usize;
        state.waiting[side] += 1;
        if state.is_open && state.waiting[side] + 1 >= state.last_group {
            flush.group.notify_one();
        }
        state = flush.rounds[side].wait(state).past_poison();
        // The thread woke before its round's end, to lead it or spuriously.
        if state.round <= round {
            state.waiting[side] -= 1;
        }
        state
    }

    /// Flushes the published records once, and ends the round.
    fn lead<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        end: u64,
        group: GroupCommitWait,
    ) -> MutexGuard<'s, State> {
        debug_assert!(!state.is_led, "a round has one leader");
        debug_assert!(!state.is_open, "a batch that is open has a leader");
        (state.is_led, state.is_open) = (true, true);
        let patience = state.patience(group);
        if !patience.is_zero() {
            state = self.await_batch(state, patience);
        }
        drop(state);
        let outcome = self.flush_published(end);
        let flush = &self.flush;
        let mut state = flush.state.lock().past_poison();
        match outcome {
            Ok(Some(time)) => state.flush_time = (state.flush_time * 7 + time) / 8,
            Ok(None) => {}
            Err(error) => {
                state.poison.get_or_insert(error);
                flush.is_poisoned.store(true, Ordering::Release);
            }
        }
        debug_assert!(state.is_led, "only the leader ends its round");
        (state.is_led, state.is_open) = (false, false);
        let side = (state.round % 2) as usize;
        state.last_group = 1 + std::mem::take(&mut state.waiting[side]);
        state.round += 1;
        flush.rounds[side].notify_all();
        if state.waiting[1 - side] > 0 {
            // One waiter leads the next round. If nothing becomes durable any more, all must learn
            // that.
            match state.poison {
                Some(_) => flush.rounds[1 - side].notify_all(),
                None => flush.rounds[1 - side].notify_one(),
            }
        }
        state
    }

    /// Waits until as many threads have come as in the last round, for `delay` at most.
    fn await_batch<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        delay: Duration,
    ) -> MutexGuard<'s, State> {
        debug_assert!(state.is_led && state.is_open, "a batch grows until its leader closes it");
        let deadline = Instant::now() + delay;
        let side = (state.round % 2) as usize;
        while state.waiting[side] + 1 < state.last_group {
            let left = deadline.saturating_duration_since(Instant::now());
            // In a model no time passes.
            if left.is_zero() || cfg!(feature = "model") {
                break;
            }
            let waited = self.flush.group.wait_timeout(state, left);
            state = waited.past_poison().0;
        }
        state
    }

    /// Makes the published records durable. Waits a moment for records before `end` that are still
    /// being copied. Returns the time that the device took, if there was anything to write.
    fn flush_published(&self, end: u64) -> Result<Option<Duration>, LogError> {
        let mut leader = self.flush.leader.lock().past_poison();
        let walked = leader.walk_to(end);
        {
            // Checked under the leader's mutex: the background thread may have failed just before.
            let mut state = self.flush.state.lock().past_poison();
            if let Some(error) = &state.poison {
                return Err(error.clone());
            }
            debug_assert!(state.target <= walked, "the end of what leaders have taken grows");
            (state.target, state.is_open) = (walked, false);
        }
        if walked == leader.consumer.durable() {
            return Ok(None);
        }
        let begun = Instant::now();
        self.make_durable(&mut leader)?;
        Ok(Some(begun.elapsed()))
    }

    /// Makes the records durable that the leader has walked over.
    fn make_durable(&self, leader: &mut Leader) -> Result<(), LogError> {
        self.write_out(leader).map_err(LogError::fatal)?;
        leader.consumer.advance(leader.consumer.walked());
        self.count(Counter::LogRecords, leader.consumer.take_records());
        self.count(Counter::LogFlushes, 1);
        Ok(())
    }

    /// Makes all appended records durable, and none after them: a thread whose record came too late
    /// finds the log poisoned.
    pub(super) fn seal(&self) -> Result<(), LogError> {
        self.wait(None, self.ring.tail(), GroupCommitWait::None)?;
        self.poison(LogError::Closed { path: self.path().to_path_buf() });
        // Records that were appended earlier, and acknowledged without a wait, may lie behind a
        // record that another thread is still copying.
        const LOOKS: u32 = 1000;
        const NAP: Duration = Duration::from_millis(1);
        let (mut leader, tail) = (self.flush.leader.lock().past_poison(), self.ring.tail());
        let mut walked = leader.walk_to(tail);
        for _ in 0..LOOKS {
            if walked >= tail {
                break;
            }
            std::thread::sleep(NAP);
            walked = leader.walk_to(tail);
        }
        if walked > leader.consumer.durable() { self.make_durable(&mut leader) } else { Ok(()) }
    }

    /// Writes the blocks of all records walked over that are not durable, and syncs them.
    fn write_out(&self, leader: &mut Leader) -> Result<(), DeviceError> {
        let Leader { consumer, scratch } = leader;
        let (from, to) = (consumer.durable(), consumer.walked());
        let (begin, full) = (from - from % BLOCK, to - to % BLOCK);
        debug_assert!(from < to, "a leader writes records that are not durable yet");
        debug_assert!(begin <= full, "the last block is not before the first");
        if full < to {
            scratch.fill(0);
            let mut at = 0;
            for part in consumer.bytes(full, to) {
                scratch[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
        }
        let mut writes = Vec::new();
        let mut at = begin;
        while at < to {
            let end = ((at / self.segments.size() + 1) * self.segments.size())
                .min(to.next_multiple_of(BLOCK));
            let scratch = (end > full).then_some(&**scratch);
            writes.push(self.stretch(consumer, at..end, full, scratch)?);
            at = end;
        }
        self.submit(&writes)
    }

    /// Returns the write of `blocks`, which are in one segment; blocks from `full` on come from
    /// `scratch`.
    fn stretch<'b>(
        &self,
        consumer: &'b Consumer,
        blocks: Range<u64>,
        full: u64,
        scratch: Option<&'b [u8]>,
    ) -> Result<Stretch<'b>, DeviceError> {
        let sequence = self.segments.sequence(blocks.start);
        debug_assert!(blocks.start < blocks.end, "a stretch has blocks");
        debug_assert!(blocks.start.is_multiple_of(BLOCK), "whole blocks are written");
        debug_assert!(blocks.end.is_multiple_of(BLOCK), "whole blocks are written");
        debug_assert_eq!(
            self.segments.sequence(blocks.end - 1),
            sequence,
            "a stretch lies in one segment"
        );
        let until = blocks.end - sequence * self.segments.size();
        let place = self.segments.place(sequence, until)?;
        if place.is_recycled {
            self.count(Counter::LogSegmentsRecycled, 1);
        }
        let [first, rest] = consumer.bytes(blocks.start.min(full), blocks.end.min(full));
        let parts = [first, rest, scratch.unwrap_or_default()];
        debug_assert_eq!(
            parts.iter().map(|part| part.len() as u64).sum::<u64>(),
            blocks.end - blocks.start,
            "the parts are all of the stretch"
        );
        let parts = parts.into_iter().filter(|part| !part.is_empty()).map(IoSlice::new).collect();
        let offset = place.header + BLOCK + blocks.start % self.segments.size();
        let header = place.is_new.then(|| (place.header, self.segments.header(sequence)));
        Ok(Stretch { header, offset, length: blocks.end - blocks.start, parts })
    }

    /// Writes all stretches and syncs them: new headers first (rule 6), then the records.
    fn submit(&self, writes: &[Stretch<'_>]) -> Result<(), DeviceError> {
        let headers: Vec<_> = writes
            .iter()
            .filter_map(|stretch| stretch.header.as_ref())
            .map(|(offset, block)| (*offset, [IoSlice::new(block)]))
            .collect();
        let mut parts: Vec<Part<'_>> =
            headers.iter().map(|(at, parts)| (*at..at + BLOCK, parts.as_slice())).collect();
        if !parts.is_empty() {
            self.submit_parts(&parts)?;
            parts.clear();
        }
        let end = |stretch: &Stretch<'_>| stretch.offset + stretch.length;
        parts.extend(writes.iter().map(|each| (each.offset..end(each), each.parts.as_slice())));
        self.submit_parts(&parts)
    }

    /// Writes the parts at their places, then syncs all of them once.
    fn submit_parts(&self, parts: &[Part<'_>]) -> Result<(), DeviceError> {
        let (mut requests, mut ranges) = (Vec::new(), Vec::new());
        for (range, parts) in parts {
            debug_assert!(range.start.is_multiple_of(BLOCK), "a write begins at a block");
            debug_assert!(range.end.is_multiple_of(BLOCK), "a write ends at a block");
            requests.push(WriteRequest::new(range.start, parts));
            ranges.push(range.clone());
        }
        let device = self.segments.device();
        let begun = self.statistics.latencies.start(Timing::LogSyncTime);
        device.write_batch(&mut requests);
        requests.into_iter().try_for_each(|request| request.result)?;
        device.sync_ranges(&ranges)?;
        let bytes = ranges.iter().map(|range| range.end - range.start).sum();
        self.statistics.latencies.stop(Timing::LogSyncTime, begun);
        self.count(Counter::LogBytesWritten, bytes);
        self.count(Counter::LogSyncs, 1);
        Ok(())
    }

    /// Ends the log with `error`: nothing becomes durable from now on. Only the first such error is
    /// kept.
    pub(super) fn poison(&self, error: LogError) {
        let mut state = self.flush.state.lock().past_poison();
        state.poison.get_or_insert(error);
        self.flush.is_poisoned.store(true, Ordering::Release);
        drop(state);
        // A thread that was woken to lead will not lead, and so would wake no other.
        self.flush.rounds.iter().for_each(Condvar::notify_all);
    }

    pub(super) fn poisoned(&self) -> Option<LogError> {
        // Checked at every commit, and rarely true.
        if !self.flush.is_poisoned.load(Ordering::Acquire) {
            return None;
        }
        self.flush.state.lock().past_poison().poison.clone()
    }

    /// Makes the file a step longer if it runs short. Called by the background thread.
    ///
    /// # Errors
    /// There is no room, though there may be some by the time it is needed.
    pub(super) fn grow_if_short(&self) -> Result<(), DeviceError> {
        if !self.segments.runs_short(self.ring.tail()) {
            return Ok(());
        }
        let _ahead = self.growing_ahead.lock().past_poison();
        // Another thread may have made it longer.
        if self.segments.runs_short(self.ring.tail()) { self.grow_ahead(0) } else { Ok(()) }
    }

    /// Makes the file a step longer, or by `least` bytes if there is no room for more, ahead of
    /// need and durably. The caller holds `growing_ahead`.
    fn grow_ahead(&self, least: u64) -> Result<(), DeviceError> {
        let segments = &self.segments;
        let grown = segments.grow_ahead(least);
        let length = grown.inspect_err(|_| self.count(Counter::LogGrowthFailures, 1))?;
        let leader = self.flush.leader.lock().past_poison();
        match segments.device().sync() {
            Ok(()) => segments.give(length),
            // The leader's last writes may be among the lost ones.
            Err(error) => self.poison(LogError::fatal(error)),
        }
        drop(leader);
        self.count(Counter::LogSyncs, 1);
        self.count(Counter::LogSegmentsGrown, 1);
        Ok(())
    }

    /// Looks up how far the file has room, and makes it longer until it has room up to `end`.
    #[cold]
    pub(super) fn make_room(&self, end: u64) -> Result<(), LogError> {
        // A thread that waited here finds the room that the other one has made.
        let _ahead = self.growing_ahead.lock().past_poison();
        loop {
            let until = self.segments.room_until(self.ring.tail());
            self.room_until.store(until, Ordering::Release);
            // The next append, or wait, returns the error of a poisoned log.
            if until >= end || self.poisoned().is_some() {
                return Ok(());
            }
            // One block more, for the header of the next slot.
            let least = end - until + BLOCK;
            self.grow_ahead(least).map_err(|error| {
                self.is_refusing.store(true, Ordering::Release);
                LogError::NoRoom(error)
            })?;
        }
    }
}

impl Leader {
    /// Walks over the published records. Waits a moment for records before `end` that are still
    /// being copied. Returns the position that it reached.
    fn walk_to(&mut self, end: u64) -> u64 {
        let mut looks = 0;
        while self.consumer.walk() < end && looks < LOOKS {
            if looks < LOOKS_SPINNING {
                std::hint::spin_loop()
            } else {
                thread::yield_now()
            }
            looks += 1;
        }
        self.consumer.walked()
    }
}

/// Place of bytes to write, and the bytes.
type Part<'p> = (Range<u64>, &'p [IoSlice<'p>]);

/// A write within one segment.
struct Stretch<'b> {
    /// Offset and content of the slot's header, if the segment is new there.
    header: Option<(u64, AlignedBuffer)>,
    offset: u64,
    length: u64,
    parts: Vec<IoSlice<'b>>,
}
