//! Comparison of two contestants.

use millpond_base::Seed;

use super::contest::{Contest, Replicate, Units, with_seeds_of};
use crate::interval::Interval;
use crate::method::{Better, Outcome as Tested, block_bootstrap, block_len, sign_test, t_test};

/// Verdict on two contestants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The first one is better.
    First,
    /// The second one is better.
    Second,
    /// The two differ by less than the margin.
    Alike,
    /// Neither a difference nor equivalence was shown.
    Open,
}

/// Result for two contestants over their common replicates.
#[derive(Clone, PartialEq, Debug)]
pub struct Pair {
    /// Index of the first contestant.
    pub first: usize,
    /// Index of the second contestant.
    pub second: usize,
    /// Number of common replicates.
    pub replicates: usize,
    /// Effect: the first contestant's values over the second's, as the geometric mean over the
    /// settings of a replicate. If a value is zero or less, the mean of the differences.
    pub effect: Interval,
    /// The effect with an interval by the (block) bootstrap.
    pub bootstrap: Interval,
    /// Length of the bootstrap's blocks, in replicates; 1 if the replicates are independent.
    pub block: usize,
    /// Cohen's d for pairs: the mean of the replicates' differences over their standard deviation
    /// (of logarithms, for ratios). `None` if the differences do not vary.
    pub d: Option<f64>,
    /// Number of replicates in which the first contestant is better, and in which the second one
    /// is.
    pub wins: (usize, usize),
    /// Two-sided p-value of the sign test.
    pub p_sign: f64,
    /// Two-sided p-value of a difference.
    pub p: f64,
    /// `p` after Holm's correction over all compared pairs.
    pub p_holm: f64,
    /// p-value of a difference of at least the margin: the larger p-value of two one-sided tests.
    pub p_alike: f64,
    /// `p_alike` after Holm's correction.
    pub p_alike_holm: f64,
    /// The verdict.
    pub verdict: Verdict,
}

/// Scale that converts differences to the shown effects, and back.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Scale {
    /// Logarithms of ratios.
    Ratio,
    /// Differences; the margin is a share of this value.
    Difference(f64),
}

impl Pair {
    /// Returns the differences in each common replicate: of logarithms, or plain.
    fn differences(first: &Units, second: &Units, scale: Scale) -> Vec<f64> {
        let of_unit = |(unit, first): (_, &std::collections::BTreeMap<String, f64>)| {
            let second = second.get(unit)?;
            let pairs = first.iter().filter_map(|(setting, a)| Some((*a, *second.get(setting)?)));
            let each: Vec<f64> = pairs
                .map(|(a, b)| match scale {
                    Scale::Ratio => (a / b).ln(),
                    Scale::Difference(_) => a - b,
                })
                .collect();
            (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64)
        };
        first.iter().filter_map(of_unit).collect()
    }

    /// Tests two contestants; returns `None` if they have no common replicate.
    pub(super) fn of(
        contest: &Contest,
        first: usize,
        second: usize,
        replicate: Replicate,
        scale: Scale,
        margin: f64,
    ) -> Option<Pair> {
        let (mut a, mut b) =
            (contest.by_unit(first, replicate), contest.by_unit(second, replicate));
        if replicate == Replicate::Seed {
            with_seeds_of(&mut a, std::iter::once(&b));
            with_seeds_of(&mut b, std::iter::once(&a));
        }
        let differences = Pair::differences(&a, &b, scale);
        let zeros = vec![0.0; differences.len()];
        let block = match replicate {
            Replicate::Block => block_len(differences.len()),
            _ => 1,
        };
        let bootstrap = block_bootstrap(&differences, block, Seed(1))?;
        let effect = interval(&differences, block, bootstrap)?;
        let sign = sign_test(&differences, &zeros);
        let (up, down) = match scale {
            Scale::Ratio => ((1.0 + margin).ln(), -(1.0 + margin).ln()),
            Scale::Difference(of) => (margin * of, -margin * of),
        };
        let is_better = |d: &&f64| (**d < 0.0) == (contest.metric.better == Better::Smaller);
        let apart: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
        let better = apart.iter().filter(is_better).count();
        let shown = |of: Interval| match scale {
            Scale::Difference(_) => of,
            Scale::Ratio => {
                let (low, high) = (of.low.exp(), of.high.exp());
                Interval { mean: of.mean.exp(), low, high, runs: of.runs }
            }
        };
        Some(Pair {
            first,
            second,
            replicates: differences.len(),
            effect: shown(effect),
            bootstrap: shown(bootstrap),
            block,
            d: cohen(&differences),
            wins: (better, apart.len() - better),
            p_sign: (2.0 * sign.p).min(1.0),
            p: two_sided(&effect, &t_test(&differences, &zeros), block),
            p_holm: 1.0,
            p_alike: effect.p_below(up).max(effect.p_above(down)),
            p_alike_holm: 1.0,
            verdict: Verdict::Open,
        })
    }

    /// Decides the verdict, once all p-values are known.
    pub(super) fn decide(&mut self, better: Better, level: f64, none: f64) {
        let first_is_larger = self.effect.mean > none;
        self.verdict = match (self.p_holm <= level, self.p_alike_holm <= level) {
            (true, _) if first_is_larger == (better == Better::Larger) => Verdict::First,
            (true, _) => Verdict::Second,
            (false, true) => Verdict::Alike,
            (false, false) => Verdict::Open,
        };
    }
}

/// Returns Student's interval of independent differences. If neighbouring differences depend on
/// each other, the interval uses the bootstrap's standard error, with one degree of freedom less
/// than there are blocks.
fn interval(differences: &[f64], block: usize, bootstrap: Interval) -> Option<Interval> {
    if block == 1 {
        return Interval::of(differences);
    }
    let blocks = (differences.len() / block).max(2);
    // The 95 % interval of a normal distribution is 3.92 standard errors wide.
    let error = (bootstrap.high - bootstrap.low) / 3.92;
    let error = error * (blocks as f64 / (blocks - 1) as f64).sqrt();
    let half = crate::interval::t_975(blocks - 1) * error;
    let mean = bootstrap.mean;
    Some(Interval { mean, low: mean - half, high: mean + half, runs: blocks as u32 })
}

fn two_sided(effect: &Interval, tested: &Tested, block: usize) -> f64 {
    let one_sided = match block {
        1 if effect.runs < 2 => 0.5,
        1 => tested.p,
        _ => effect.p_above(0.0).min(effect.p_below(0.0)),
    };
    (2.0 * one_sided).min(1.0)
}

fn cohen(differences: &[f64]) -> Option<f64> {
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (variance > 0.0).then(|| mean / variance.sqrt())
}
