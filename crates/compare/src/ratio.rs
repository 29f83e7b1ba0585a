//! By how much two engines differ, from pairs of slices that ran one after the other.
//!
//! A shared machine is faster now and slower then, but two slices of one round see nearly the same
//! machine. So each round gives one ratio, and the ratios are treated as a sample: their logarithms
//! have a mean and a Student-t interval, which are turned back into ratios.

/// A ratio with its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ratio {
    /// The geometric mean of the pairs' ratios.
    pub mean: f64,
    /// The interval's lower end; not-a-number for a single pair.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Pairs.
    pub pairs: usize,
}

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom.
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

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
            _ => {
                let t = T95.get(degrees - 1).copied().unwrap_or(1.96);
                t * (squares / degrees as f64 / count).sqrt()
            }
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
        // Logarithms 1, 2, 3: mean 2, deviation 1, so 2 ± 4.303 / √3.
        let pairs = [1f64, 2.0, 3.0].map(|log| (log.exp(), 1.0));
        let ratio = Ratio::of(pairs).unwrap();
        assert!((ratio.mean.ln() - 2.0).abs() < 1e-9);
        assert!((ratio.high.ln() - 2.0 - 4.303 / 3f64.sqrt()).abs() < 1e-9);
        assert!((ratio.low.ln() - 2.0 + 4.303 / 3f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn one_pair_has_no_interval_and_none_has_no_ratio() {
        assert!(Ratio::of([(2.0, 1.0)]).unwrap().low.is_nan());
        assert_eq!(Ratio::of([]), None);
        assert_eq!(Ratio::of([(1.0, 0.0)]), None);
    }
}
