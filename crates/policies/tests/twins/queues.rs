//! MQ (USENIX 2001).

use std::collections::HashMap;

use crate::model::Outcome;

use super::twin::{Twin, missed, remove};

/// MQ: queues newest last; the clock counts references.
pub struct MqTwin {
    pub frames: usize,
    pub queues: Vec<Vec<u64>>,
    /// Queue of a count: its logarithm, or the count itself.
    pub log2: bool,
    pub life: u64,
    pub out_max: usize,
    pub out: Vec<u64>,
    /// Count and expiry of every page in a queue or in `out`.
    pub known: HashMap<u64, (u64, u64)>,
    pub now: u64,
}

impl MqTwin {
    pub fn new(frames: usize, queues: usize, log2: bool, life: u64, out_max: usize) -> MqTwin {
        let (queues, out, known) = (vec![Vec::new(); queues], Vec::new(), HashMap::new());
        MqTwin { frames, queues, log2, life, out_max, out, known, now: 0 }
    }

    fn evict(&mut self) -> u64 {
        let lowest = self.queues.iter_mut().find(|q| !q.is_empty());
        let victim = lowest.expect("a full pool").remove(0);
        self.out.push(victim);
        if self.out.len() > self.out_max {
            let forgotten = self.out.remove(0);
            self.known.remove(&forgotten);
        }
        victim
    }

    fn queue_of(&self, count: u64) -> usize {
        let rank = if self.log2 { u64::from(count.ilog2()) } else { count - 1 };
        (rank as usize).min(self.queues.len() - 1)
    }

    /// In each queue but the lowest, the page that waits longest sinks if it has expired.
    fn adjust(&mut self) {
        self.now += 1;
        for k in 1..self.queues.len() {
            let Some(&first) = self.queues[k].first() else { continue };
            let (_, expiry) = self.known.get_mut(&first).expect("a queued page is known");
            if *expiry < self.now {
                *expiry = self.now + self.life;
                self.queues[k].remove(0);
                self.queues[k - 1].push(first);
            }
        }
    }
}

impl Twin for MqTwin {
    fn reference(&mut self, page: u64, _: bool) -> Outcome {
        let was_there = self.queues.iter_mut().any(|q| remove(q, page));
        let mut outcome = Outcome::Hit;
        if !was_there {
            remove(&mut self.out, page);
            let is_full = self.queues.iter().map(Vec::len).sum::<usize>() == self.frames;
            outcome = missed(is_full.then(|| self.evict()));
        }
        let count = self.known.get(&page).map_or(0, |k| k.0) + 1;
        self.known.insert(page, (count, self.now + self.life));
        let queue = self.queue_of(count);
        self.queues[queue].push(page);
        self.adjust();
        outcome
    }
}
