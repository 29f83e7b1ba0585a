//! Reuse distances: the number of other pages referenced between two references to one page.
//!
//! Distances are exact, by a Fenwick tree over the last positions of all pages (after Bennett and
//! Kruskal, 1975). The distance is the number of pages whose last position is after this page's.
//! When the positions run out, the pages are renumbered in order, so memory grows with the distinct
//! pages and not with the trace. A reference costs O(log pages).

use serde::Serialize;

/// References with distances in a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ReuseBucket {
    /// The least distance.
    pub from: u64,
    /// The largest distance.
    pub to: u64,
    /// Number of references.
    pub references: u64,
}

/// Distribution of reuse distances, in powers of two.
///
/// A page referenced twice in a row has distance 0. An LRU cache of c pages hits exactly the
/// references with a distance below c, so the sum of the buckets up to `to` = c − 1 is LRU's
/// number of hits at c = 1, 2, 4, 8, …
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ReuseHistogram {
    /// First references, which have no distance.
    pub first: u64,
    /// Buckets 0, 1, 2–3, 4–7, … up to the largest distance.
    pub buckets: Vec<ReuseBucket>,
}

/// Computes reuse distances.
pub(crate) struct Reuse {
    /// Fenwick tree over positions, where a position counts if it is a page's last one.
    tree: Vec<u32>,
    /// Page referenced at each position.
    owner: Vec<u32>,
    /// The last position of each page.
    last: Vec<u32>,
    next: u32,
    live: u32,
    first: u64,
    counts: [u64; 34],
}

const LEAST: usize = 1 << 16;

impl Default for Reuse {
    fn default() -> Reuse {
        Reuse {
            tree: vec![0; LEAST + 1],
            owner: vec![0; LEAST],
            last: Vec::new(),
            next: 0,
            live: 0,
            first: 0,
            counts: [0; 34],
        }
    }
}

impl Reuse {
    /// Takes a reference to page `number`, numbered by first appearance.
    pub(crate) fn touch(&mut self, number: u32, is_new: bool) {
        if self.next as usize == self.owner.len() {
            self.renumber();
        }
        if is_new {
            self.first += 1;
            self.live += 1;
            self.last.push(self.next);
        } else {
            let before = self.last[number as usize];
            let distance = self.live - self.up_to(before);
            self.counts[(32 - distance.leading_zeros()) as usize] += 1;
            self.add(before, u32::MAX);
            self.last[number as usize] = self.next;
        }
        self.add(self.next, 1);
        self.owner[self.next as usize] = number;
        self.next += 1;
    }

    /// Adds to a position; `u32::MAX` subtracts one.
    fn add(&mut self, position: u32, amount: u32) {
        let mut at = position as usize + 1;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(amount);
            at += at & at.wrapping_neg();
        }
    }

    /// Returns the number of last positions at or before `position`.
    fn up_to(&self, position: u32) -> u32 {
        let mut at = position as usize + 1;
        let mut sum = 0u32;
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        sum
    }

    /// Moves the pages to the first positions, in order, and leaves room for enough references to
    /// pay for the next renumbering.
    fn renumber(&mut self) {
        let room = (self.live as usize * 4).max(LEAST);
        let mut owner = Vec::with_capacity(room);
        for position in 0..self.next {
            let page = self.owner[position as usize];
            if self.last[page as usize] == position {
                self.last[page as usize] = owner.len() as u32;
                owner.push(page);
            }
        }
        self.next = owner.len() as u32;
        owner.resize(room, 0);
        self.owner = owner;
        self.tree.clear();
        self.tree.resize(room + 1, 0);
        // A Fenwick tree of ones in linear time: each node passes its sum to its parent.
        for at in 1..=room {
            self.tree[at] += u32::from(at <= self.next as usize);
            let parent = at + (at & at.wrapping_neg());
            if parent <= room {
                self.tree[parent] += self.tree[at];
            }
        }
    }

    pub(crate) fn histogram(&self) -> ReuseHistogram {
        let used = self.counts.iter().rposition(|c| *c > 0).map_or(0, |at| at + 1);
        let bucket = |(i, references): (usize, &u64)| {
            let (from, to) = if i == 0 { (0, 0) } else { (1 << (i - 1), (1u64 << i) - 1) };
            ReuseBucket { from, to, references: *references }
        };
        let buckets = self.counts[..used].iter().enumerate().map(bucket).collect();
        ReuseHistogram { first: self.first, buckets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_agree_with_counting_by_hand_through_many_renumberings() {
        let mut reuse = Reuse::default();
        let mut stack: Vec<u32> = Vec::new();
        let mut expected = [0u64; 34];
        let mut random = crate::generate::Random::new(millpond_base::Seed(5));
        for _ in 0..300_000 {
            // New pages must appear in the order of their numbers.
            let page = (random.unit().powi(3) * 400.0) as u32;
            let page = page.min(stack.len() as u32);
            match stack.iter().rposition(|p| *p == page) {
                Some(at) => {
                    let distance = (stack.len() - 1 - at) as u32;
                    expected[(32 - distance.leading_zeros()) as usize] += 1;
                    stack.remove(at);
                    reuse.touch(page, false);
                }
                None => reuse.touch(page, true),
            }
            stack.push(page);
        }
        assert_eq!(reuse.counts, expected);
        let histogram = reuse.histogram();
        assert_eq!(histogram.first, stack.len() as u64);
        let all: u64 = histogram.buckets.iter().map(|b| b.references).sum();
        assert_eq!(all + histogram.first, 300_000);
    }
}
