//! All pairs, Luan's joint method, and ranks.

use std::collections::BTreeSet;

use super::contest::{Contest, Replicate, with_seeds_of};
use super::error::CompareError;
use super::pair::{Pair, Scale};
use crate::method::{Better, Joint, Ranks, Weights, holm};
use crate::parameters::REPLICATE;

/// Options of a comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct CompareOptions {
    /// Replicate over which tests are made; `None` selects the most informative one.
    pub replicate: Option<Replicate>,
    /// Contestant that all others are compared with; `None` compares all pairs.
    pub to: Option<String>,
    /// Relative difference below which two contestants count as alike.
    pub margin: f64,
    /// Probability that any verdict is wrong.
    pub level: f64,
    /// Weights of the marks in Luan's scores.
    pub weights: Weights,
}

impl Default for CompareOptions {
    fn default() -> CompareOptions {
        let weights = Weights::default();
        CompareOptions { replicate: None, to: None, margin: 0.01, level: 0.05, weights }
    }
}

/// Result of Luan's method over the settings (trace × cache size), on means over repetitions.
#[derive(Clone, PartialEq, Debug)]
pub struct Scored {
    /// Number of settings in which all contestants were run.
    pub settings: usize,
    /// The marks of both tests.
    pub joint: Joint,
    /// The contestants' scores.
    pub scores: Vec<f64>,
}

/// Outcome of a comparison.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The values compared.
    pub contest: Contest,
    /// The options of the comparison.
    pub options: CompareOptions,
    /// Replicate over which tests were made.
    pub replicate: Replicate,
    /// `true` if effects are ratios, `false` if they are differences.
    pub are_ratios: bool,
    /// Pairs that have a replicate in common.
    pub pairs: Vec<Pair>,
    /// Luan's scores; `None` with fewer than two common settings.
    pub luan: Option<Scored>,
    /// Ranks over the replicates; `None` with fewer than two common replicates or only two
    /// contestants.
    pub ranks: Option<Ranks>,
}

impl Outcome {
    /// Compares the contestants.
    ///
    /// # Errors
    /// [`CompareError`].
    pub fn of(contest: Contest, options: CompareOptions) -> Result<Outcome, CompareError> {
        if !(options.level > 0.0 && options.level < 1.0) {
            return Err(CompareError::Level(options.level.to_string()));
        }
        if !(0.0..10.0).contains(&options.margin) {
            return Err(CompareError::Margin(options.margin.to_string()));
        }
        let replicate = match options.replicate {
            Some(replicate) => replicate,
            None => contest.replicate()?,
        };
        if !contest.has(replicate) {
            return Err(apart(&contest, &[], replicate));
        }
        let are_ratios = contest.has_ratios();
        let scale = if are_ratios { Scale::Ratio } else { Scale::Difference(typical(&contest)) };
        let mut pairs = Vec::new();
        for (first, second) in numbers(&contest, options.to.as_deref())? {
            pairs.extend(Pair::of(&contest, first, second, replicate, scale, options.margin));
        }
        if pairs.iter().all(|pair| pair.replicates < 2) {
            return Err(apart(&contest, &pairs, replicate));
        }
        let adjusted = holm(&pairs.iter().map(|pair| pair.p).collect::<Vec<_>>());
        let alike = holm(&pairs.iter().map(|pair| pair.p_alike).collect::<Vec<_>>());
        for (pair, (p, p_alike)) in pairs.iter_mut().zip(adjusted.into_iter().zip(alike)) {
            (pair.p_holm, pair.p_alike_holm) = (p, p_alike);
            let none = if are_ratios { 1.0 } else { 0.0 };
            pair.decide(contest.metric.better, options.level, none);
        }
        let luan = scored(&contest, options.weights);
        let ranks = ranked(&contest, replicate);
        Ok(Outcome { contest, options, replicate, are_ratios, pairs, luan, ranks })
    }

    /// Returns a contestant's name.
    pub(super) fn name(&self, at: usize) -> &str {
        &self.contest.contestants[at]
    }

    /// Returns the contestants, the best first, by the geometric mean (or the mean) over all common
    /// settings. Without a common setting the contestants stay in their own order.
    pub(super) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.contest.contestants.len()).collect();
        let Some(values) = in_common(&self.contest) else { return order };
        let mean = |at: &usize| {
            let of = |value: &f64| if self.are_ratios { value.ln() } else { *value };
            let all = values[*at].iter().map(of).sum::<f64>();
            if self.contest.metric.better == Better::Larger { -all } else { all }
        };
        order.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
        order
    }
}

/// Returns the pairs to compare, as indexes of contestants.
fn numbers(contest: &Contest, to: Option<&str>) -> Result<Vec<(usize, usize)>, CompareError> {
    let count = contest.contestants.len();
    let Some(name) = to else {
        let all = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        return Ok(all.collect());
    };
    let known = || contest.contestants.join(", ");
    let to = contest.contestants.iter().position(|one| one == name);
    let to = to.ok_or_else(|| CompareError::Unknown { name: name.to_string(), known: known() })?;
    Ok((0..count).filter(|at| *at != to).map(|at| (at, to)).collect())
}

/// Returns the absolute mean of all values; a margin is a share of it.
fn typical(contest: &Contest) -> f64 {
    let all: Vec<f64> = (0..contest.contestants.len())
        .flat_map(|at| contest.by_setting(at).into_values().collect::<Vec<_>>())
        .collect();
    (all.iter().sum::<f64>() / all.len().max(1) as f64).abs()
}

fn apart(contest: &Contest, pairs: &[Pair], replicate: Replicate) -> CompareError {
    match pairs.is_empty() && contest.has(replicate) {
        true => CompareError::Apart {
            first: contest.contestants[0].clone(),
            second: contest.contestants[1].clone(),
        },
        false => CompareError::Replicates {
            replicate: replicate.to_string(),
            hint: format!("run more of them, or choose others with {REPLICATE}"),
        },
    }
}

/// Returns the values of all contestants in their common settings, or `None` for fewer than two
/// settings.
fn in_common(contest: &Contest) -> Option<Vec<Vec<f64>>> {
    let all: Vec<_> = (0..contest.contestants.len()).map(|at| contest.by_setting(at)).collect();
    let mut common: BTreeSet<&String> = all.first()?.keys().collect();
    common.retain(|setting| all.iter().all(|of| of.contains_key(*setting)));
    let of = |values: &std::collections::BTreeMap<String, f64>| {
        common.iter().map(|setting| values[*setting]).collect()
    };
    (common.len() > 1).then(|| all.iter().map(of).collect())
}

fn scored(contest: &Contest, weights: Weights) -> Option<Scored> {
    let values = in_common(contest)?;
    let joint = Joint::of(&values, contest.metric.better);
    let scores = joint.scores(weights);
    Some(Scored { settings: values[0].len(), joint, scores })
}

fn ranked(contest: &Contest, replicate: Replicate) -> Option<Ranks> {
    if contest.contestants.len() < 3 {
        return None;
    }
    let mut all: Vec<_> =
        (0..contest.contestants.len()).map(|at| contest.by_unit(at, replicate)).collect();
    if replicate == Replicate::Seed {
        let own = all.clone();
        all.iter_mut().for_each(|units| with_seeds_of(units, own.iter()));
    }
    let units: Vec<_> =
        all.first()?.keys().filter(|unit| all.iter().all(|of| of.contains_key(unit))).collect();
    let mut values = vec![Vec::new(); all.len()];
    for unit in units {
        let settings: Vec<&String> = all[0][unit]
            .keys()
            .filter(|setting| all.iter().all(|of| of[unit].contains_key(*setting)))
            .collect();
        if settings.is_empty() {
            continue;
        }
        for (values, of) in values.iter_mut().zip(&all) {
            let sum: f64 = settings
                .iter()
                .map(|setting| of[unit][*setting])
                .map(|value| if value > 0.0 { value.ln() } else { f64::NEG_INFINITY })
                .sum();
            values.push(sum / settings.len() as f64);
        }
    }
    Ranks::of(&values, contest.metric.better)
}
