//! Axes: map values to places in a drawing, with round ticks.

use super::html::short;

/// A straight or logarithmic axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub low: f64,
    pub high: f64,
    pub is_log: bool,
    /// Place where `low` is drawn.
    pub from: f64,
    /// Place where `high` is drawn.
    pub to: f64,
}

impl Axis {
    /// Returns an axis over all the values, drawn between two places. A logarithmic axis takes
    /// positive values only.
    pub fn over(values: impl Iterator<Item = f64>, is_log: bool, from: f64, to: f64) -> Axis {
        let usable = values.filter(|v| v.is_finite() && (!is_log || *v > 0.0));
        let (mut low, mut high) =
            usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            (low, high) = (1.0, 2.0);
        }
        if low == high {
            (low, high) = if is_log { (low / 2.0, high * 2.0) } else { (low - 0.5, high + 0.5) };
        }
        Axis { low, high, is_log, from, to }
    }

    /// Adds room of `share` of the axis's length at both ends.
    pub fn with_margin(mut self, share: f64) -> Axis {
        let margin = (self.high - self.low) * share;
        (self.low, self.high) = (self.low - margin, self.high + margin);
        self
    }

    /// Returns the place where `value` is drawn.
    pub fn place(&self, value: f64) -> f64 {
        let scale = |v: f64| if self.is_log { v.max(f64::MIN_POSITIVE).ln() } else { v };
        let share = (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low));
        self.from + share.clamp(-0.05, 1.05) * (self.to - self.from)
    }

    /// Returns round values to mark, with their labels.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let ticks = if self.is_log { self.log_ticks() } else { self.even_ticks() };
        ticks.into_iter().map(|t| (t, short(t))).collect()
    }

    fn even_ticks(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|m| m * power)
            .find(|s| *s >= rough)
            .unwrap_or(10.0 * power);
        let first = (self.low / step).ceil() as i64;
        (first..first + 12)
            .map(|i| i as f64 * step)
            .filter(|t| *t <= self.high + step * 1e-9)
            .collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let decades = (self.low.log10().floor() as i32)..=(self.high.log10().ceil() as i32);
        if self.high / self.low < 5.0 {
            // A range of less than a factor of 5 has few powers of ten, or two or five times one.
            return self.even_ticks();
        }
        let wide = self.high / self.low > 300.0;
        let steps: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
        decades
            .flat_map(|d| steps.iter().map(move |s| s * 10f64.powi(d)))
            .filter(|t| *t >= self.low * 0.999 && *t <= self.high * 1.001)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = Axis::over([0.0, 0.83].into_iter(), false, 0.0, 100.0);
        let labels: Vec<String> = axis.ticks().into_iter().map(|(_, l)| l).collect();
        assert_eq!(labels, ["0", "0.2", "0.4", "0.6", "0.8"]);
        let axis = Axis::over([100.0, 100_000.0].into_iter(), true, 0.0, 300.0);
        assert_eq!(axis.ticks().len(), 4);
        assert!((axis.place(1000.0) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn a_single_value_still_has_an_axis() {
        let axis = Axis::over([5.0].into_iter(), true, 0.0, 10.0);
        assert!((axis.place(5.0) - 5.0).abs() < 1e-9);
        let nothing = Axis::over(std::iter::empty(), false, 0.0, 10.0);
        assert!(nothing.place(1.5).is_finite());
    }
}
