//! Ratios over traces and sizes.

use crate::experiment::Grid;
use millpond_lab::interval::Interval;

/// A grid by trace, percent and a third axis, for ratios between two labels of the third axis.
pub(super) struct Ratios<'a>(pub &'a Grid);

impl Ratios<'_> {
    /// Returns a ratio over all sizes of one trace.
    pub fn on(&self, trace: &str, above: &str, below: &str) -> Option<Interval> {
        self.over(&[trace], above, below)
    }

    /// Returns a ratio over all traces and sizes.
    pub fn all(&self, above: &str, below: &str) -> Option<Interval> {
        self.over(&self.0.labels(0), above, below)
    }

    /// Returns a ratio over these traces, and all sizes.
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
