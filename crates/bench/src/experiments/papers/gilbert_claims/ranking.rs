//! Places among gilbert's policies.
//!
//! He says of policies that they are among the fastest, among the slowest, or in between. Here a
//! policy is among the best if no more than a third of the others are ahead of it, and among the
//! worst if no more than a third are behind it; it is better than most if more than half are
//! behind. Only an interval that excludes 1 puts one policy ahead of another. A policy that is
//! stalled is behind all that are not.

use millpond_lab::report::Claim;

use super::super::gilbert_factors::{LEAN, LOOP};
use super::super::sizes::{RANDOM, Ratio, Sizes};
use millpond_lab::verdict::{all_of, decided, is_more};

/// The policies of his figures 1.29 and 1.30, as variants of those here.
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

/// Fewer others say nothing of a place among all.
const OTHERS_LEAST: usize = 18;

/// What policies are ranked by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum By {
    /// Throughput, the higher the better.
    Speed,
    /// Misses per reference, the lower the better.
    Misses,
}

/// How many policies are certainly ahead of one in a pool, and how many certainly behind it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Place {
    pub ahead: usize,
    pub behind: usize,
    pub others: usize,
}

impl Place {
    /// The place of a policy among others; `None` where it, or most of them, were not run.
    pub fn of(sizes: &Sizes, percent: &str, policy: &str, among: &[&str], by: By) -> Option<Place> {
        let is_there = |other: &&&str| **other != policy && sizes.was_run(percent, other);
        let others: Vec<&str> = among.iter().filter(is_there).copied().collect();
        if !sizes.was_run(percent, policy) || others.len() < OTHERS_LEAST {
            return None;
        }
        let of: Ratio = if by == By::Speed { Sizes::faster } else { Sizes::misses };
        let is_ahead = |other: &&str| {
            match (sizes.is_stalled(percent, other), sizes.is_stalled(percent, policy)) {
                (true, true) => return None,
                (true, false) => return Some(false),
                (false, true) => return Some(true),
                (false, false) => {}
            }
            let more = is_more(of(sizes, percent, other, policy))?;
            Some(more == (by == By::Speed))
        };
        let places: Vec<Option<bool>> = others.iter().map(is_ahead).collect();
        let count = |of| places.iter().filter(|place| **place == Some(of)).count();
        Some(Place { ahead: count(true), behind: count(false), others: others.len() })
    }

    /// Whether no more than `most` policies are among `some`, of those certain and those open.
    fn at_most(&self, some: usize, most: usize) -> Option<bool> {
        let open = self.others - self.ahead - self.behind;
        if some > most {
            return Some(false);
        }
        (some + open <= most).then_some(true)
    }

    /// Whether none is ahead, but for the one of twenty that intervals of 95 % put there by chance.
    pub fn is_best(&self) -> Option<bool> {
        self.at_most(self.ahead, self.others / 20)
    }

    pub fn is_among_best(&self) -> Option<bool> {
        self.at_most(self.ahead, self.others / 3)
    }

    pub fn is_among_worst(&self) -> Option<bool> {
        self.at_most(self.behind, self.others / 3)
    }

    /// Whether it is neither among the best nor among the worst.
    pub fn is_in_the_middle(&self) -> Option<bool> {
        let not = |what: Option<bool>| what.map(|is| !is);
        all_of([not(self.is_among_best()), not(self.is_among_worst())])
    }

    pub fn is_better_than_most(&self) -> Option<bool> {
        self.is_certainly_most(self.behind, self.ahead)
    }

    pub fn is_worse_than_most(&self) -> Option<bool> {
        self.is_certainly_most(self.ahead, self.behind)
    }

    /// Whether `on` are more than half; no where `off` are half.
    fn is_certainly_most(&self, on: usize, off: usize) -> Option<bool> {
        if 2 * on > self.others {
            return Some(true);
        }
        (2 * off >= self.others).then_some(false)
    }
}

/// What is asked of each place, and how the pools of a policy make one answer.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub by: By,
    pub is: fn(&Place) -> Option<bool>,
    pub over_pools: fn(Vec<Option<bool>>) -> Option<bool>,
}

/// A claim about the places of policies in pools, each of which has to hold.
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
            let Place { ahead, behind, others } = place;
            here.push(format!(
                "{policy} at {percent} %: {ahead} of {others} ahead, {behind} behind"
            ));
            of_pools.push((asked.is)(&place));
        }
        answers.push((asked.over_pools)(of_pools));
    }
    match here.is_empty() {
        true => Claim::open(says, "not run"),
        false => decided(says, here.join("; "), all_of(answers)),
    }
}
