//! Means and ratios with their 95 % confidence intervals.
//!
//! Two engines are compared by pairs of rounds that ran next to each other, because a disturbance
//! longer than a round then affects both. Ratios are multiplicative, so the interval is Student's,
//! over the logarithms, and its middle is the geometric mean.

use std::fmt;

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// A value and its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// The best estimate.
    pub mean: f64,
    /// The lower end; equals `mean` for a single value.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Number of independent values behind the interval. A single value has no interval that shows
    /// its error. 0 means that the interval comes from counts or many samples, so that the normal
    /// distribution holds.
    pub runs: u32,
}

/// Returns Student's t quantile at 97.5 % for a number of degrees of freedom, at least 1.
pub fn t_975(degrees: usize) -> f64 {
    let student = StudentsT::new(0.0, 1.0, degrees.max(1) as f64);
    student.map_or(Z_975, |student| student.inverse_cdf(0.975))
}

/// Prints the value, and the ends in brackets, with the requested number of decimals or three.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = f.precision().unwrap_or(3);
        let Interval { mean, low, high, .. } = self;
        write!(f, "{mean:.decimals$} ({low:.decimals$} to {high:.decimals$})")
    }
}

/// The quantile of the normal distribution at 97.5 %.
const Z_975: f64 = 1.959_964;

/// Half widths beyond which a distribution has no weight left.
const FAR: f64 = 1e12;

impl Interval {
    /// Returns the value of a single run, which has no interval.
    pub const fn single(mean: f64) -> Interval {
        Interval { mean, low: mean, high: mean, runs: 1 }
    }

    /// Returns a value that another run would repeat: a size in bytes, or a count without random
    /// draws.
    pub const fn exact(mean: f64) -> Interval {
        Interval { mean, low: mean, high: mean, runs: 0 }
    }

    /// Returns the one-sided p-value of being above `bound`: the probability of this observation,
    /// or a more extreme one, if the true value were `bound`. It is at most 0.025 if the whole
    /// interval is above the bound, and 1 for a single value.
    ///
    /// ```
    /// # use millpond_lab::interval::Interval;
    /// let ratio = Interval::of_ratios(&[1.1, 1.2, 1.15], &[1.0; 3]).unwrap();
    /// assert!(ratio.p_above(1.0) < 0.025 && ratio.p_above(1.1) > 0.025);
    /// assert_eq!(Interval::single(7.0).p_above(1.0), 1.0);
    /// ```
    pub fn p_above(&self, bound: f64) -> f64 {
        self.p(self.mean > bound, bound)
    }

    /// Returns the one-sided p-value of being below `bound`.
    pub fn p_below(&self, bound: f64) -> f64 {
        self.p(self.mean < bound, bound)
    }

    fn p(&self, is_there: bool, bound: f64) -> f64 {
        if self.runs == 1 || self.mean.is_nan() || bound.is_nan() {
            return 1.0;
        }
        // Rounding can leave zero divided by zero.
        let distance = Some(self.distance(bound)).filter(|d| !d.is_nan()).unwrap_or(0.0);
        let tail = match self.runs {
            _ if distance > FAR => 0.0,
            0 => Normal::standard().cdf(-distance * Z_975),
            runs => match StudentsT::new(0.0, 1.0, f64::from(runs - 1)) {
                Ok(student) => student.cdf(-distance * t_975(runs as usize - 1)),
                Err(_) => return 1.0,
            },
        };
        if is_there { tail } else { 1.0 - tail }
    }

    /// Returns the distance of `bound` from the mean, in half widths of the interval on that side.
    /// The scale makes the interval symmetric: logarithmic for ratios and rates.
    fn distance(&self, bound: f64) -> f64 {
        let Interval { mean, low, high, .. } = *self;
        let end = if bound < mean { low } else { high };
        if end == mean {
            return if bound == mean { 0.0 } else { f64::INFINITY };
        }
        let plain = ((mean - low) - (high - mean)).abs() / (high - low);
        let is_log = low > 0.0 && {
            let (below, above) = ((mean / low).ln(), (high / mean).ln());
            (below - above).abs() / (below + above) < plain
        };
        match is_log {
            true if bound <= 0.0 => f64::INFINITY,
            true => ((mean / bound).ln() / (mean / end).ln()).abs(),
            false => ((mean - bound) / (mean - end)).abs(),
        }
    }

    /// Returns the score interval for a count of independent events, such as samples (Poisson).
    pub fn of_count(count: u64) -> Interval {
        let (n, z) = (count as f64, Z_975);
        let (middle, half) = (n + z * z / 2.0, z * (n + z * z / 4.0).sqrt());
        Interval { mean: n, low: (middle - half).max(0.0), high: middle + half, runs: 0 }
    }

    /// Returns the value and its ends times `factor`, which is not negative.
    #[must_use]
    pub fn times(&self, factor: f64) -> Interval {
        let Interval { mean, low, high, runs } = *self;
        Interval { mean: mean * factor, low: low * factor, high: high * factor, runs }
    }

    /// Returns the difference from an independent value. The squares of the distances to the ends
    /// are added (Newcombe's method 10), so neither interval has to be symmetric.
    #[must_use]
    pub fn minus(&self, other: &Interval) -> Interval {
        let mean = self.mean - other.mean;
        let below = (self.mean - self.low).hypot(other.high - other.mean);
        let above = (self.high - self.mean).hypot(other.mean - other.low);
        Interval { mean, low: mean - below, high: mean + above, runs: 0 }
    }

    /// Returns mean and interval of independent values, or `None` without values.
    pub fn of(values: &[f64]) -> Option<Interval> {
        let n = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        if values.len() == 1 {
            return Some(Interval::single(mean));
        }
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let half = t_975(values.len() - 1) * (variance / n).sqrt();
        let runs = values.len() as u32;
        Some(Interval { mean, low: mean - half, high: mean + half, runs })
    }

    /// Returns mean and interval of independent rates or counts, never below zero: the interval of
    /// their logarithms, placed around their mean. A value of zero has no logarithm; the plain
    /// interval is then cut off at zero. Negative values are not rates, and get the interval of
    /// [`Interval::of`].
    pub fn of_rates(values: &[f64]) -> Option<Interval> {
        let plain = Interval::of(values)?;
        if values.iter().any(|v| *v < 0.0) {
            return Some(plain);
        }
        if values.iter().any(|v| *v <= 0.0) {
            return Some(Interval { low: plain.low.max(0.0), ..plain });
        }
        let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
        let log = Interval::of(&logs)?;
        let around = |end: f64| plain.mean * (end - log.mean).exp();
        Some(Interval { low: around(log.low), high: around(log.high), ..plain })
    }

    /// Returns the ratio of paired values, `above[i] / below[i]`, or `None` without a pair, or with
    /// a value that is not positive.
    pub fn of_ratios(above: &[f64], below: &[f64]) -> Option<Interval> {
        let pairs = above.iter().zip(below);
        let logs: Option<Vec<f64>> =
            pairs.map(|(a, b)| (*a > 0.0 && *b > 0.0).then(|| (a / b).ln())).collect();
        let log = Interval::of(&logs?)?;
        Some(Interval {
            mean: log.mean.exp(),
            low: log.low.exp(),
            high: log.high.exp(),
            runs: log.runs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn an_interval_is_student_s() {
        let interval = Interval::of(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(interval.mean, 2.0);
        assert!(near(interval.high - 2.0, 4.303 / 3f64.sqrt()), "{interval:?}");
        assert_eq!(Interval::of(&[]), None);
        assert_eq!(Interval::of(&[4.0]), Some(Interval::single(4.0)));
    }

    #[test]
    fn p_values_agree_with_the_interval() {
        let (a, b) = ([1.30, 1.42, 1.28, 1.55, 1.31], [1.21, 1.30, 1.27, 1.29, 1.30]);
        let (ratio, plain) = (Interval::of_ratios(&a, &b).unwrap(), Interval::of(&a).unwrap());
        for interval in [ratio, plain, Interval::of_rates(&a).unwrap(), Interval::of_count(90)] {
            assert!((interval.p_above(interval.low) - 0.025).abs() < 1e-6, "{interval}");
            assert!((interval.p_below(interval.high) - 0.025).abs() < 1e-6, "{interval}");
            assert!((interval.p_below(interval.mean) - 0.5).abs() < 1e-9);
        }
        assert!(ratio.p_above(0.0) == 0.0 && ratio.p_above(f64::NEG_INFINITY) == 0.0);
        let same = Interval::of_ratios(&[2.0, 4.0], &[1.0, 2.0]).unwrap();
        assert_eq!((same.p_above(1.9), same.p_above(2.1)), (0.0, 1.0));
        assert_eq!(Interval::exact(2.0).p_below(3.0), 0.0);
        // Widths of a rounding error, and bounds within such a width.
        let next = f64::from_bits(1.0f64.to_bits() + 1);
        let thin = Interval { mean: next, low: 1.0, high: 1.0 + 4.0 * (next - 1.0), runs: 3 };
        for bound in [0.0, 0.5, 1.0, next, 2.0, f64::MAX, f64::INFINITY, f64::NEG_INFINITY] {
            let (above, below) = (thin.p_above(bound), thin.p_below(bound));
            assert!((0.0..=1.0).contains(&above) && (0.0..=1.0).contains(&below), "{bound}");
        }
        assert!(thin.p_above(0.5) == 0.0 && thin.p_below(2.0) == 0.0);
        assert_eq!(Interval::single(2.0).p_below(3.0), 1.0);
        assert_eq!(Interval::of(&[f64::NAN, 1.0]).unwrap().p_above(0.0), 1.0);
    }

    #[test]
    fn counts_have_score_intervals_and_differences_combine_them() {
        let close = |a: f64, b: f64| (a - b).abs() < 5e-3;
        // 10 ± 1.96: middle 11.92, half 6.484.
        let ten = Interval::of_count(10);
        assert!(close(ten.low, 5.432) && close(ten.high, 18.409), "{ten}");
        let none = Interval::of_count(0);
        assert!(none.low == 0.0 && close(none.high, 3.841), "{none}");
        let many = Interval::of_count(10_000);
        let difference = Interval::of_count(10_400).minus(&many);
        // The normal approximation: 400 ± 1.96 · √20400.
        assert!((difference.high - 400.0 - 279.9).abs() < 3.0, "{difference}");
        assert!(difference.low > 0.0, "{difference}");
        let gone = none.minus(&ten);
        assert!(gone.mean == -10.0 && gone.high < 0.0 && gone.low < -18.0, "{gone}");
        assert_eq!(ten.times(2.0).mean, 20.0);
        assert_eq!(format!("{:.1}", ten.times(0.5)), "5.0 (2.7 to 9.2)");
    }

    #[test]
    fn quantiles_are_the_published_ones() {
        for (degrees, published) in [(1, 12.706), (8, 2.306), (30, 2.042), (31, 2.040)] {
            assert!(near(t_975(degrees), published), "{degrees}");
        }
        for (degrees, published) in [(40, 2.021), (60, 2.000), (120, 1.980), (100_000, 1.960)] {
            assert!(near(t_975(degrees), published), "{degrees}: {}", t_975(degrees));
        }
    }

    #[test]
    fn what_slows_both_of_a_pair_does_not_widen_the_ratio() {
        let below = [100.0, 50.0, 10.0, 80.0];
        let above: Vec<f64> = below.iter().map(|b| b * 2.0).collect();
        let ratio = Interval::of_ratios(&above, &below).unwrap();
        assert!(near(ratio.mean, 2.0) && near(ratio.low, 2.0) && near(ratio.high, 2.0));
        let swapped = Interval::of_ratios(&below, &above).unwrap();
        assert!(near(swapped.mean * ratio.mean, 1.0));
    }

    #[test]
    fn the_interval_of_a_rate_never_goes_below_zero() {
        let noisy = [1.0, 900.0];
        assert!(Interval::of(&noisy).unwrap().low < 0.0, "Student's alone does");
        let rate = Interval::of_rates(&noisy).unwrap();
        assert!(0.0 < rate.low && rate.low < rate.mean && rate.mean < rate.high, "{rate:?}");
        assert_eq!(rate.mean, 450.5);
        assert_eq!(Interval::of_rates(&[0.0, 8.0]).unwrap().low, 0.0);
        let calm = Interval::of_rates(&[100.0, 101.0, 102.0]).unwrap();
        let plain = Interval::of(&[100.0, 101.0, 102.0]).unwrap();
        assert!((calm.low - plain.low).abs() < 0.1 && (calm.high - plain.high).abs() < 0.1);
    }

    #[test]
    fn ratios_need_positive_pairs() {
        assert_eq!(Interval::of_ratios(&[], &[1.0]), None);
        assert_eq!(Interval::of_ratios(&[1.0], &[0.0]), None);
        let noisy = Interval::of_ratios(&[1.0, 4.0], &[1.0, 1.0]).unwrap();
        assert!(near(noisy.mean, 2.0) && noisy.low < 1.0 && noisy.high > 4.0);
    }
}
