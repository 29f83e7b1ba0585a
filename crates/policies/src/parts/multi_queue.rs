//! The multi-queue of pages by frequency, with its out queue (li 3.3.3), shared by `t2-mq` and
//! `mq-hints`.
//!
//! Queue *k* holds pages of similar frequency, least recent at the front. A page that was not
//! used for `life` requests sinks one queue. The out queue remembers the counts of evicted pages.
//!
//! Invariants: (1) a resident frame is in exactly one queue, (2) within a queue above the lowest,
//! expiry times ascend from the front, and none is before `due`, (3) a bit of `occupied` is set
//! exactly for the queues that are not empty, (4) the out queue never exceeds its bound.

use millpond_base::{FrameId, PageId};

use super::ghosts::Ghosts;
use super::list::{Links, List};
use super::position::Position;
use crate::contract::{Access, EvictRequest, GhostHit, Host, Shape};

choice! {
    /// The queue that a page of frequency *f* belongs to.
    pub enum Rank {
        /// Queue *f*: one frequency each, the rest in the last one (li 3.3.3).
        Linear = "linear",
        /// Queue log₂ *f*, as MQ was published.
        Log2 = "log2",
    }
}

config! {
    /// The parameters of a multi-queue.
    pub struct MultiQueueConfig {
        /// Number of queues.
        queues: u32 = 80, in 1..=4096;
        /// The queue for each frequency.
        rank: Rank = Rank::Linear;
        /// Requests without use after which a page sinks one queue.
        life: u64 = 20_000_000, in 1..=1_000_000_000_000_000, counts references;
        /// Pages remembered after their eviction, in multiples of the cache.
        out: f64 = 1.0, in 0.0..=1000.0;
    }
}

impl MultiQueueConfig {
    /// Returns the maximum number of pages in the out queue of a cache of `frames` frames.
    pub fn out_max(&self, frames: u32) -> u64 {
        (self.out * f64::from(frames)) as u64
    }
}

/// Queue number of a frame that is in no queue.
const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Entry {
    expires: u64,
    count: u32,
    queue: u32,
}

/// The queues, the out queue, and the records of each frame.
pub struct MultiQueue {
    queues: Vec<List>,
    occupied: Vec<u64>,
    links: Links,
    entries: Vec<Entry>,
    rank: Rank,
    life: u64,
    /// Lower bound of all expiry times.
    due: u64,
    position: Position,
    ghosts: Ghosts<u32>,
    out: List,
    out_max: u64,
    aside: Vec<(u32, u32)>,
}

impl MultiQueue {
    /// Creates empty queues.
    pub fn new(config: &MultiQueueConfig, shape: &Shape) -> MultiQueue {
        let queues = config.queues.max(1) as usize;
        let out_max = config.out_max(shape.frames);
        let nowhere = Entry { expires: 0, count: 0, queue: NOWHERE };
        MultiQueue {
            queues: vec![List::new(); queues],
            occupied: vec![0; queues.div_ceil(64)],
            links: Links::new(shape.frames),
            entries: vec![nowhere; shape.frames as usize],
            rank: config.rank,
            life: config.life,
            due: u64::MAX,
            position: Position::default(),
            ghosts: Ghosts::new(shape.pages_dense, out_max.min(u64::from(shape.frames))),
            out: List::new(),
            out_max,
            aside: Vec::new(),
        }
    }

    /// Returns the number of pages in the queues.
    pub fn len(&self) -> u32 {
        self.queues.iter().map(List::len).sum()
    }

    /// Returns `true` if all queues are empty.
    pub fn is_empty(&self) -> bool {
        self.occupied.iter().all(|word| *word == 0)
    }

    fn queue_of(&self, count: u32) -> u32 {
        let rank = match self.rank {
            Rank::Linear => count.saturating_sub(1),
            Rank::Log2 => count.max(1).ilog2(),
        };
        rank.min(self.queues.len() as u32 - 1)
    }

    fn push(&mut self, frame: u32, queue: u32) {
        self.queues[queue as usize].push_back(&mut self.links, frame);
        self.occupied[queue as usize / 64] |= 1 << (queue % 64);
        self.entries[frame as usize].queue = queue;
    }

    fn unlink(&mut self, frame: u32) {
        let queue = self.entries[frame as usize].queue;
        if queue != NOWHERE {
            let list = &mut self.queues[queue as usize];
            list.remove(&mut self.links, frame);
            if list.is_empty() {
                self.occupied[queue as usize / 64] &= !(1 << (queue % 64));
            }
            self.entries[frame as usize].queue = NOWHERE;
        }
    }

    fn enter(&mut self, frame: u32, count: u32, now: u64) {
        let expires = now.saturating_add(self.life);
        self.entries[frame as usize] = Entry { expires, count, queue: NOWHERE };
        self.due = self.due.min(expires);
        self.push(frame, self.queue_of(count));
    }

    /// Records a use: the page rises, and others may sink.
    #[inline]
    pub fn hit(&mut self, frame: FrameId, access: &Access) {
        let now = self.position.at(access.now);
        let count = self.entries[frame.index()].count.saturating_add(1);
        self.unlink(frame.0);
        self.enter(frame.0, count, now);
        self.sink(now);
    }

    /// Admits a page; `ghost_hit` holds its earlier number of uses.
    #[inline]
    pub fn admit(&mut self, frame: FrameId, access: &Access, ghost_hit: GhostHit) {
        let now = self.position.at(access.now);
        self.enter(frame.0, ghost_hit.0.saturating_add(1), now);
        self.sink(now);
    }

    /// Admits an unwanted page in the next victim's place, as unused.
    pub fn admit_as_victim(&mut self, frame: FrameId, ghost_hit: GhostHit) {
        self.entries[frame.index()] = Entry { expires: u64::MAX, count: ghost_hit.0, queue: 0 };
        self.queues[0].push_front(&mut self.links, frame.0);
        self.occupied[0] |= 1;
    }

    /// Removes a returning page from the out queue and returns its entry.
    #[inline]
    pub fn ghost_hit(&mut self, page: PageId) -> GhostHit {
        match self.ghosts.find(page) {
            Some(node) => GhostHit(self.ghosts.drop_from(&mut self.out, node).1),
            None => GhostHit::NONE,
        }
    }

    /// Lets the first page of each queue sink if it has expired.
    #[inline(always)]
    fn sink(&mut self, now: u64) {
        if now > self.due {
            self.sink_due(now);
        }
    }

    fn sink_due(&mut self, now: u64) {
        self.due = u64::MAX;
        for queue in 1..self.queues.len() {
            let Some(first) = self.queues[queue].front() else { continue };
            if self.entries[first as usize].expires < now {
                self.unlink(first);
                self.entries[first as usize].expires = now.saturating_add(self.life);
                self.push(first, queue as u32 - 1);
            }
        }
        for list in &self.queues[1..] {
            if let Some(first) = list.front() {
                self.due = self.due.min(self.entries[first as usize].expires);
            }
        }
    }

    fn lowest(&self) -> Option<u32> {
        let (word, bits) = self.occupied.iter().enumerate().find(|(_, bits)| **bits != 0)?;
        self.queues[word * 64 + bits.trailing_zeros() as usize].front()
    }

    /// Offers the least recent pages of the lowest queues; returns the number taken. A refused
    /// page moves to the back of its queue.
    #[inline]
    pub fn evict<H: Host + ?Sized>(
        &mut self,
        request: &EvictRequest,
        host: &mut H,
        mut gone: impl FnMut(FrameId),
    ) -> u32 {
        let (mut taken, mut steps) = (0, 0);
        while taken < request.frames && steps < request.steps_max {
            let Some(victim) = self.lowest() else { break };
            steps += 1;
            match host.take(FrameId(victim)) {
                Ok((frame, page)) => {
                    if self.entries[frame.index()].queue == NOWHERE {
                        self.aside.retain(|(_, f)| *f != frame.0);
                    }
                    self.unlink(frame.0);
                    self.remember(page, self.entries[frame.index()].count);
                    taken += 1;
                    gone(frame);
                }
                Err(_why) => {
                    self.aside.push((self.entries[victim as usize].queue, victim));
                    self.unlink(victim);
                }
            }
        }
        self.restore();
        taken
    }

    fn restore(&mut self) {
        for at in 0..self.aside.len() {
            let (queue, frame) = self.aside[at];
            // Only pages that expire last move to the back of a queue.
            let expires = self.position.now().saturating_add(self.life);
            self.entries[frame as usize].expires = expires;
            self.due = self.due.min(expires);
            self.push(frame, queue);
        }
        self.aside.clear();
    }

    fn remember(&mut self, page: PageId, count: u32) {
        if self.out_max == 0 {
            return;
        }
        while u64::from(self.out.len()) >= self.out_max {
            self.ghosts.drop_front(&mut self.out);
        }
        self.ghosts.push(&mut self.out, page, count);
    }

    /// Removes the page in `frame` without leaving a ghost.
    pub fn forget(&mut self, frame: FrameId) {
        self.unlink(frame.0);
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.queues.capacity() * size_of::<List>()
            + self.occupied.capacity() * 8
            + self.links.bytes()
            + self.entries.capacity() * size_of::<Entry>()
            + self.ghosts.bytes()
    }

    /// Verifies the invariants of the module for these resident frames.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        let mut inside = 0;
        for (queue, list) in self.queues.iter().enumerate() {
            list.check(&self.links)?;
            let mut last = 0;
            for frame in list.iter(&self.links) {
                let Entry { expires, queue: at, .. } = self.entries[frame as usize];
                inside += 1;
                if at as usize != queue {
                    return Err(format!("1: frame {frame} thinks itself in queue {at}"));
                }
                if queue > 0 && (expires < last || expires < self.due) {
                    return Err(format!("2: frame {frame} of queue {queue} expires too early"));
                }
                last = expires;
            }
            if (self.occupied[queue / 64] >> (queue % 64) & 1 == 1) == list.is_empty() {
                return Err(format!("3: the bit of queue {queue} is wrong"));
            }
        }
        if inside != resident.len() {
            return Err(format!("1: {inside} frames are queued, {} resident", resident.len()));
        }
        if u64::from(self.out.len()) > self.out_max || self.out.len() as usize != self.ghosts.len()
        {
            return Err(format!("4: {} ghosts, at most {}", self.ghosts.len(), self.out_max));
        }
        Ok(())
    }
}
