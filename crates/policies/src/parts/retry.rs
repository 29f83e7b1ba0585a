//! A queue of frames with a retry queue beside it, and turns between the two.
//!
//! A policy by order of arrival has a problem with refused frames: offering the frame again at
//! once wastes time, and forgetting its age spoils the order. So refused frames wait in their own
//! queue, and eviction takes turns: a few looks at the main queue, then one look at each frame of
//! the retry queue (gilbert 1.2.2.2).
//!
//! Invariants: (1) a resident frame is in the main queue, in the retry queue, or excluded; (2) the
//! retry queue and the excluded frames hold refused frames only.

use millpond_base::{FrameId, PageId};

use super::list::{Links, List};
use super::offers::offer_from_queue;
use crate::config::Part;
use crate::contract::{EvictRequest, Host, RefusalReason};

/// End of the main queue from which victims are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The end opposite to the entry, as in a queue.
    Oldest,
    /// The end of the entry, as in a stack.
    Newest,
}

/// Treatment of frames that are never evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permanent {
    /// Such frames are not offered again.
    Excluded,
    /// Such frames wait for a retry like others.
    Retried,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameQueue {
    Main,
    Retry,
    Excluded,
}

/// The two queues, and the present turn.
pub struct RetryQueue {
    links: Links,
    main: List,
    retry: List,
    place: Vec<FrameQueue>,
    end: End,
    permanent: Permanent,
    main_checks: Part,
    retry_checks: Part,
    on_retry: bool,
    checks: u32,
}

impl RetryQueue {
    /// Creates empty queues for frames below `frames`. A turn of the main queue lasts for
    /// `main_checks` of its length, at least one frame. A turn of the retry queue lasts for
    /// `retry_checks` of its length.
    pub fn new(
        frames: u32,
        end: End,
        permanent: Permanent,
        main_checks: Part,
        retry_checks: Part,
    ) -> RetryQueue {
        RetryQueue {
            links: Links::new(frames),
            main: List::new(),
            retry: List::new(),
            place: vec![FrameQueue::Main; frames as usize],
            end,
            permanent,
            main_checks,
            retry_checks,
            on_retry: false,
            checks: 0,
        }
    }

    /// Puts a new `frame` at the newest end of the main queue.
    #[inline(always)]
    pub fn admit(&mut self, frame: u32) {
        self.main.push_back(&mut self.links, frame);
    }

    /// Moves `frame` from any queue to the newest end of the main queue.
    #[inline(always)]
    pub fn renew(&mut self, frame: u32) {
        if self.main.back() != Some(frame) {
            self.remove(frame);
            self.main.push_back(&mut self.links, frame);
        }
    }

    /// Removes `frame` from any queue.
    #[inline(always)]
    pub fn remove(&mut self, frame: u32) {
        let place = &mut self.place[frame as usize];
        match std::mem::replace(place, FrameQueue::Main) {
            FrameQueue::Main => self.main.remove(&mut self.links, frame),
            FrameQueue::Retry => self.retry.remove(&mut self.links, frame),
            FrameQueue::Excluded => {}
        }
    }

    /// Offers frames, in turns, until the request is met; returns the number taken.
    #[inline(always)]
    pub fn evict<H: Host + ?Sized>(&mut self, request: &EvictRequest, host: &mut H) -> u32 {
        offer_from_queue(
            request,
            host,
            self,
            |queue| queue.candidate().map(FrameId),
            RetryQueue::taken,
            |queue, frame, why| queue.refused(frame.0, why),
            // A stack keeps it, since the pages below it are as new.
            |queue, frame| {
                if queue.end == End::Oldest {
                    queue.renew(frame.0);
                }
            },
        )
    }

    /// Unlinks a taken frame. It is a function because it must be inlined, which closures cannot
    /// request.
    #[inline(always)]
    fn taken(&mut self, frame: FrameId, _page: PageId) {
        self.remove(frame.0);
    }

    #[inline(always)]
    fn candidate(&mut self) -> Option<u32> {
        if !self.retry.is_empty() {
            self.take_turns();
        } else {
            self.on_retry = false;
        }
        self.checks = self.checks.saturating_add(1);
        match (self.on_retry, self.end) {
            (true, _) => self.retry.front(),
            (false, End::Oldest) => self.main.front(),
            (false, End::Newest) => self.main.back(),
        }
    }

    /// Changes the turn if it is over; the retry queue is not empty.
    #[cold]
    fn take_turns(&mut self) {
        let over = if self.on_retry {
            let all = self.retry_checks.frames_of(self.retry.len()).max(1);
            self.checks >= all && !self.main.is_empty()
        } else {
            let some = self.main_checks.frames_of(self.main.len()).max(1);
            self.checks >= some || self.main.is_empty()
        };
        if over {
            self.on_retry = !self.on_retry;
            self.checks = 0;
        }
    }

    #[cold]
    fn refused(&mut self, frame: u32, why: RefusalReason) {
        self.remove(frame);
        if why == RefusalReason::Permanent && self.permanent == Permanent::Excluded {
            self.place[frame as usize] = FrameQueue::Excluded;
        } else {
            self.retry.push_back(&mut self.links, frame);
            self.place[frame as usize] = FrameQueue::Retry;
        }
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.links.bytes() + self.place.capacity()
    }

    /// Verifies the invariants of the module.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        self.main.check(&self.links)?;
        self.retry.check(&self.links)?;
        let places = self.place.iter().enumerate();
        let mut held: Vec<u32> = self.main.iter(&self.links).collect();
        held.extend(places.filter(|(_, p)| **p != FrameQueue::Main).map(|(i, _)| i as u32));
        held.sort_unstable();
        if !held.iter().eq(resident.iter().map(|f| &f.0)) {
            return Err(format!("invariant 1: {held:?} are held, {resident:?} are resident"));
        }
        let waiting = self.place.iter().filter(|p| **p == FrameQueue::Retry).count();
        if waiting != self.retry.len() as usize {
            return Err(format!("invariant 2: {waiting} frames wait, {} do", self.retry.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHost;

    fn request(steps_max: u32) -> EvictRequest {
        EvictRequest { frames: 1, steps_max, now: 0, incoming: None }
    }

    /// Returns a host whose frames are all admitted, and all refused.
    fn filled(queue: &mut RetryQueue, frames: u32, why: RefusalReason) -> TestHost {
        let mut host = TestHost::new(frames);
        for (frame, slot) in (0..).zip(&mut host.frames) {
            queue.admit(frame);
            (slot.page, slot.refuse) = (Some(u64::from(frame)), Some(why));
        }
        host
    }

    /// All 300 frames are refused. The offers follow algorithm 1.1 with 1 % of the main queue and
    /// all of the retry queue.
    #[test]
    fn turns_are_one_percent_of_the_main_queue_then_all_of_the_retry_queue() {
        let (main, retry) = (Part::Times(0.01), Part::Times(1.0));
        let mut queue = RetryQueue::new(300, End::Oldest, Permanent::Excluded, main, retry);
        let mut host = filled(&mut queue, 300, RefusalReason::Pinned);
        assert_eq!(queue.evict(&request(12), &mut host), 0);
        // 1 % of the main queue's at most 299 frames, rounded down, is two looks at a time.
        assert_eq!(host.offered, [0, 1, 0, 1, 2, 3, 0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_only_frame_that_can_go_is_found_whatever_the_turns_are() {
        for (main, retry) in [(0.0, 0.0), (0.01, 1.0), (1.0, 0.5)] {
            for end in [End::Oldest, End::Newest] {
                let (main, retry) = (Part::Times(main), Part::Times(retry));
                let mut queue = RetryQueue::new(40, end, Permanent::Retried, main, retry);
                let mut host = filled(&mut queue, 40, RefusalReason::Dirty);
                assert_eq!(queue.evict(&request(200), &mut host), 0);
                host.frames[23].refuse = None;
                assert_eq!(
                    queue.evict(&request(2_000), &mut host),
                    1,
                    "{main:?} {retry:?} {end:?}"
                );
                assert_eq!(host.gone, [23]);
            }
        }
    }
}
