//! Means with intervals.

/// A mean and the half-width of its 95 % interval, by Student's distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Half of the interval's width; infinite of a single value.
    pub half: f64,
}

/// The quantile 0.975 of Student's distribution for 1 to 15 degrees of freedom.
const STUDENT: [f64; 15] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131,
];

/// Of some values.
pub fn mean(values: &[f64]) -> Mean {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let half = match values.len().checked_sub(2) {
        None => f64::INFINITY,
        Some(at) => {
            let student = STUDENT.get(at).or(STUDENT.last()).copied().unwrap_or(f64::INFINITY);
            student * (squares / (count - 1.0) / count).sqrt()
        }
    };
    Mean { mean, half }
}

impl std::fmt::Display for Mean {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Mean { mean, half } = self;
        let places = if mean.abs() < 10.0 { 3 } else { 1 };
        write!(f, "{mean:.places$} ({:.places$} to {:.places$})", mean - half, mean + half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_that_of_the_table() {
        // Of 1 to 5: deviation 1.5811, error 0.70711, times 2.776.
        let found = mean(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(found.mean, 3.0);
        assert!((found.half - 1.963).abs() < 0.001, "{found:?}");
        assert_eq!(mean(&[7.0]).half, f64::INFINITY);
        assert_eq!(mean(&[7.0, 7.0]).half, 0.0);
    }
}
