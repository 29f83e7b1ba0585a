//! Claims that intervals decide, and Holm's correction over them.

use super::evidence::{Bounds, Evidence, LEVEL};
use crate::interval::Interval;
use crate::method::holm;
use crate::report::Claim;

/// Formats a value with its interval, if it has one.
pub fn shown(value: Option<Interval>) -> String {
    match value {
        None => "not run".to_string(),
        Some(v) if v.runs == 1 => format!("{:.3} (one repetition)", v.mean),
        Some(v) if v.high - v.low < 5e-4 => format!("{:.3}", v.mean),
        Some(v) => format!("{v:.3}"),
    }
}

/// Formats several values, each after its name.
pub fn listed(values: &[(&str, Option<Interval>)]) -> String {
    let each =
        values.iter().map(|(name, value)| format!("{name} {}", shown(*value)).trim().to_string());
    each.collect::<Vec<_>>().join("; ")
}

/// Returns bounds for any number between `low` and `high`.
pub const fn between(low: f64, high: f64) -> Bounds {
    Bounds { low, high }
}

/// Returns bounds for any number above `low`.
pub fn above(low: f64) -> Bounds {
    between(low, f64::INFINITY)
}

/// Returns bounds for any number below `high`.
pub fn below(high: f64) -> Bounds {
    between(f64::NEG_INFINITY, high)
}

/// Returns bounds for values of at least the printed one, which is rounded to a hundredth.
pub fn at_least(printed: f64) -> Bounds {
    above(printed - 0.005)
}

/// Returns bounds for values of at most the printed one, which is rounded to a hundredth.
pub fn at_most(printed: f64) -> Bounds {
    below(printed + 0.005)
}

/// Returns the claim that all values lie within the bounds.
pub fn claim(says: &str, values: &[(&str, Option<Interval>)], bounds: Bounds) -> Claim {
    let tests: Vec<_> = values.iter().map(|(_, value)| (*value, bounds)).collect();
    claim_of(says, listed(values), &tests)
}

/// Returns the claim that each value lies within its own bounds; `here` is the text shown for it.
pub fn claim_of(says: &str, here: String, tests: &[(Option<Interval>, Bounds)]) -> Claim {
    let each = tests.iter().map(|(value, bounds)| Evidence::of(*value, *bounds));
    Evidence::all(each).claim(says, here)
}

/// Applies Holm's correction over the claims of one figure: their p-values are raised, and verdicts
/// that are no longer certain become open. Claims about plain facts have no p-value, and stay
/// unchanged.
pub fn corrected(claims: &mut [Claim]) {
    let tested = || claims.iter().enumerate().filter_map(|(at, claim)| Some((at, claim.p?)));
    let (places, p): (Vec<usize>, Vec<f64>) = tested().unzip();
    for (at, p) in places.into_iter().zip(holm(&p)) {
        claims[at].p = Some(p);
        if p > LEVEL {
            claims[at].holds = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an interval over this many runs.
    fn value(low: f64, high: f64) -> Option<Interval> {
        Some(Interval { mean: (low + high) / 2.0, low, high, runs: 5 })
    }

    fn holds(values: &[(&str, Option<Interval>)], bounds: Bounds) -> Option<bool> {
        claim("", values, bounds).holds
    }

    #[test]
    fn a_claim_is_decided_only_by_whole_intervals() {
        let two = ("b", value(2.0, 2.0));
        assert_eq!(holds(&[("a", value(1.1, 1.2)), two], above(1.0)), Some(true));
        assert_eq!(holds(&[("a", value(0.9, 1.2)), two], above(1.0)), None);
        assert_eq!(
            holds(&[("a", value(0.9, 1.2)), ("b", value(0.5, 0.6))], above(1.0)),
            Some(false)
        );
        assert_eq!(holds(&[("a", None), two], above(1.0)), None, "not run, not decided");
        assert_eq!(holds(&[("a", None), ("b", value(0.5, 0.6))], above(1.0)), Some(false));
        assert_eq!(holds(&[("a", value(0.5, 0.9))], below(1.0)), Some(true));
        assert_eq!(holds(&[], above(1.0)), None);
    }

    #[test]
    fn equivalence_is_shown_by_both_bounds() {
        let within = between(0.95, 1.05);
        assert_eq!(holds(&[("a", value(0.96, 1.04))], within), Some(true));
        assert_eq!(holds(&[("a", value(0.90, 1.10))], within), None, "wide is not equal");
        assert_eq!(holds(&[("a", value(1.06, 1.10))], within), Some(false));
    }

    #[test]
    fn one_of_many_values_must_contradict_more_clearly() {
        // A little below the bound: enough for a single claim, but not for one of twenty.
        let off = value(0.80, 0.995);
        assert_eq!(holds(&[("a", off)], above(1.0)), Some(false));
        let mut many = vec![("b", value(1.1, 1.2)); 19];
        many.push(("a", off));
        assert_eq!(holds(&many, above(1.0)), None);
        many[19].1 = value(0.5, 0.55);
        assert_eq!(holds(&many, above(1.0)), Some(false));
    }

    #[test]
    fn a_single_run_decides_nothing_and_an_exact_value_all() {
        assert_eq!(holds(&[("a", Some(Interval::single(9.0)))], above(1.0)), None);
        assert_eq!(holds(&[("a", Some(Interval::exact(9.0)))], above(1.0)), Some(true));
        assert_eq!(holds(&[("a", Some(Interval::exact(0.9)))], above(1.0)), Some(false));
        assert_eq!(holds(&[("a", Some(Interval::exact(1.0)))], above(1.0)), Some(false));
    }

    #[test]
    fn each_value_has_its_own_bounds() {
        let tests = [(value(1.1, 1.2), above(1.0)), (value(0.8, 0.9), below(1.0))];
        assert_eq!(claim_of("", String::new(), &tests).holds, Some(true));
        let tests = [tests[0], (value(1.2, 1.3), below(1.0))];
        assert_eq!(claim_of("", String::new(), &tests).holds, Some(false));
    }

    #[test]
    fn the_claims_of_a_figure_are_judged_together() {
        let (clear, close) = (value(1.4, 1.5), value(1.001, 1.2));
        let mut claims: Vec<Claim> =
            [clear, close, close].map(|v| claim("", &[("a", v)], above(1.0))).to_vec();
        claims.push(Claim::new("exact", "", true));
        assert!(claims.iter().all(|claim| claim.holds == Some(true)));
        corrected(&mut claims);
        let verdicts: Vec<_> = claims.iter().map(|claim| claim.holds).collect();
        assert_eq!(verdicts, [Some(true), None, None, Some(true)]);
        assert!(claims[1].p > Some(0.05) && claims[3].p.is_none());
        let mut alone = [claim("", &[("a", close)], above(1.0))];
        corrected(&mut alone);
        assert_eq!(alone[0].holds, Some(true));
    }

    #[test]
    fn values_are_shown_with_their_intervals() {
        assert_eq!(shown(value(1.1, 1.2)), "1.150 (1.100 to 1.200)");
        assert_eq!(shown(value(1.1, 1.1)), "1.100");
        assert_eq!(shown(Some(Interval::single(2.0))), "2.000 (one repetition)");
        assert_eq!(listed(&[("a", None), ("", value(2.0, 2.0))]), "a not run; 2.000");
    }
}
