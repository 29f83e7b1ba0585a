//! Ratios over traces and sizes.

use crate::experiment::Grid;
use millpond_lab::interval::Interval;

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
