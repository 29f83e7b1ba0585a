//! Ratios of paired runs: their median, and an interval for the mean of a longer series.

/// Median and 95 % interval of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Ratio {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

/// Two-sided 95 % quantiles of Student's t for 1, 2, … 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Returns the median, and Student's interval of the mean of the logarithms.
///
/// The logarithm gives a ratio and its inverse the same verdict. One run has no interval:
/// its bounds are NaN.
pub fn ratio(samples: &[f64]) -> Ratio {
    let logs: Vec<f64> = samples.iter().map(|s| s.ln()).collect();
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let t = T.get(logs.len().wrapping_sub(2)).copied().unwrap_or(1.96);
    let half = t * (variance / n).sqrt();
    Ratio { median: median(samples), low: (mean - half).exp(), high: (mean + half).exp() }
}

/// Returns the middle value, or the mean of the two in the middle; NaN if there is none.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) =
        (sorted.get(sorted.len().saturating_sub(1) / 2), sorted.get(sorted.len() / 2))
    else {
        return f64::NAN;
    };
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn the_interval_is_students() {
        // Logarithms -1, 0, 1: mean 0, deviation 1, so t(2) / √3 either way.
        let r = ratio(&[(-1.0f64).exp(), 1.0, 1.0f64.exp()]);
        let half = 4.303 / 3.0f64.sqrt();
        assert!((r.low.ln() + half).abs() < 1e-9 && (r.high.ln() - half).abs() < 1e-9);
        assert_eq!(r.median, 1.0);
    }

    #[test]
    fn equal_runs_have_a_narrow_interval_and_one_run_has_none() {
        let r = ratio(&[5.0; 4]);
        assert!((r.low - 5.0).abs() < 1e-9 && (r.high - 5.0).abs() < 1e-9);
        assert!(ratio(&[5.0]).low.is_nan());
    }
}
