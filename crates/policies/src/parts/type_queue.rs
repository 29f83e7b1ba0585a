//! The type queue (li 3.3.4), shared by `tq` and `tq-io`.
//!
//! Pages whose last request was a read wait in the *low* queue, by recency. Pages that were written
//! to leave the first tier wait in the *high* queue, by the predicted position of their next read:
//! the position of the first write since the last read, plus the mean distance between such writes
//! and the reads that followed. The *out queue* keeps these data for evicted pages, and drops the
//! page with the largest mean distance. Pages that the policy did not want, but got, are *unwanted*
//! and are evicted first.
//!
//! All pages are in one heap, whose key begins with the class, so victims of every class are found
//! in the same way. The write-aware order puts clean pages first (li 5.5.2).
//!
//! Invariants: (1) exactly the resident frames are ranked, (2) the class in a frame's key matches
//! its queue and its state, (3) the out queue never exceeds its bound.

use std::cmp::Reverse;

use millpond_base::{FrameId, PageId};

use super::ghosts::Ghosts;
use super::heap::Heap;
use super::hint::{ColdStart, Hint};
use super::position::Position;
use super::ranking::Ranking;
use crate::contract::{Access, EvictRequest, GhostHit, Host, Shape};

config! {
    /// The parameters of a type queue.
    pub struct TypeQueueConfig {
        /// Pages remembered after their eviction, in multiples of the cache.
        out: f64 = 1.0, in 0.0..=1000.0;
    }
}

/// No position, or an infinite distance.
const NEVER: u64 = u64::MAX;

/// The record of a page's writes and reads.
#[derive(Clone, Copy, Debug)]
struct Past {
    /// Position of the first positive write since the last read; `NEVER` if there is none.
    written: u64,
    /// Sum and number of distances from such a write to the read after it.
    sum: u64,
    count: u32,
}

const UNKNOWN: Past = Past { written: NEVER, sum: 0, count: 0 };

impl Past {
    fn distance(&self) -> u64 {
        if self.count == 0 { NEVER } else { self.sum / u64::from(self.count) }
    }

    /// Records a read at `now`.
    fn read(&mut self, now: u64) {
        if self.written != NEVER {
            self.sum = self.sum.saturating_add(now.saturating_sub(self.written));
            self.count = self.count.saturating_add(1);
            self.written = NEVER;
        }
    }

    /// Records a positive write at `now`; returns the expected position of the next read.
    fn write(&mut self, now: u64) -> u64 {
        if self.written == NEVER {
            self.written = now;
        }
        self.written.saturating_add(self.distance())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Queue {
    Unwanted,
    Low,
    High,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    class: u8,
    order: u64,
    sequence: u64,
}

#[derive(Clone, Copy)]
struct Page {
    past: Past,
    queue: Queue,
    is_dirty: bool,
}

/// The queues, and their records of each page.
pub struct TypeQueue {
    is_write_aware: bool,
    pages: Vec<Page>,
    ranking: Ranking<Key>,
    start: ColdStart,
    position: Position,
    sequence: u64,
    ghosts: Ghosts<Past>,
    out: Heap<(Reverse<u64>, u64)>,
    out_max: u64,
}

impl TypeQueue {
    /// Creates empty queues. `out` is the out queue's bound in multiples of the cache.
    pub fn new(is_write_aware: bool, out: f64, shape: &Shape) -> TypeQueue {
        let out_max = TypeQueue::out_max(out, shape.frames);
        let page = Page { past: UNKNOWN, queue: Queue::Low, is_dirty: false };
        TypeQueue {
            is_write_aware,
            pages: vec![page; shape.frames as usize],
            ranking: Ranking::new(shape.frames),
            start: ColdStart::new(shape.frames),
            position: Position::default(),
            sequence: 0,
            ghosts: Ghosts::new(shape.pages_dense, out_max.min(u64::from(shape.frames))),
            out: Heap::new(0),
            out_max,
        }
    }

    /// Returns the maximum number of pages in the out queue of a cache of `frames` frames.
    pub fn out_max(out: f64, frames: u32) -> u64 {
        (out * f64::from(frames)) as u64
    }

    fn class(&self, queue: Queue, is_dirty: bool) -> u8 {
        match (self.is_write_aware && is_dirty, self.is_write_aware, queue) {
            (false, _, Queue::Unwanted) => 0,
            (false, true, Queue::High) | (false, false, Queue::Low) => 1,
            (false, true, Queue::Low) | (false, false, Queue::High) => 2,
            (true, _, Queue::Unwanted) => 3,
            (true, _, Queue::Low) => 4,
            (true, _, Queue::High) => 5,
        }
    }

    /// Puts `frame` at the recent end of `queue`, or at the place of its next read, expected at
    /// `expected`.
    #[inline]
    fn place(&mut self, frame: u32, queue: Queue, expected: u64) {
        self.sequence += 1;
        let page = &mut self.pages[frame as usize];
        page.queue = queue;
        let class = self.class(queue, self.pages[frame as usize].is_dirty);
        // The least key is evicted first: the latest expected read, and among equals the longest
        // resident.
        let order = if queue == Queue::High { NEVER - expected } else { 0 };
        self.ranking.set(frame, Key { class, order, sequence: self.sequence });
    }

    /// Changes only the class of `frame`, to match its state.
    fn reclass(&mut self, frame: u32, is_dirty: bool) {
        let page = &mut self.pages[frame as usize];
        if page.is_dirty == is_dirty {
            return;
        }
        page.is_dirty = is_dirty;
        let class = self.class(self.pages[frame as usize].queue, is_dirty);
        if let Some(key) = self.ranking.key(frame)
            && key.class != class
        {
            self.ranking.set(frame, Key { class, ..key });
        }
    }

    /// Records a request of a resident page.
    #[inline]
    pub fn hit(&mut self, frame: FrameId, access: &Access) {
        let now = self.position.at(access.now);
        let hint = Hint::of(access.mark);
        if hint != Hint::Read {
            self.reclass(frame.0, true);
        }
        let page = &mut self.pages[frame.index()];
        match (hint, page.queue) {
            (Hint::Read, _) => {
                page.past.read(now);
                self.place(frame.0, Queue::Low, 0);
            }
            // In the high queue, only the first write since the last read counts.
            (Hint::Replace | Hint::Synch, Queue::High) | (Hint::Recov, _) => {}
            (Hint::Replace | Hint::Synch, _) => {
                let expected = page.past.write(now);
                self.place(frame.0, Queue::High, expected);
            }
        }
    }

    /// Returns `true` if a page that missed is worth a frame. A read is noted in the out queue.
    #[inline]
    pub fn wants(&mut self, access: &Access) -> bool {
        let now = self.position.at(access.now);
        let hint = Hint::of(access.mark);
        if hint == Hint::Read
            && let Some(node) = self.ghosts.find(access.page)
            && self.ghosts.memory(node).written != NEVER
        {
            self.ghosts.memory_mut(node).read(now);
            if self.out.remove(node).is_some() {
                self.line_up(node);
            }
        }
        hint.is_positive() || !self.start.is_over()
    }

    /// Takes the ghost of a missed page out of the out queue, and keeps it until the page is
    /// admitted.
    #[inline]
    pub fn miss(&mut self, access: &Access) -> GhostHit {
        self.wants(access);
        if let Some(node) = self.ghosts.find(access.page) {
            self.out.remove(node);
        }
        GhostHit::NONE
    }

    /// Admits a page.
    #[inline]
    pub fn admit(&mut self, frame: FrameId, access: &Access) {
        let now = self.position.at(access.now);
        let past = match self.ghosts.find(access.page) {
            Some(node) => {
                self.out.remove(node);
                self.ghosts.drop_loose(node).1
            }
            None => UNKNOWN,
        };
        let hint = Hint::of(access.mark);
        let is_dirty = hint != Hint::Read;
        self.pages[frame.index()] = Page { past, queue: Queue::Low, is_dirty };
        if hint.is_positive() {
            let expected = self.pages[frame.index()].past.write(now);
            self.place(frame.0, Queue::High, expected);
        } else if self.start.is_over() {
            self.place(frame.0, Queue::Unwanted, 0);
        } else {
            self.place(frame.0, Queue::Low, 0);
        }
        self.start.came();
    }

    /// Puts ghost `node` into the out queue.
    fn line_up(&mut self, node: u32) {
        self.sequence += 1;
        self.out.grow_to(node + 1);
        let distance = self.ghosts.memory(node).distance();
        self.out.set(node, (Reverse(distance), self.sequence));
    }

    /// Offers victims in order; returns the number taken.
    #[inline]
    pub fn evict<H: Host + ?Sized>(&mut self, request: &EvictRequest, host: &mut H) -> u32 {
        self.start.evicting();
        let mut ranking = std::mem::replace(&mut self.ranking, Ranking::new(0));
        let (taken, _steps) = ranking.evict(request, host, |frame, page| self.gone(frame, page));
        self.ranking = ranking;
        taken
    }

    fn gone(&mut self, frame: FrameId, page: PageId) {
        self.start.went();
        if self.out_max == 0 {
            return;
        }
        while self.out.len() as u64 >= self.out_max {
            let Some((_, node)) = self.out.pop() else { break };
            self.ghosts.drop_loose(node);
        }
        let node = self.ghosts.make(page, self.pages[frame.index()].past);
        self.line_up(node);
    }

    /// Removes the page in `frame` without leaving a ghost.
    pub fn forget(&mut self, frame: FrameId) {
        if self.ranking.remove(frame.0).is_some() {
            self.start.went();
        }
    }

    /// Records that the page in `frame` is clean now.
    #[inline]
    pub fn cleaned(&mut self, frame: FrameId) {
        self.reclass(frame.0, false);
    }

    /// Returns the number of pages in the low and in the high queue.
    pub fn lens(&self) -> (usize, usize) {
        let ranked = (0..self.pages.len()).filter(|f| self.ranking.key(*f as u32).is_some());
        let high = ranked.filter(|f| self.pages[*f].queue == Queue::High).count();
        (self.ranking.len() - high, high)
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.pages.capacity() * size_of::<Page>()
            + self.ranking.bytes()
            + self.ghosts.bytes()
            + self.out.bytes()
    }

    /// Verifies the invariants of the module for these resident frames.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        self.ranking.check()?;
        self.out.check()?;
        if resident.len() != self.ranking.len() {
            let ranked = self.ranking.len();
            return Err(format!("1: {ranked} frames are ranked, {} resident", resident.len()));
        }
        for frame in resident {
            let page = &self.pages[frame.index()];
            match self.ranking.key(frame.0) {
                None => return Err(format!("1: {frame:?} is not ranked")),
                Some(key) if key.class != self.class(page.queue, page.is_dirty) => {
                    return Err(format!(
                        "2: {frame:?} of {:?} has class {}",
                        page.queue, key.class
                    ));
                }
                Some(_) => {}
            }
        }
        if self.out.len() as u64 > self.out_max {
            return Err(format!("3: {} ghosts, at most {}", self.out.len(), self.out_max));
        }
        Ok(())
    }
}
