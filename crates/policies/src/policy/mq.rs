//! `mq`: LRU queues by rank of use; pages that rest too long sink.
//!
//! **Idea** — Below another cache, recency is spent: the frequency of a page's requests counts,
//! unless they are too long ago. Keep a queue for each rank of frequency, let a page that is not
//! used for a life time sink by one queue, and remember the counts of evicted pages.
//!
//! **Source** — Zhou, Philbin & Li, USENIX 2001; li 3.3.3.
//!
//! **State** — The queues over the frames, oldest at the front; beside each frame its queue, count
//! and time of expiry; the out queue of ghosts with their counts; a clock of references.
//!
//! **Invariants** — (1) The queues together hold exactly the resident frames. (2) No queue below
//! `lowest` holds a frame. (3) The out queue is at most `out` times the pool.
//!
//! **Cost** — Hit: relink, central. Miss: one lookup among the ghosts. Each reference examines the
//! queues' fronts only when one may have expired, by a lower bound of all expiries. Evict: unlink,
//! one ghost, O(1) amortised. 25 bytes per frame, 28 per ghost.
//!
//! **Deviations** — None from the source. A refused frame moves to the end of its queue; a queue
//! whose frames were all refused is skipped. With `queues=8,rank=log2,life=10000,out=4`, and with
//! `life=75,out=0.5`, hits equal libCacheSim's in every cell. The Caffeine simulator differs by up
//! to 0.04 % and, with the short life, 1.8 %.
//!
//! **Defaults** — `queues=80`, `rank=linear`, `life=20000000`, `out=1x`: li 3.3.3. The source has
//! 8 queues, log2 and a longer out queue.

use millpond_base::{FrameId, PageId};

use crate::config::Multiple;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Ghosts, Links, List};
use crate::zeroed::zeroed;

choice! {
    /// The queue that a count belongs to.
    pub enum Rank {
        /// Queue k, from 1, for count k.
        Linear = "linear",
        /// Queue k, from 0, for counts from 2^k.
        Log2 = "log2",
    }
}

config! {
    /// Parameters of [`Mq`].
    pub struct MqConfig {
        /// Number of queues.
        queues: u32 = 80, in 1..=255;
        /// The queue for each count; the last queue takes all higher counts.
        rank: Rank = Rank::Linear;
        /// References to other pages after which a page sinks by one queue.
        life: u64 = 20_000_000, in 1..=1_u64 << 62, counts references;
        /// Evicted pages with remembered counts.
        out: Multiple = Multiple(1.0);
    }
}

#[derive(Clone, Copy, Default)]
struct Resident {
    expires: u64,
    count: u32,
}

zeros!(Resident { expires, count });

/// Multi-queue.
pub struct Mq {
    rank: Rank,
    life: u64,
    out_max: u64,
    now: u64,
    /// Lower bound of the expiries of all fronts above the first queue.
    none_before: u64,
    links: Links,
    queues: Vec<List>,
    lowest: usize,
    queue_of: Vec<u8>,
    residents: Vec<Resident>,
    ghosts: Ghosts<u32>,
    out: List,
}

impl Mq {
    #[inline(always)]
    fn queue_for(&self, count: u32) -> usize {
        let rank = match self.rank {
            Rank::Linear => count.max(1) - 1,
            Rank::Log2 => count.max(1).ilog2(),
        };
        (rank as usize).min(self.queues.len() - 1)
    }

    #[inline(always)]
    fn push(&mut self, queue: usize, frame: u32) {
        self.residents[frame as usize].expires = self.now + self.life;
        self.queue_of[frame as usize] = queue as u8;
        self.queues[queue].push_back(&mut self.links, frame);
        self.lowest = self.lowest.min(queue);
    }

    /// Removes `frame` from its queue.
    #[inline(always)]
    fn unlink(&mut self, frame: FrameId) {
        let queue = usize::from(self.queue_of[frame.index()]);
        self.queues[queue].remove(&mut self.links, frame.0);
    }

    /// Ends a reference: time advances, and the front of each queue sinks if it expired.
    #[inline(always)]
    fn adjust(&mut self) {
        self.now += 1;
        if self.none_before < self.now {
            self.sink();
        }
    }

    fn sink(&mut self) {
        for queue in 1..self.queues.len() {
            if let Some(front) = self.queues[queue].front()
                && self.residents[front as usize].expires < self.now
            {
                self.queues[queue].remove(&mut self.links, front);
                self.push(queue - 1, front);
            }
        }
        let fronts = self.queues[1..].iter().filter_map(List::front);
        let earliest = fronts.map(|f| self.residents[f as usize].expires).min();
        self.none_before = earliest.unwrap_or(self.now + self.life);
    }

    /// Returns the first queue from `queue` on that holds a frame.
    #[inline(always)]
    fn filled_from(&self, queue: usize) -> Option<usize> {
        (queue..self.queues.len()).find(|&q| !self.queues[q].is_empty())
    }
}

impl PolicySpec for Mq {
    const INFO: Info = Info {
        id: "mq",
        summary: "LRU queues by rank of frequency, from which resting pages sink",
        family: Family::Mixed,
        class: Class::Three,
        age: Age::Last,
        references: References::All,
        tier: Tier::First,
        live: true,
        frame_bytes: 25.0,
        ghost_bytes: 28.0,
        source: "Zhou et al. USENIX 2001, li 3.3.3",
    };
    type Hook = CentralHook;
    type Config = MqConfig;

    fn new(config: &MqConfig, shape: &Shape) -> Mq {
        let out_max = config.out.of(shape.frames);
        Mq {
            rank: config.rank,
            life: config.life,
            out_max,
            now: 0,
            none_before: config.life,
            links: Links::new(shape.frames),
            queues: vec![List::new(); config.queues as usize],
            lowest: 0,
            queue_of: vec![0; shape.frames as usize],
            residents: zeroed(shape.frames as usize),
            ghosts: Ghosts::new(shape.pages_dense, out_max.min(4 * u64::from(shape.frames)) + 1),
            out: List::new(),
        }
    }

    fn ghosts_max(config: &MqConfig, frames: u32) -> u64 {
        config.out.of(frames)
    }

    #[inline(always)]
    fn will_reference(&self, page: PageId) {
        self.ghosts.prefetch(page);
    }

    fn state_bytes(&self) -> usize {
        self.links.bytes()
            + self.queues.len() * size_of::<List>()
            + self.queue_of.len()
            + self.residents.len() * size_of::<Resident>()
            + self.ghosts.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.queues.iter().try_for_each(|q| q.check(&self.links))?;
        let queued: u32 = self.queues.iter().map(List::len).sum();
        if queued as usize != resident.len() {
            return Err(format!("invariant 1: {queued} queued, {} resident", resident.len()));
        }
        if self.queues[..self.lowest].iter().any(|q| !q.is_empty()) {
            return Err(format!("invariant 2: a frame is below queue {}", self.lowest));
        }
        if self.ghosts.len() as u64 > self.out_max {
            return Err(format!("invariant 3: {} ghosts", self.ghosts.len()));
        }
        Ok(())
    }
}

impl Policy for Mq {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, _access: &Access) {
        self.unlink(frame);
        let count = self.residents[frame.index()].count.saturating_add(1);
        self.residents[frame.index()].count = count;
        self.push(self.queue_for(count), frame.0);
        self.adjust();
    }

    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        match self.ghosts.find(access.page) {
            Some(ghost) => GhostHit(self.ghosts.drop_from(&mut self.out, ghost).1),
            None => GhostHit::NONE,
        }
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        _access: &Access,
        ghost_hit: GhostHit,
    ) {
        let count = ghost_hit.0.saturating_add(1);
        self.residents[frame.index()].count = count;
        self.push(self.queue_for(count), frame.0);
        self.adjust();
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let (mut taken, mut steps, mut refused) = (0, 0, 0);
        self.lowest = self.filled_from(self.lowest).unwrap_or(0);
        let mut from = self.lowest;
        while taken < request.frames && steps < request.steps_max {
            if refused >= self.queues[from].len() {
                let Some(next) = self.filled_from(from + 1) else { break };
                (from, refused) = (next, 0);
            }
            let Some(victim) = self.queues[from].front() else { break };
            steps += 1;
            match host.take(FrameId(victim)) {
                Ok((frame, page)) => {
                    taken += 1;
                    self.unlink(frame);
                    if self.out_max > 0 {
                        let count = self.residents[frame.index()].count;
                        self.ghosts.push(&mut self.out, page, count);
                        if self.ghosts.len() as u64 > self.out_max {
                            self.ghosts.drop_front(&mut self.out);
                        }
                    }
                }
                Err(_why) => {
                    self.queues[from].move_to_back(&mut self.links, victim);
                    refused += 1;
                }
            }
        }
        taken
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.unlink(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Lru;
    use crate::testing::{TestPool, survives_everything};

    #[test]
    fn the_lowest_queue_gives_and_counts_survive_eviction() {
        let mut pool = TestPool::<Mq>::of("mq", 3);
        pool.run([1, 1, 1, 2, 2, 3, 4]);
        assert_eq!(pool.pages(), [1, 2, 4]);
        // 3 comes back with a count of 2: above 4, beside 2.
        pool.run([3, 5]);
        assert_eq!(pool.pages(), [1, 3, 5]);
    }

    #[test]
    fn what_rests_sinks_queue_by_queue() {
        let mut pool = TestPool::<Mq>::of("mq(life=4)", 3);
        pool.run([1, 1, 1]);
        for page in 10..30 {
            pool.reference(page);
        }
        assert!(!pool.reference(1));
    }

    #[test]
    fn with_one_queue_it_is_lru() {
        let mut rng = fastrand::Rng::with_seed(2);
        let (mut mq, mut lru) =
            (TestPool::<Mq>::of("mq(queues=1)", 7), TestPool::<Lru>::of("lru", 7));
        for _ in 0..3_000 {
            let page = rng.u64(0..15);
            assert_eq!(mq.reference(page), lru.reference(page));
        }
    }

    #[test]
    fn refusals_drops_and_tiny_pools_break_nothing() {
        for spec in ["mq", "mq(queues=8,rank=log2,life=3,out=4)", "mq(out=0,life=1)", "mq(out=0.5)"]
        {
            survives_everything::<Mq>(spec);
        }
    }
}
