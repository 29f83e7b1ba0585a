//! Ranges of keys: predicate locks, which protect readers against phantoms.

use std::ops::Bound;

/// Upper bound of the length of keys in any structure, since no page holds a longer one. A longer
/// key needs no lock, and takes no memory for one. A write of it fails because of its length.
pub(super) const KEY_MAX: usize = 1 << 16;

/// A range of keys that owns its bounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Range {
    pub lower: Bound<Vec<u8>>,
    pub upper: Bound<Vec<u8>>,
}

impl Range {
    /// Returns the range between two bounds. Longer bounds are cut to the length that still
    /// distinguishes all keys that a structure can have.
    pub fn new(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Range {
        let kept = |bound: &[u8]| bound[..bound.len().min(KEY_MAX + 1)].to_vec();
        Range { lower: lower.map(kept), upper: upper.map(kept) }
    }

    /// Returns whether the range visibly has no keys.
    pub fn is_empty(&self) -> bool {
        match (&self.lower, &self.upper) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
            (
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => lower >= upper,
        }
    }

    pub fn has(&self, key: &[u8]) -> bool {
        let above = match &self.lower {
            Bound::Included(lower) => key >= lower.as_slice(),
            Bound::Excluded(lower) => key > lower.as_slice(),
            Bound::Unbounded => true,
        };
        above
            && match &self.upper {
                Bound::Included(upper) => key <= upper.as_slice(),
                Bound::Excluded(upper) => key < upper.as_slice(),
                Bound::Unbounded => true,
            }
    }

    /// Returns whether every key of `other` is in this range, as far as the bounds show.
    pub fn has_all(&self, other: &Range) -> bool {
        !lower_is_before(&other.lower, &self.lower) && !upper_is_behind(&other.upper, &self.upper)
    }

    /// Extends this range by `other`, if no key lies between the two. Returns whether it did.
    pub fn extend(&mut self, other: &Range) -> bool {
        if !meets(&self.upper, &other.lower) || !meets(&other.upper, &self.lower) {
            return false;
        }
        if lower_is_before(&other.lower, &self.lower) {
            self.lower.clone_from(&other.lower);
        }
        if upper_is_behind(&other.upper, &self.upper) {
            self.upper.clone_from(&other.upper);
        }
        debug_assert!(self.has_all(other), "a range that was extended has the other's keys");
        true
    }

    /// Returns the number of bytes of memory that the range takes.
    pub fn bytes(&self) -> usize {
        let of = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => key.len(),
            Bound::Unbounded => 0,
        };
        of(&self.lower) + of(&self.upper) + std::mem::size_of::<Range>()
    }
}

/// Returns whether `a` admits keys before all that `b` admits.
fn lower_is_before(a: &Bound<Vec<u8>>, b: &Bound<Vec<u8>>) -> bool {
    match (a, b) {
        (_, Bound::Unbounded) => false,
        (Bound::Unbounded, _) => true,
        (Bound::Included(a), Bound::Excluded(b)) => a <= b,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => a < b,
    }
}

/// Returns whether `a` admits keys behind all that `b` admits.
fn upper_is_behind(a: &Bound<Vec<u8>>, b: &Bound<Vec<u8>>) -> bool {
    match (a, b) {
        (_, Bound::Unbounded) => false,
        (Bound::Unbounded, _) => true,
        (Bound::Included(a), Bound::Excluded(b)) => a >= b,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => a > b,
    }
}

/// Returns whether no key lies between an upper and a lower bound.
fn meets(upper: &Bound<Vec<u8>>, lower: &Bound<Vec<u8>>) -> bool {
    match (upper, lower) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
        (Bound::Excluded(upper), Bound::Excluded(lower)) => upper > lower,
        (Bound::Included(u) | Bound::Excluded(u), Bound::Included(l) | Bound::Excluded(l)) => {
            u >= l
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Range;
    use std::ops::Bound::{self, Excluded, Included, Unbounded};

    /// Returns all ranges over the keys 1, 3 and 5, so that there are keys between all bounds.
    fn ranges() -> Vec<Range> {
        let at = |n: u8| vec![n];
        let mut bounds: Vec<Bound<Vec<u8>>> = vec![Unbounded];
        for n in [1, 3, 5] {
            bounds.extend([Included(at(n)), Excluded(at(n))]);
        }
        let pair = |lower: &Bound<Vec<u8>>| {
            let lower = lower.clone();
            bounds.iter().map(move |upper| Range { lower: lower.clone(), upper: upper.clone() })
        };
        bounds.iter().flat_map(pair).collect()
    }

    fn keys(range: &Range) -> Vec<u8> {
        (0..7).filter(|n| range.has(&[*n])).collect()
    }

    #[test]
    fn a_range_that_was_extended_has_the_keys_of_both_and_no_other() {
        let mut extended = 0;
        for a in ranges() {
            for b in ranges() {
                if keys(&a).is_empty() || keys(&b).is_empty() {
                    continue;
                }
                let mut both = a.clone();
                let was = both.extend(&b);
                let mut wanted = keys(&a);
                if was {
                    wanted.extend(keys(&b));
                    wanted.sort_unstable();
                    wanted.dedup();
                    extended += 1;
                }
                assert_eq!(keys(&both), wanted, "{a:?} and {b:?}");
            }
        }
        assert!(extended > 100);
    }

    #[test]
    fn a_range_that_has_all_of_another_has_all_its_keys() {
        for a in ranges() {
            for b in ranges() {
                let all = keys(&b).iter().all(|key| a.has(&[*key]));
                if a.has_all(&b) {
                    assert!(all, "{a:?} and {b:?}");
                }
                if !keys(&b).is_empty() {
                    assert_eq!(a.has_all(&b), all, "{a:?} and {b:?}");
                }
            }
        }
    }
}
