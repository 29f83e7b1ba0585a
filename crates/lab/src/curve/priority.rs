//! Mattson's priority stack, for stack algorithms that do not order pages by recency.
//!
//! Position *i* of the stack holds the page that a cache of *i* frames has and a cache of *i*−1
//! frames lacks. On a reference the page moves to the top, and the former top is carried down. At
//! each position the page that the policy would rather evict is carried on, until the referenced
//! page's former position is reached. Only positions with a page more evictable than the carried
//! one change. A tree of maxima finds them without a look at the others.

/// A page's rank among candidates: the page with the greatest rank is evicted first. A page's rank
/// changes only when the page itself is referenced.
pub type Rank = u64;

/// The stack of one policy.
pub struct PriorityStack {
    /// The page at each position.
    pages: Vec<u32>,
    /// Greatest rank below each node of a binary tree over positions; the leaves begin at `leaves`.
    tree: Vec<Rank>,
    leaves: usize,
    place: Vec<u32>,
    counts: Vec<u64>,
    references: u64,
}

const NONE: u32 = u32::MAX;

impl Default for PriorityStack {
    fn default() -> Self {
        PriorityStack::new()
    }
}

impl PriorityStack {
    /// Returns an empty stack.
    pub fn new() -> PriorityStack {
        PriorityStack {
            pages: Vec::new(),
            tree: vec![0; 2],
            leaves: 1,
            place: Vec::new(),
            counts: Vec::new(),
            references: 0,
        }
    }

    /// References the page with the dense id `page`, and sets its rank to `rank`.
    pub fn reference(&mut self, page: u32, rank: Rank) {
        self.references += 1;
        if page as usize >= self.place.len() {
            self.place.resize(page as usize + 1, NONE);
        }
        let depth = match self.place[page as usize] {
            NONE => {
                self.pages.push(NONE);
                self.grow();
                self.pages.len() - 1
            }
            depth => {
                let depth = depth as usize;
                if depth >= self.counts.len() {
                    self.counts.resize(depth + 1, 0);
                }
                self.counts[depth] += 1;
                depth
            }
        };
        if depth > 0 {
            self.carry_down(depth);
        }
        self.put(0, page, rank);
    }

    /// Carries the top down to `depth`; the page there moves to the top.
    fn carry_down(&mut self, depth: usize) {
        let (mut page, mut rank) = (self.pages[0], self.rank(0));
        let mut from = 1;
        while let Some(at) = self.first_above(from, depth, rank) {
            let (next_page, next_rank) = (self.pages[at], self.rank(at));
            self.put(at, page, rank);
            (page, rank) = (next_page, next_rank);
            from = at + 1;
        }
        self.put(depth, page, rank);
    }

    fn rank(&self, position: usize) -> Rank {
        self.tree[self.leaves + position]
    }

    fn put(&mut self, position: usize, page: u32, rank: Rank) {
        self.pages[position] = page;
        self.place[page as usize] = position as u32;
        let mut node = self.leaves + position;
        self.tree[node] = rank;
        while node > 1 {
            node /= 2;
            let greatest = self.tree[2 * node].max(self.tree[2 * node + 1]);
            if self.tree[node] == greatest {
                break;
            }
            self.tree[node] = greatest;
        }
    }

    /// Returns the first position in `from..end` with a rank above `rank`.
    fn first_above(&self, from: usize, end: usize, rank: Rank) -> Option<usize> {
        if from >= end {
            return None;
        }
        // Climbs from `from` until a subtree to the right holds such a rank, then descends into it.
        let mut node = self.leaves + from;
        if self.tree[node] <= rank {
            loop {
                while node % 2 == 1 {
                    node /= 2;
                }
                if node == 0 {
                    return None;
                }
                node += 1;
                if node.is_power_of_two() {
                    return None;
                }
                if self.tree[node] > rank {
                    break;
                }
            }
            while node < self.leaves {
                node *= 2;
                if self.tree[node] <= rank {
                    node += 1;
                }
            }
        }
        Some(node - self.leaves).filter(|at| *at < end)
    }

    fn grow(&mut self) {
        if self.pages.len() <= self.leaves {
            return;
        }
        let leaves = self.leaves * 2;
        let mut tree = vec![0; leaves * 2];
        tree[leaves..leaves + self.leaves].copy_from_slice(&self.tree[self.leaves..]);
        for node in (1..leaves).rev() {
            tree[node] = tree[2 * node].max(tree[2 * node + 1]);
        }
        (self.tree, self.leaves) = (tree, leaves);
    }

    /// Returns the number of references so far.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Returns the hits with each of these numbers of frames, which are in ascending order.
    pub fn hits(&self, sizes: &[u64]) -> Vec<u64> {
        let (mut hits, mut sum, mut at) = (Vec::new(), 0, 0);
        for &size in sizes {
            while at < self.counts.len() && (at as u64) < size {
                sum += self.counts[at];
                at += 1;
            }
            hits.push(sum);
        }
        hits
    }
}
