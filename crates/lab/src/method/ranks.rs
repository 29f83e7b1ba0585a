//! Ranks over many settings: Friedman's test, and Nemenyi's critical difference.

use statrs::distribution::{ChiSquared, ContinuousCDF, Normal};

use super::joint::Better;

/// The mean ranks of some policies, as drawn in a critical-difference diagram (Demšar 2006).
#[derive(Clone, PartialEq, Debug)]
pub struct Ranks {
    /// Mean rank of each policy; 1 is the best. Ties share their ranks.
    pub mean: Vec<f64>,
    /// Number of settings in which the policies were ranked.
    pub settings: usize,
    /// Friedman's p-value: the probability of ranks at least as different as these, if no policy
    /// tended to be ahead of another.
    pub p: f64,
    /// Nemenyi's critical difference: mean ranks closer than this are indistinguishable at 5 %.
    pub critical: f64,
}

impl Ranks {
    /// Ranks policies in each setting (a trace, a seed). `values` has a list for each policy, in
    /// the same order of settings. Returns `None` with fewer than two policies or settings, or with
    /// a value that is not a number.
    pub fn of(values: &[Vec<f64>], better: Better) -> Option<Ranks> {
        let (k, n) = (values.len(), values.iter().map(Vec::len).min()?);
        if k < 2 || n < 2 || values.iter().flatten().any(|value| value.is_nan()) {
            return None;
        }
        let (mut sums, mut ties) = (vec![0.0; k], 0.0);
        for setting in 0..n {
            let sign = if better == Better::Larger { -1.0 } else { 1.0 };
            let column: Vec<f64> = values.iter().map(|of| sign * of[setting]).collect();
            for (sum, value) in sums.iter_mut().zip(&column) {
                let before = column.iter().filter(|other| *other < value).count() as f64;
                let alike = column.iter().filter(|other| *other == value).count() as f64;
                *sum += before + (alike + 1.0) / 2.0;
                // The sum over a group of t of t² − 1 each is t³ − t.
                ties += alike * alike - 1.0;
            }
        }
        let mean: Vec<f64> = sums.iter().map(|sum| sum / n as f64).collect();
        let (k, n) = (k as f64, n as f64);
        let squares: f64 = mean.iter().map(|rank| (rank - (k + 1.0) / 2.0).powi(2)).sum();
        let untied = 1.0 - ties / (n * k * (k * k - 1.0));
        let statistic = 12.0 * n / (k * (k + 1.0)) * squares / untied;
        let p = match ChiSquared::new(k - 1.0) {
            Ok(distribution) if untied > 0.0 => distribution.sf(statistic),
            _ => 1.0,
        };
        let q = range_quantile(values.len(), 0.95) / std::f64::consts::SQRT_2;
        let critical = q * (k * (k + 1.0) / (6.0 * n)).sqrt();
        Some(Ranks { mean, settings: n as usize, p, critical })
    }

    /// Returns groups of policy indexes, the best first, in which no two policies are
    /// distinguishable. Each group is as large as it can be, and none is within another.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.mean.len()).collect();
        order.sort_by(|a, b| self.mean[*a].total_cmp(&self.mean[*b]));
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (at, first) in order.iter().enumerate() {
            let is_close = |one: &&usize| self.mean[**one] - self.mean[*first] < self.critical;
            let group: Vec<usize> = order[at..].iter().take_while(is_close).copied().collect();
            let last = groups.last().and_then(|group| group.last());
            if group.len() > 1 && last != group.last() {
                groups.push(group);
            }
        }
        groups
    }
}

/// Returns the quantile of the studentized range of `k` groups with infinitely many degrees of
/// freedom, which is the range of `k` standard normal values.
fn range_quantile(k: usize, share: f64) -> f64 {
    let (mut low, mut high) = (0.0, 20.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if range_cdf(k, middle) < share { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Returns the probability that the range of `k` standard normal values is at most `q`, by
/// Simpson's rule: the least value is anywhere, and all others are within `q` above it.
fn range_cdf(k: usize, q: f64) -> f64 {
    const STEPS: usize = 800;
    const END: f64 = 9.0;
    let normal = Normal::standard();
    let density = |z: f64| (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let width = 2.0 * END / STEPS as f64;
    let at = |step: usize| {
        let z = -END + step as f64 * width;
        let others = (normal.cdf(z + q) - normal.cdf(z)).powi(k as i32 - 1);
        let weight = match step {
            0 | STEPS => 1.0,
            step if step % 2 == 1 => 4.0,
            _ => 2.0,
        };
        weight * density(z) * others
    };
    k as f64 * (0..=STEPS).map(at).sum::<f64>() * width / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_range_are_those_of_the_tables() {
        // q at 5 % over √2, as in Demšar's table 5 for Nemenyi's test.
        for (k, published) in [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)] {
            let ours = range_quantile(k, 0.95) / std::f64::consts::SQRT_2;
            assert!((ours - published).abs() < 1e-3, "{k}: {ours}");
        }
    }

    #[test]
    fn ranks_are_shared_by_ties_and_tested_by_friedman() {
        let values = [vec![1.0, 1.0, 1.0, 2.0], vec![2.0, 2.0, 2.0, 1.0], vec![2.0, 3.0, 3.0, 3.0]];
        let ranks = Ranks::of(&values, Better::Smaller).unwrap();
        assert_eq!(ranks.mean, [1.25, 1.875, 2.875]);
        // Result of scipy.stats.friedmanchisquare for the same columns.
        assert!((ranks.p - 0.056_888).abs() < 1e-5, "{}", ranks.p);
        let larger = Ranks::of(&values, Better::Larger).unwrap();
        assert_eq!(larger.mean, [2.75, 2.125, 1.125]);
        assert!((larger.p - ranks.p).abs() < 1e-12);
    }

    #[test]
    fn groups_are_of_what_cannot_be_told_apart() {
        let ranks = |mean: &[f64], critical| {
            Ranks { mean: mean.to_vec(), settings: 9, p: 0.0, critical }.groups()
        };
        assert_eq!(ranks(&[1.0, 2.0, 3.0], 0.5), Vec::<Vec<usize>>::new());
        assert_eq!(ranks(&[3.0, 2.0, 1.0], 1.5), [vec![2, 1], vec![1, 0]]);
        assert_eq!(ranks(&[1.0, 1.2, 3.0], 1.5), [vec![0, 1]]);
        assert_eq!(ranks(&[1.0, 2.0, 3.0], 9.0), [vec![0, 1, 2]]);
    }

    #[test]
    fn too_little_has_no_ranks() {
        assert_eq!(Ranks::of(&[vec![1.0, 2.0]], Better::Larger), None);
        assert_eq!(Ranks::of(&[vec![1.0], vec![2.0]], Better::Larger), None);
        assert_eq!(Ranks::of(&[vec![1.0, f64::NAN], vec![2.0, 3.0]], Better::Larger), None);
        let same = Ranks::of(&[vec![1.0, 2.0], vec![1.0, 2.0]], Better::Larger).unwrap();
        assert_eq!((same.mean, same.p), (vec![1.5, 1.5], 1.0));
    }
}
