//! Frames in the order of their K-th last reference, with correlated references and history.
//!
//! The mechanism of the LRU-K family. A frame knows its last K references. Frames that know fewer
//! are *below* and are evicted first. The others are in a heap by their K-th last reference. The
//! heap is lazy: a hit writes only the frame's own stamps, and an old key is updated when it
//! reaches the top. Keys never fall, so the least true key is found.
//!
//! References that follow each other closely are one reference (the correlated reference period
//! of O'Neil et al.): a frame in its period waits in a list by recency, is spared, and its
//! references count once. A page's references may be remembered after its eviction (the retained
//! history).
//!
//! Invariants: (1) a resident frame is in the period's list, below, or in the heap; (2) frames in
//! the heap know K references and those below fewer; (3) a key in the heap is not above the
//! frame's K-th last reference; (4) no more ghosts than allowed, except for one that is being
//! loaded.

use millpond_base::{FrameId, PageId};

use super::list::{Links, List};
use super::{Ghosts, Heap};
use crate::contract::{EvictRequest, Host, Shape};
use crate::zeroed::zeroed;

/// The order among frames that know fewer than K references.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Below {
    /// The frame that was loaded first is evicted first.
    Fifo,
    /// The frame that was referenced least recently is evicted first.
    Lru,
}

/// References that are correlated with the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Period {
    /// References at most this number of references after the one before; 0 for none.
    References(u64),
    /// References to this number of most recently referenced pages; 0 for none.
    Pages(u32),
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum FrameState {
    Out = 0,
    Recent,
    Below,
    Heap,
}

zeros!(enum FrameState::Out);

/// Retained history of evicted pages: up to K − 1 references each, oldest eviction first. Without
/// a limit, no order is kept.
struct History {
    ghosts: Ghosts<u8>,
    stamps: Vec<u64>,
    order: List,
    most: u64,
}

/// The order of K-th last references.
pub struct Kth {
    k: usize,
    order_below: Below,
    period: Period,
    clock: u64,
    stamps: Vec<u64>,
    known: Vec<u8>,
    last: Vec<u64>,
    place: Vec<FrameState>,
    links: Links,
    recent: List,
    below: List,
    heap: Heap<u64>,
    history: Option<History>,
}

impl Kth {
    /// Creates an empty order that keeps `k` references, 1 to 255, of each frame, and at most
    /// `history` ghosts.
    pub fn new(shape: &Shape, k: u8, order_below: Below, period: Period, history: u64) -> Kth {
        let (k, frames) = (usize::from(k.max(1)), shape.frames as usize);
        let has_period = !matches!(period, Period::References(0) | Period::Pages(0));
        let history = (history > 0 && k > 1).then(|| History {
            ghosts: Ghosts::new(shape.pages_dense, history.min(u64::from(shape.frames))),
            stamps: Vec::new(),
            order: List::new(),
            most: history,
        });
        Kth {
            k,
            order_below,
            period: if has_period { period } else { Period::References(0) },
            clock: 0,
            stamps: vec![0; frames * k],
            known: vec![0; frames],
            last: vec![0; if has_period { frames } else { 0 }],
            place: zeroed(frames),
            links: Links::new(shape.frames),
            recent: List::new(),
            below: List::new(),
            heap: Heap::new(shape.frames),
            history,
        }
    }

    #[inline(always)]
    fn has_period(&self) -> bool {
        self.period != Period::References(0)
    }

    #[inline(always)]
    fn kth(&self, frame: u32) -> u64 {
        self.stamps[frame as usize * self.k + self.k - 1]
    }

    /// Records a reference at the present time. `held` is the length of the correlated period
    /// that ends with it. Older references move up by that length, as if the period had been a
    /// point.
    #[inline(always)]
    fn record(&mut self, frame: u32, held: u64) {
        let (at, k) = (frame as usize, self.k);
        let stamps = &mut self.stamps[at * k..(at + 1) * k];
        for i in (1..k).rev() {
            stamps[i] = stamps[i - 1] + held;
        }
        stamps[0] = self.clock;
        self.known[at] = (self.known[at] + 1).min(k as u8);
    }

    /// Records a reference to a resident frame.
    #[inline(always)]
    pub fn hit(&mut self, frame: u32) {
        self.clock += 1;
        if self.has_period() {
            return self.hit_with_period(frame);
        }
        self.record(frame, 0);
        if self.place[frame as usize] == FrameState::Below {
            if usize::from(self.known[frame as usize]) == self.k {
                self.below.remove(&mut self.links, frame);
                self.settle(frame);
            } else if self.order_below == Below::Lru {
                self.below.move_to_back(&mut self.links, frame);
            }
        }
    }

    fn hit_with_period(&mut self, frame: u32) {
        let at = frame as usize;
        let last = std::mem::replace(&mut self.last[at], self.clock);
        let correlated = self.place[at] == FrameState::Recent
            && match self.period {
                Period::References(most) => self.clock - last <= most,
                Period::Pages(_) => true,
            };
        if correlated {
            return self.recent.move_to_back(&mut self.links, frame);
        }
        self.remove(frame);
        self.record(frame, last - self.stamps[at * self.k]);
        self.enter_period(frame);
    }

    /// Puts a frame whose reference was just recorded into its correlated period.
    fn enter_period(&mut self, frame: u32) {
        self.place[frame as usize] = FrameState::Recent;
        self.last[frame as usize] = self.clock;
        self.recent.push_back(&mut self.links, frame);
        if let Period::Pages(most) = self.period
            && self.recent.len() > most
        {
            self.leave_period();
        }
    }

    fn leave_period(&mut self) {
        if let Some(out) = self.recent.pop_front(&mut self.links) {
            self.settle(out);
        }
    }

    /// Puts a frame that is nowhere below or into the heap.
    #[inline(always)]
    fn settle(&mut self, frame: u32) {
        if usize::from(self.known[frame as usize]) < self.k {
            self.below.push_back(&mut self.links, frame);
            self.place[frame as usize] = FrameState::Below;
        } else {
            self.heap.set(frame, self.kth(frame));
            self.place[frame as usize] = FrameState::Heap;
        }
    }

    /// Records a miss: the page's ghost, if it has one, will not be dropped next.
    #[inline(always)]
    pub fn miss(&mut self, page: PageId) {
        if let Some(history) = &mut self.history
            && history.is_bounded()
            && let Some(ghost) = history.ghosts.find(page)
        {
            history.order.move_to_back(&mut history.ghosts.links, ghost);
        }
    }

    /// Records that `page` was loaded into `frame`, which is a reference.
    #[inline(always)]
    pub fn admit(&mut self, frame: u32, page: PageId) {
        self.clock += 1;
        self.known[frame as usize] = 0;
        self.ghost_hit(frame, page);
        self.record(frame, 0);
        if self.has_period() {
            self.enter_period(frame);
        } else {
            self.settle(frame);
        }
    }

    #[inline(always)]
    fn ghost_hit(&mut self, frame: u32, page: PageId) {
        let Some(history) = &mut self.history else { return };
        if let Some(ghost) = history.ghosts.find(page) {
            let width = self.k - 1;
            let (from, to) = (ghost as usize * width, frame as usize * self.k);
            self.stamps[to..to + width].copy_from_slice(&history.stamps[from..from + width]);
            self.known[frame as usize] = *history.ghosts.memory(ghost);
            if history.is_bounded() {
                history.order.remove(&mut history.ghosts.links, ghost);
            }
            history.ghosts.drop_loose(ghost);
        }
        history.trim(0);
    }

    /// Removes `frame` without remembering its page.
    #[inline(always)]
    pub fn remove(&mut self, frame: u32) {
        match std::mem::replace(&mut self.place[frame as usize], FrameState::Out) {
            FrameState::Recent => self.recent.remove(&mut self.links, frame),
            FrameState::Below => self.below.remove(&mut self.links, frame),
            FrameState::Heap => _ = self.heap.remove(frame),
            FrameState::Out => {}
        }
    }

    /// Offers frames until the request is met; returns the number taken. A refusal is a
    /// reference.
    #[inline(always)]
    pub fn evict<H: Host + ?Sized>(&mut self, request: &EvictRequest, host: &mut H) -> u32 {
        let (mut taken, mut steps) = (0, 0);
        while taken < request.frames && steps < request.steps_max {
            steps += 1;
            let Some((victim, is_true)) = self.candidate() else { break };
            if !is_true {
                self.heap.set(victim, self.kth(victim));
                continue;
            }
            match host.take(FrameId(victim)) {
                Ok((frame, page)) => {
                    self.remove(frame.0);
                    self.remember(frame.0, page, request);
                    taken += 1;
                }
                Err(_why) => self.hit(victim),
            }
        }
        taken
    }

    /// Returns the next victim, or the top of the heap, with `false`, if its key must be updated.
    #[inline(always)]
    fn candidate(&mut self) -> Option<(u32, bool)> {
        if self.has_period() {
            self.end_periods();
        }
        if let Some(frame) = self.below.front() {
            return Some((frame, true));
        }
        match self.heap.least() {
            Some((key, frame)) => Some((frame, key == self.kth(frame))),
            // All are in their period, so the one with the oldest last reference.
            None => self.recent.front().map(|frame| (frame, true)),
        }
    }

    /// Settles the frames whose period is over at the next reference.
    fn end_periods(&mut self) {
        let Period::References(most) = self.period else { return };
        while let Some(oldest) = self.recent.front()
            && self.clock + 1 - self.last[oldest as usize] > most
        {
            self.leave_period();
        }
    }

    #[inline(always)]
    fn remember(&mut self, frame: u32, page: PageId, request: &EvictRequest) {
        let Some(history) = &mut self.history else { return };
        let (at, width) = (frame as usize * self.k, self.k - 1);
        let known = self.known[frame as usize].min(width as u8);
        let node = history.ghosts.make(page, known);
        let ghost = node as usize;
        if (ghost + 1) * width > history.stamps.len() {
            history.stamps.resize((ghost + 1) * width, 0);
        }
        history.stamps[ghost * width..(ghost + 1) * width]
            .copy_from_slice(&self.stamps[at..at + width]);
        if history.is_bounded() {
            history.order.push_back(&mut history.ghosts.links, node);
            let coming = request.incoming.is_some_and(|(p, _)| history.ghosts.find(p).is_some());
            history.trim(u64::from(coming));
        }
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        let history = self.history.as_ref().map_or(0, History::bytes);
        let frames = self.known.capacity() + self.place.capacity() + self.last.capacity() * 8;
        self.stamps.capacity() * 8 + frames + self.links.bytes() + self.heap.bytes() + history
    }

    /// Verifies the invariants of the module.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        self.recent.check(&self.links)?;
        self.below.check(&self.links)?;
        self.heap.check()?;
        for (frame, place) in self.place.iter().enumerate() {
            let (frame, knows_all) = (frame as u32, usize::from(self.known[frame]) == self.k);
            if (*place != FrameState::Out) != resident.binary_search(&FrameId(frame)).is_ok() {
                return Err(format!("invariant 1: frame {frame}"));
            }
            let key = self.heap.key(frame);
            if key.is_some() != (*place == FrameState::Heap)
                || (*place == FrameState::Heap && !knows_all)
                || (*place == FrameState::Below && knows_all)
            {
                return Err(format!("invariant 2: frame {frame}"));
            }
            if key.is_some_and(|key| key > self.kth(frame)) {
                return Err(format!("invariant 3: frame {frame}"));
            }
        }
        let listed = self.recent.len() as usize + self.below.len() as usize + self.heap.len();
        if listed != resident.len() {
            return Err(format!("invariant 1: {listed} listed, {} resident", resident.len()));
        }
        match &self.history {
            Some(h) if h.ghosts.len() as u64 > h.most.saturating_add(1) => {
                Err(format!("invariant 4: {} ghosts", h.ghosts.len()))
            }
            _ => Ok(()),
        }
    }
}

impl History {
    #[inline(always)]
    fn is_bounded(&self) -> bool {
        self.most != u64::MAX
    }

    /// Drops ghosts beyond the limit and `spare` more.
    #[inline(always)]
    fn trim(&mut self, spare: u64) {
        while self.ghosts.len() as u64 > self.most.saturating_add(spare) {
            self.ghosts.drop_front(&mut self.order);
        }
    }

    fn bytes(&self) -> usize {
        self.ghosts.bytes() + self.stamps.capacity() * 8
    }
}
