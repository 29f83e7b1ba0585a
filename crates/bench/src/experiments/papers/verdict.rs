//! From ratios to verdicts: a claim holds if the whole interval is on its side.

use millpond_lab::interval::Interval;
use millpond_lab::report::Claim;

/// A value with its interval, where it has one.
pub(super) fn shown(value: Option<Interval>) -> String {
    match value {
        None => "not run".to_string(),
        Some(v) if v.high - v.low < 5e-4 => format!("{:.3}", v.mean),
        Some(v) => format!("{v:.3}"),
    }
}

/// Several of them, each behind its name.
pub(super) fn listed(values: &[(&str, Option<Interval>)]) -> String {
    let each =
        values.iter().map(|(name, value)| format!("{name} {}", shown(*value)).trim().to_string());
    each.collect::<Vec<_>>().join("; ")
}

/// Whether each value is between the bounds: no where one certainly is not, open where one may or
/// may not be.
fn between(values: &[(&str, Option<Interval>)], low: f64, high: f64) -> Option<bool> {
    if values.iter().filter_map(|(_, v)| *v).any(|v| v.high <= low || v.low >= high) {
        return Some(false);
    }
    let is_inside = |v: Interval| v.low > low && v.high < high;
    values.iter().all(|(_, v)| v.is_some_and(is_inside)).then_some(true)
}

/// A claim that all values lie above `low` and below `high`.
pub(in crate::experiments) fn claim(
    says: &str,
    values: &[(&str, Option<Interval>)],
    (low, high): (f64, f64),
) -> Claim {
    match between(values, low, high) {
        Some(holds) => Claim::new(says, listed(values), holds),
        None => Claim::open(says, listed(values)),
    }
}

/// Any number above the bound.
pub(super) fn above(low: f64) -> (f64, f64) {
    (low, f64::INFINITY)
}

/// At least what is printed, which is rounded to a hundredth.
pub(super) fn at_least(printed: f64) -> (f64, f64) {
    above(printed - 0.005)
}

/// At most what is printed, which is rounded to a hundredth.
pub(super) fn at_most(printed: f64) -> (f64, f64) {
    below(printed + 0.005)
}

/// Any number below the bound.
pub(in crate::experiments) fn below(high: f64) -> (f64, f64) {
    (f64::NEG_INFINITY, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_decided_only_by_whole_intervals() {
        let value = |low: f64, high: f64| Some(Interval { mean: (low + high) / 2.0, low, high });
        let holds = |values: &[_], bounds| claim("", values, bounds).holds;
        assert_eq!(
            holds(&[("a", value(1.1, 1.2)), ("b", value(2.0, 2.0))], above(1.0)),
            Some(true)
        );
        assert_eq!(holds(&[("a", value(0.9, 1.2)), ("b", value(2.0, 2.0))], above(1.0)), None);
        assert_eq!(
            holds(&[("a", value(0.9, 1.2)), ("b", value(0.5, 0.9))], above(1.0)),
            Some(false)
        );
        assert_eq!(holds(&[("a", None), ("b", value(2.0, 2.0))], above(1.0)), None);
        assert_eq!(holds(&[("a", value(0.5, 0.9))], below(1.0)), Some(true));
        assert_eq!(holds(&[("a", value(0.95, 1.01))], (0.9, 1.1)), Some(true));
    }
}
