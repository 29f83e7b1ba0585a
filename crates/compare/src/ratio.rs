//! By how much two engines differ, from pairs of slices that ran one after the other.
//!
//! A shared machine is faster now and slower then, but two slices of one round see nearly the same
//! machine. So each round gives one ratio, and the ratios are treated as a sample: their logarithms
//! have a mean and a Student-t interval, which are turned back into ratios.

use millpond_lab::interval::t_975;

/// A ratio with its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ratio {
    /// The geometric mean of the pairs' ratios.
    pub mean: f64,
    /// The interval's lower end; not-a-number for a single pair.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Pairs.
    pub pairs: usize,
}

impl Ratio {
    /// The ratios `numerator / denominator` of pairs; `None` if there are none.
    pub fn of(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Ratio> {
        let logs: Vec<f64> = pairs
            .into_iter()
            .filter(|(above, below)| *above > 0.0 && *below > 0.0)
            .map(|(above, below)| (above / below).ln())
            .collect();
        let count = logs.len() as f64;
        let degrees = logs.len().checked_sub(1)?;
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let half = match degrees {
            0 => f64::NAN,
            _ => t_975(degrees) * (squares / degrees as f64 / count).sqrt(),
        };
        let [mean, low, high] = [mean, mean - half, mean + half].map(f64::exp);
        Some(Ratio { mean, low, high, pairs: logs.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_pairs_have_a_sharp_ratio() {
        let ratio = Ratio::of([(3.0, 2.0); 9]).unwrap();
        assert!([ratio.mean, ratio.low, ratio.high].iter().all(|x| (x - 1.5).abs() < 1e-9));
        assert_eq!(ratio.pairs, 9);
    }

    #[test]
    fn the_interval_is_students() {
        // Logarithms 1, 2, 3: mean 2, deviation 1, so 2 ± 4.302653 / √3.
        let pairs = [1f64, 2.0, 3.0].map(|log| (log.exp(), 1.0));
        let ratio = Ratio::of(pairs).unwrap();
        assert!((ratio.mean.ln() - 2.0).abs() < 1e-9);
        assert!((ratio.high.ln() - 2.0 - 4.302_653 / 3f64.sqrt()).abs() < 1e-6);
        assert!((ratio.low.ln() - 2.0 + 4.302_653 / 3f64.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn beyond_thirty_pairs_the_interval_is_students_too() {
        // Of 32 logarithms −1 and 1 in turn the deviation is √(32 / 31); t for 31 degrees is 2.040.
        let pairs = (0..32).map(|at| (if at % 2 == 0 { 1f64 } else { -1.0 }.exp(), 1.0));
        let high = Ratio::of(pairs).unwrap().high.ln();
        let expected = 2.040 * (32.0f64 / 31.0 / 32.0).sqrt();
        assert!((high - expected).abs() < 5e-4, "{high} and {expected}");
    }

    #[test]
    fn one_pair_has_no_interval_and_none_has_no_ratio() {
        assert!(Ratio::of([(2.0, 1.0)]).unwrap().low.is_nan());
        assert_eq!(Ratio::of([]), None);
        assert_eq!(Ratio::of([(1.0, 0.0)]), None);
    }
}
