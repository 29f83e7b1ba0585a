//! Places among gilbert's policies.
//!
//! He calls policies among the fastest, among the slowest, or in between. Here a policy is among
//! the best if no more than a third of the others are ahead of it, and among the worst if no more
//! than a third are behind it. It is better than most if more than half are behind. A place
//! combines comparisons with each of the others, and its p-value follows from theirs. A stalled
//! policy is behind all that are not.

use millpond_lab::report::Claim;

use super::super::factors::{LEAN, LOOP};
use crate::live::sizes::{RANDOM, Ratio, Sizes};
use millpond_lab::verdict::Evidence;

/// Policies of his figures 1.29 and 1.30, as variants of ours.
pub(super) const HIS: [&str; 25] = [
    RANDOM,
    LOOP,
    "fifo",
    "filo",
    "lru",
    "sorting-lru",
    "mru",
    "lru-k",
    "lru-k(k=3)",
    "lru-k(k=4)",
    "sorting-lru-k",
    "sorting-lru-k(k=3)",
    "sorting-lru-k(k=4)",
    "slru",
    "clock",
    "zclock",
    "gclock-v1",
    "gclock-v2",
    "dgclock-v1",
    "dgclock-v2",
    "lrd-v1",
    "lrd-v2",
    "lfu",
    "lfuda",
    LEAN,
];

/// Minimum number of other policies for a place among all.
const OTHERS_LEAST: usize = 18;

/// Measure by which policies are ranked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum By {
    /// Throughput, the higher the better.
    Speed,
    /// Misses per reference, the lower the better.
    Misses,
}

/// Evidence, for each other policy in a pool, that it is ahead of the one in question.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Place(Vec<Evidence>);

/// Maximum p-value at which a single comparison is shown as certain, that of a 95 % interval.
const CERTAIN: f64 = 0.025;

impl Place {
    /// Returns the place of a policy among others; `None` if it, or most of them, were not run.
    pub fn of(sizes: &Sizes, percent: &str, policy: &str, among: &[&str], by: By) -> Option<Place> {
        let is_there = |other: &&&str| **other != policy && sizes.was_run(percent, other);
        let others: Vec<&str> = among.iter().filter(is_there).copied().collect();
        if !sizes.was_run(percent, policy) || others.len() < OTHERS_LEAST {
            return None;
        }
        let of: Ratio = if by == By::Speed { Sizes::faster } else { Sizes::misses };
        let is_ahead = |other: &&str| {
            let stalled = [other, policy].map(|one| sizes.is_stalled(percent, one));
            let more = Evidence::more(of(sizes, percent, other, policy));
            match (stalled, by) {
                ([true, true], _) => Evidence::NONE,
                ([is_behind, true] | [is_behind @ true, _], _) => Evidence::certain(!is_behind),
                (_, By::Speed) => more,
                (_, By::Misses) => !more,
            }
        };
        Some(Place(others.iter().map(is_ahead).collect()))
    }

    /// Returns the numbers of others that are ahead and behind, each by its own interval, and the
    /// number of all others.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |of: fn(&Evidence) -> f64| self.0.iter().filter(|p| of(p) <= CERTAIN).count();
        (count(|ahead| ahead.yes), count(|ahead| ahead.no), self.0.len())
    }

    /// Formats the counts in words.
    pub fn shown(&self, policy: &str, percent: &str) -> String {
        let (ahead, behind, others) = self.counts();
        format!("{policy} at {percent} %: {ahead} of {others} ahead, {behind} behind")
    }

    fn ahead(&self) -> impl Iterator<Item = Evidence> {
        self.0.iter().copied()
    }

    fn behind(&self) -> impl Iterator<Item = Evidence> {
        self.0.iter().map(|ahead| !*ahead)
    }

    /// Returns evidence that no other policy is ahead.
    pub fn is_best(&self) -> Evidence {
        Evidence::all(self.behind())
    }

    /// Returns evidence that at most a third of the others are ahead.
    pub fn is_among_best(&self) -> Evidence {
        Evidence::at_least(self.0.len() - self.0.len() / 3, self.behind())
    }

    pub fn is_among_worst(&self) -> Evidence {
        Evidence::at_least(self.0.len() - self.0.len() / 3, self.ahead())
    }

    /// Returns evidence that the policy is neither among the best nor among the worst.
    pub fn is_in_the_middle(&self) -> Evidence {
        Evidence::all([!self.is_among_best(), !self.is_among_worst()])
    }

    pub fn is_better_than_most(&self) -> Evidence {
        Evidence::most(self.behind())
    }

    pub fn is_worse_than_most(&self) -> Evidence {
        Evidence::most(self.ahead())
    }
}

/// Question about each place, and the way to join a policy's pools to one verdict.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub by: By,
    pub is: fn(&Place) -> Evidence,
    pub over_pools: fn(Vec<Evidence>) -> Evidence,
}

/// Claims something about the places of policies in pools; it must hold for each of them.
pub(super) fn ranked(
    says: &str,
    sizes: &Sizes,
    percents: &[&str],
    policies: &[&str],
    asked: Asked,
) -> Claim {
    let mut here = Vec::new();
    let mut answers = Vec::new();
    for policy in policies {
        let mut of_pools = Vec::new();
        for percent in percents {
            let Some(place) = Place::of(sizes, percent, policy, &HIS, asked.by) else { continue };
            here.push(place.shown(policy, percent));
            of_pools.push((asked.is)(&place));
        }
        answers.push((asked.over_pools)(of_pools));
    }
    match here.is_empty() {
        true => Claim::open(says, "not run"),
        false => Evidence::all(answers).claim(says, here.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a place by the number of others certainly ahead, certainly behind, and open.
    fn place(ahead: usize, behind: usize, open: usize) -> Place {
        let clear = Evidence { yes: 1e-4, no: 1.0 };
        let each = [vec![clear; ahead], vec![!clear; behind], vec![Evidence::NONE; open]];
        Place(each.concat())
    }

    #[test]
    fn a_place_is_as_certain_as_the_others_leave_it() {
        let verdict = |of: Evidence| of.claim("", String::new()).holds;
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(place(7, 10, 4).counts(), (7, 10, 21));
        // A third of 21 are seven.
        assert_eq!(verdict(place(7, 14, 0).is_among_best()), yes);
        assert_eq!(verdict(place(7, 13, 1).is_among_best()), None);
        assert_eq!(verdict(place(8, 13, 0).is_among_best()), no);
        assert_eq!(verdict(place(14, 7, 0).is_among_worst()), yes);
        assert_eq!(verdict(place(13, 8, 0).is_among_worst()), no);
        assert_eq!(verdict(place(10, 11, 0).is_in_the_middle()), yes);
        assert_eq!(verdict(place(7, 14, 0).is_in_the_middle()), no);
        assert_eq!(verdict(place(8, 8, 5).is_in_the_middle()), yes);
        assert_eq!(verdict(place(10, 11, 0).is_better_than_most()), yes);
        assert_eq!(verdict(place(11, 10, 0).is_better_than_most()), no);
        assert_eq!(verdict(place(10, 10, 1).is_worse_than_most()), None);
        assert_eq!(verdict(place(0, 21, 0).is_best()), yes);
        assert_eq!(verdict(place(1, 20, 0).is_best()), no);
    }
}
