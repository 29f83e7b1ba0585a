//! The block bootstrap of a mean.

use millpond_base::Seed;

use crate::interval::Interval;

/// Number of resamples: enough that the ends of a 95 % interval hardly depend on the seed.
const RESAMPLES: usize = 10_000;

/// Returns the length of blocks if the dependence is unknown: the cube root of the number of
/// values, rounded up. This is the order that Hall, Horowitz and Jing (1995) find for the variance
/// of a mean.
pub fn block_len(values: usize) -> usize {
    (values as f64).cbrt().ceil() as usize
}

/// Returns the mean of a series of values that depend on their neighbours, with its 95 % interval
/// by the circular block bootstrap (Politis and Romano 1992). Resampled series of the same length
/// consist of blocks of `block` neighbours, where the first value follows the last. The interval
/// spans the 2.5 and 97.5 per cent points of their means. Blocks of one value treat the values as
/// independent. The result is `None` without a value; one value has no interval.
pub fn block_bootstrap(values: &[f64], block: usize, seed: Seed) -> Option<Interval> {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    if n < 2 {
        return (n == 1).then(|| Interval::single(mean));
    }
    let block = block.clamp(1, n);
    let mut random = fastrand::Rng::with_seed(seed.0);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let (mut sum, mut left) = (0.0, n);
            while left > 0 {
                let (begin, len) = (random.usize(..n), block.min(left));
                sum += (begin..begin + len).map(|at| values[at % n]).sum::<f64>();
                left -= len;
            }
            sum / n as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means[(share * (RESAMPLES - 1) as f64).round() as usize];
    Some(Interval { mean, low: at(0.025), high: at(0.975), runs: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a series in which each value depends on the values before it.
    fn series(n: usize, keeps: f64, seed: u64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut last = 0.0;
        let mut next = || {
            last = keeps * last + random.f64() - 0.5;
            last
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn independent_values_have_about_student_s_interval() {
        let values = series(200, 0.0, 3);
        let (ours, student) =
            (block_bootstrap(&values, 1, Seed(1)).unwrap(), Interval::of(&values).unwrap());
        assert!((ours.mean - student.mean).abs() < 1e-12);
        let widths = (ours.high - ours.low) / (student.high - student.low);
        assert!((0.9..1.1).contains(&widths), "{widths}");
        assert_eq!(block_bootstrap(&values, 1, Seed(1)), Some(ours), "the seed decides");
    }

    #[test]
    fn blocks_cover_the_mean_of_dependent_values_where_single_ones_do_not() {
        let covered = |block: usize| {
            let covers = |seed: &u64| {
                let interval = block_bootstrap(&series(125, 0.8, *seed), block, Seed(7)).unwrap();
                interval.low <= 0.0 && 0.0 <= interval.high
            };
            (0..60).filter(covers).count()
        };
        let (single, blocks) = (covered(1), covered(15));
        assert!(single < 40 && blocks > 45, "{single} {blocks} of 60");
    }

    #[test]
    fn short_series_have_what_they_can_have() {
        assert_eq!(block_bootstrap(&[], 3, Seed(1)), None);
        assert_eq!(block_bootstrap(&[4.0], 3, Seed(1)), Some(Interval::single(4.0)));
        let same = block_bootstrap(&[2.0; 5], 99, Seed(1)).unwrap();
        assert_eq!((same.low, same.high), (2.0, 2.0));
        assert_eq!((block_len(1), block_len(10), block_len(1000)), (1, 3, 10));
    }
}
