//! Counts over positions, with prefix sums in logarithmic time.

/// A Fenwick tree of counts, growing by doubling.
#[derive(Default)]
pub(super) struct Fenwick {
    tree: Vec<i64>,
}

impl Fenwick {
    pub fn with_len(len: usize) -> Fenwick {
        Fenwick { tree: vec![0; len + 1] }
    }

    pub fn len(&self) -> usize {
        self.tree.len().saturating_sub(1)
    }

    pub fn add(&mut self, position: usize, change: i64) {
        let mut at = position + 1;
        while at < self.tree.len() {
            self.tree[at] += change;
            at += at & at.wrapping_neg();
        }
    }

    /// Returns the sum of the counts at positions below `end`.
    pub fn below(&self, end: usize) -> i64 {
        let (mut at, mut sum) = (end.min(self.len()), 0);
        while at > 0 {
            sum += self.tree[at];
            at -= at & at.wrapping_neg();
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_sums_agree_with_adding_up() {
        let mut rng = fastrand::Rng::with_seed(1);
        let (mut tree, mut model) = (Fenwick::with_len(77), [0i64; 77]);
        for _ in 0..2000 {
            let (at, change) = (rng.usize(0..77), rng.i64(-3..4));
            tree.add(at, change);
            model[at] += change;
            let end = rng.usize(0..=77);
            assert_eq!(tree.below(end), model[..end].iter().sum::<i64>());
        }
    }
}
