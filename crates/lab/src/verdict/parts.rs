//! Claims about named values: all of them, or most.

use super::claims::{claim, listed};
use super::evidence::{Bounds, Evidence, LEVEL};
use crate::interval::Interval;
use crate::report::Claim;

/// Values, each with its name.
pub type Named = Vec<(String, Option<Interval>)>;

fn borrowed(values: &Named) -> Vec<(&str, Option<Interval>)> {
    values.iter().map(|(name, value)| (name.as_str(), *value)).collect()
}

/// Returns `Some(true)` if a ratio is certainly above 1, `Some(false)` if it is certainly below.
pub fn is_more(ratio: Option<Interval>) -> Option<bool> {
    let ratio = ratio?;
    let (more, less) = (ratio.p_above(1.0), ratio.p_below(1.0));
    (more.min(less) <= LEVEL / 2.0).then_some(more < less)
}

/// Returns the claim that all values lie between the bounds; it is open if no value was measured.
pub fn claim_named(says: &str, values: &Named, bounds: Bounds) -> Claim {
    match values.iter().any(|(_, value)| value.is_some()) {
        true => claim(says, &borrowed(values), bounds),
        // Without values there is no claim to decide.
        false => Claim::open(says, "not run"),
    }
}

/// Returns the claim that more than half of the values lie between the bounds.
pub fn most(says: &str, values: &Named, bounds: Bounds) -> Claim {
    if values.iter().all(|(_, value)| value.is_none()) {
        return Claim::open(says, "not run");
    }
    let each = values.iter().map(|(_, value)| Evidence::of(*value, bounds));
    Evidence::most(each).claim(says, listed(&borrowed(values)))
}

#[cfg(test)]
mod tests {
    use super::super::claims::above;
    use super::*;

    #[test]
    fn a_ratio_is_more_or_less_where_its_interval_says_so() {
        let ratio = |mean, low, high| Some(Interval { mean, low, high, runs: 5 });
        let more = [is_more(ratio(1.15, 1.1, 1.2)), is_more(ratio(0.85, 0.8, 0.9))];
        assert_eq!(more, [Some(true), Some(false)]);
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
