//! Verdicts that are put together of others: most of some values, places in an order.

use super::claims::{Bounds, LEVEL, claim, claim_of, inside, listed, outside};
use crate::interval::Interval;
use crate::report::Claim;

/// Values, each with what it is of.
pub type Named = Vec<(String, Option<Interval>)>;

fn borrowed(values: &Named) -> Vec<(&str, Option<Interval>)> {
    values.iter().map(|(name, value)| (name.as_str(), *value)).collect()
}

/// Whether a ratio is certainly above 1, or certainly below.
pub fn is_more(ratio: Option<Interval>) -> Option<bool> {
    let ratio = ratio?;
    let (more, less) = (ratio.p_above(1.0), ratio.p_below(1.0));
    (more.min(less) <= LEVEL / 2.0).then_some(more < less)
}

/// Whether all hold: no where one certainly does not, open where one is open, and of none.
pub fn all_of(each: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let each: Vec<_> = each.into_iter().collect();
    if each.contains(&Some(false)) {
        return Some(false);
    }
    (!each.is_empty() && !each.contains(&None)).then_some(true)
}

/// Whether more than half hold: open where those that are open may decide it, and of none.
pub fn most_of(each: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let each: Vec<_> = each.into_iter().collect();
    let count = |of: bool| each.iter().filter(|one| **one == Some(of)).count();
    match () {
        () if 2 * count(true) > each.len() => Some(true),
        () if 2 * count(false) >= each.len().max(1) => Some(false),
        () => None,
    }
}

/// A claim that is put together of several verdicts, and has no p-value of its own.
pub fn decided(says: &str, here: String, holds: Option<bool>) -> Claim {
    Claim { holds, ..Claim::open(says, here) }
}

/// A claim that all values lie between the bounds, which of no value at all is open.
pub fn claim_named(says: &str, values: &Named, bounds: Bounds) -> Claim {
    match values.iter().any(|(_, value)| value.is_some()) {
        true => claim(says, &borrowed(values), bounds),
        // Nothing holds of nothing.
        false => Claim::open(says, "not run"),
    }
}

/// A claim that more than half of the values lie between the bounds: that some number of them at
/// least do has the p-value of the one that is as many steps up from the smallest, times the number
/// of those that are not smaller (Benjamini and Heller 2008, by Bonferroni).
pub fn most(says: &str, values: &Named, bounds: Bounds) -> Claim {
    let count = values.len();
    if values.iter().all(|(_, value)| value.is_none()) {
        return Claim::open(says, "not run");
    }
    let tests = || values.iter().map(|(_, value)| (*value, bounds));
    let at_least = |needed: usize, mut p: Vec<f64>| {
        p.sort_by(f64::total_cmp);
        (p[needed - 1] * (count - needed + 1) as f64).min(1.0)
    };
    let yes = at_least(count / 2 + 1, tests().map(|test| inside(&test)).collect());
    let no = at_least(count.div_ceil(2), tests().map(|test| outside(&test)).collect());
    let shown = claim_of(says, listed(&borrowed(values)), &[]);
    let p = (2.0 * yes.min(no)).min(1.0);
    Claim { holds: (p <= LEVEL).then_some(yes < no), p: Some(p), ..shown }
}

#[cfg(test)]
mod tests {
    use super::super::claims::above;
    use super::*;

    #[test]
    fn most_is_more_than_half_whatever_the_open_ones_are() {
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(most_of([yes, yes, no]), yes);
        assert_eq!(most_of([yes, no]), no, "half is not most");
        assert_eq!(most_of([yes, no, None]), None);
        assert_eq!(most_of([yes, yes, None]), yes);
        assert_eq!(most_of([no, no, None]), no);
        assert_eq!(most_of([]), None, "nothing holds of nothing");
        assert_eq!(all_of([yes, None, no]), no);
        assert_eq!(all_of([yes, None]), None);
        assert_eq!(all_of([yes, yes]), yes);
        assert_eq!(all_of([]), None);
        let ratio = |mean, low, high| Some(Interval { mean, low, high, runs: 5 });
        let more = [is_more(ratio(1.15, 1.1, 1.2)), is_more(ratio(0.85, 0.8, 0.9))];
        assert_eq!(more, [yes, no]);
        assert_eq!([is_more(ratio(1.0, 1.0, 1.0)), is_more(ratio(1.0, 0.9, 1.1))], [None; 2]);
        assert_eq!([is_more(Some(Interval::single(3.0))), is_more(None)], [None; 2]);
    }

    #[test]
    fn most_values_decide_by_their_intervals() {
        let of = |values: &[(f64, f64)]| {
            let named = |(low, high): &(f64, f64)| {
                let mean = (low + high) / 2.0;
                ("v".to_string(), Some(Interval { mean, low: *low, high: *high, runs: 5 }))
            };
            most("", &values.iter().map(named).collect(), above(1.0)).holds
        };
        let (yes, open, no) = ((1.4, 1.5), (0.8, 1.3), (0.5, 0.55));
        assert_eq!(of(&[yes, yes, no]), Some(true));
        assert_eq!(of(&[yes, no]), Some(false), "half is not most");
        assert_eq!(of(&[yes, no, open]), None);
        assert_eq!(of(&[no, no, open]), Some(false));
        let not_run = vec![("v".to_string(), None)];
        assert_eq!(most("", &not_run, above(1.0)).holds, None);
        assert_eq!(claim_named("", &Vec::new(), above(1.0)).holds, None);
    }
}
