//! From ratios to verdicts: a claim holds if the whole interval is on its side.

use crate::experiment::Grid;
use crate::interval::Interval;
use crate::report::Claim;

/// A value with its interval, where it has one.
pub(super) fn shown(value: Option<Interval>) -> String {
    match value {
        None => "not run".to_string(),
        Some(v) if v.high - v.low < 5e-4 => format!("{:.3}", v.mean),
        Some(v) => format!("{:.3} ({:.3} to {:.3})", v.mean, v.low, v.high),
    }
}

/// Whether each of the values is above the bound: no where one is certainly not, open where one
/// may or may not be.
pub(super) fn all_above(values: &[Option<Interval>], bound: f64) -> Option<bool> {
    if values.iter().flatten().any(|v| v.high <= bound) {
        return Some(false);
    }
    let certain = values.iter().all(|v| v.is_some_and(|v| v.low > bound));
    certain.then_some(true)
}

/// The same, below.
pub(super) fn all_below(values: &[Option<Interval>], bound: f64) -> Option<bool> {
    if values.iter().flatten().any(|v| v.low >= bound) {
        return Some(false);
    }
    let certain = values.iter().all(|v| v.is_some_and(|v| v.high < bound));
    certain.then_some(true)
}

/// Both verdicts.
pub(super) fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// A claim with its verdict.
pub(super) fn claim(says: &str, here: String, holds: Option<bool>) -> Claim {
    match holds {
        Some(holds) => Claim::new(says, here, holds),
        None => Claim::open(says, here),
    }
}

/// A grid by trace, percent and a third axis: ratios of one label of it to another, over traces
/// and sizes.
pub(super) struct Ratios<'a>(pub &'a Grid);

impl Ratios<'_> {
    /// Over all sizes of one trace.
    pub fn on(&self, trace: &str, above: &str, below: &str) -> Option<Interval> {
        self.over(&[trace], above, below)
    }

    /// Over all traces and sizes.
    pub fn all(&self, above: &str, below: &str) -> Option<Interval> {
        self.over(&self.0.labels(0), above, below)
    }

    /// Over these traces, and all sizes.
    pub fn over(&self, traces: &[&str], above: &str, below: &str) -> Option<Interval> {
        let mut pairs = Vec::new();
        for trace in traces {
            for percent in self.0.labels(1) {
                pairs.push((vec![*trace, percent, above], vec![*trace, percent, below]));
            }
        }
        self.0.ratio_over(&pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_open_while_an_interval_includes_its_bound() {
        let interval = |low, high| Some(Interval { mean: (low + high) / 2.0, low, high });
        assert_eq!(all_above(&[interval(1.1, 1.2), interval(1.01, 1.3)], 1.0), Some(true));
        assert_eq!(all_above(&[interval(1.1, 1.2), interval(0.99, 1.3)], 1.0), None);
        assert_eq!(all_above(&[interval(1.1, 1.2), interval(0.8, 0.9)], 1.0), Some(false));
        assert_eq!(all_above(&[interval(1.1, 1.2), None], 1.0), None, "not run, not decided");
        assert_eq!(all_below(&[interval(0.8, 0.9)], 1.0), Some(true));
        assert_eq!(all_below(&[interval(1.0, 1.1)], 1.0), Some(false));
        assert_eq!(both(Some(true), None), None);
        assert_eq!(both(None, Some(false)), Some(false));
        assert_eq!(shown(interval(1.1, 1.2)), "1.150 (1.100 to 1.200)");
        assert_eq!(shown(interval(1.1, 1.1)), "1.100");
    }
}
