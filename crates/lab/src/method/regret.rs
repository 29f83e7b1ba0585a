//! Regret: the excess cost of a policy over the best policy of the same cell.
//!
//! A *cell* is a trace and a pool size. The regret of a policy in a cell is its cost over the least
//! cost of any candidate there, minus one: 0 for the best policy, 0.1 for a cost that is a tenth
//! higher. A default has to serve unknown workloads, so it is judged by a high quantile of its
//! regrets, not by its number of wins.
//!
//! Cells of one trace are not independent, so intervals come from a bootstrap that draws traces,
//! with all their cells. A tuned policy is judged on traces that the tuning did not see:
//! [`halves`](super::halves) splits them before anything is run.

use std::collections::BTreeMap;

use millpond_policies::parts::Random;

use crate::interval::Interval;

/// Cost of a policy in a cell.
#[derive(Clone, PartialEq, Debug)]
pub struct CellCost {
    /// Name of the trace.
    pub trace: String,
    /// The pool size as requested (`5%`, `1000`).
    pub size: String,
    /// The policy, with its parameters.
    pub policy: String,
    /// Cost of the policy in the cell, in page reads; not negative.
    pub cost: f64,
    /// `true` if other policies' regrets are measured against this policy; `false` for a bound.
    pub is_candidate: bool,
}

/// Reason why regrets cannot be computed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegretError {
    /// No candidate has a cost.
    #[error("no cell has a cost: give traces, sizes and a policy that does not need the future")]
    Nothing,
    /// A policy lacks a cell that others have, so its quantiles would be over other cells.
    #[error("{policy} has no cost for {trace} at {size}, which others have: run that cell, too")]
    Missing {
        /// The policy.
        policy: String,
        /// The trace.
        trace: String,
        /// The size.
        size: String,
    },
    /// The best policy of a cell costs nothing, so every ratio to it is undefined.
    #[error("the best policy costs nothing for {trace} at {size}: leave that size out")]
    Free {
        /// The trace.
        trace: String,
        /// The size.
        size: String,
    },
    /// The cost is negative or not a number.
    #[error("{policy} costs {cost} for {trace} at {size}: a cost is a number, and not negative")]
    Cost {
        /// The policy.
        policy: String,
        /// The trace.
        trace: String,
        /// The size.
        size: String,
        /// The cost given.
        cost: f64,
    },
}

/// Summary of a policy's regrets.
#[derive(Clone, PartialEq, Debug)]
pub struct Regret {
    /// The policy, with its parameters.
    pub policy: String,
    /// `true` for a candidate; a bound's regrets may be below zero.
    pub is_candidate: bool,
    /// Median regret over the cells, with its 95 % interval over traces.
    pub median: Interval,
    /// The 90th percentile of the regrets, with its 95 % interval over traces.
    pub p90: Interval,
    /// The largest regret.
    pub worst: f64,
    /// The trace and the size of the largest regret.
    pub worst_at: (String, String),
    /// Number of cells in which no candidate costs less; 0 for a bound.
    pub wins: usize,
    /// This policy's 90th percentile minus that of the compared policy, if there is one. The 95 %
    /// interval is over the same draws of traces. Below zero if this policy is better.
    pub beside: Option<Interval>,
}

/// Bootstrap behind the intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bootstrap {
    /// Number of samples of traces; with 0, an interval is a single point.
    pub draws: usize,
    /// The seed of the draws.
    pub seed: u64,
}

impl Default for Bootstrap {
    /// Returns 2,000 draws with seed 1.
    fn default() -> Bootstrap {
        Bootstrap { draws: 2000, seed: 1 }
    }
}

/// The regrets of policies over common cells.
#[derive(Clone, PartialEq, Debug)]
pub struct Regrets {
    policies: Vec<Judged>,
    /// Trace and size of each cell; the cells of a trace are adjacent.
    cells: Vec<(String, String)>,
    /// Regrets by policy, then by cell.
    regrets: Vec<Vec<f64>>,
    best: Vec<usize>,
}

#[derive(Clone, PartialEq, Debug)]
struct Judged {
    name: String,
    is_candidate: bool,
}

type Costs<'a> = BTreeMap<(&'a str, &'a str), Vec<(f64, u32)>>;

impl Regrets {
    /// Computes regrets from costs. If a policy has several costs for a cell, from several seeds
    /// for example, their mean counts. Policies and cells stay in the order of their first
    /// appearance.
    ///
    /// # Errors
    /// [`RegretError`].
    pub fn of(costs: &[CellCost]) -> Result<Regrets, RegretError> {
        let mut policies: Vec<Judged> = Vec::new();
        let mut traces: Vec<&str> = Vec::new();
        let mut order: Vec<(&str, &str)> = Vec::new();
        let mut sums: Costs<'_> = BTreeMap::new();
        for cost in costs {
            let cell = (cost.trace.as_str(), cost.size.as_str());
            if !(cost.cost.is_finite() && cost.cost >= 0.0) {
                return Err(RegretError::Cost {
                    policy: cost.policy.clone(),
                    trace: cost.trace.clone(),
                    size: cost.size.clone(),
                    cost: cost.cost,
                });
            }
            let known = policies.iter().position(|p| p.name == cost.policy);
            let policy = known.unwrap_or(policies.len());
            if known.is_none() {
                let name = cost.policy.clone();
                policies.push(Judged { name, is_candidate: cost.is_candidate });
            }
            if !traces.contains(&cell.0) {
                traces.push(cell.0);
            }
            let of_cell = sums.entry(cell).or_insert_with(|| {
                order.push(cell);
                Vec::new()
            });
            of_cell.resize(of_cell.len().max(policy + 1), (0.0, 0));
            of_cell[policy].0 += cost.cost;
            of_cell[policy].1 += 1;
        }
        order.sort_by_key(|(trace, _)| traces.iter().position(|t| t == trace));
        from_sums(policies, &order, &sums)
    }

    /// Returns the policies, in the order of their first appearance.
    pub fn policies(&self) -> impl Iterator<Item = &str> {
        self.policies.iter().map(|policy| policy.name.as_str())
    }

    /// Returns the trace and size of each cell.
    pub fn cells(&self) -> &[(String, String)] {
        &self.cells
    }

    /// Returns the regrets of policy number `policy`, one for each cell.
    pub fn of_policy(&self, policy: usize) -> &[f64] {
        &self.regrets[policy]
    }

    /// Returns the candidate with the least cost in cell number `cell`: the first one of several.
    pub fn best(&self, cell: usize) -> &str {
        &self.policies[self.best[cell]].name
    }

    /// Returns the number of traces.
    pub fn traces(&self) -> usize {
        self.by_trace().len()
    }

    /// Returns each policy's median, 90th percentile and worst cell, the least 90th percentile
    /// first. Intervals come from a bootstrap that draws the given number of samples of traces,
    /// with replacement; all policies are judged by the same draws. A single trace gives no
    /// interval. The 90th percentiles are compared with that of policy number `beside`.
    pub fn summary(&self, bootstrap: Bootstrap, beside: Option<usize>) -> Vec<Regret> {
        let by_trace = self.by_trace();
        let random = Random::new(bootstrap.seed);
        // Every sample of one trace is that trace, so it says nothing about other traces.
        let draws = if by_trace.len() > 1 { bootstrap.draws } else { 0 };
        let samples: Vec<Vec<usize>> = (0..draws)
            .map(|_| {
                let drawn = random.sample(by_trace.len(), by_trace.len() as u32);
                drawn.flat_map(|trace| by_trace[trace as usize].iter().copied()).collect()
            })
            .collect();
        let base = beside.map(|policy| self.quantile(policy, 0.9, &samples));
        let mut all: Vec<Regret> = (0..self.policies.len())
            .map(|policy| self.one(policy, &samples, base.as_ref()))
            .collect();
        all.sort_by(|a, b| {
            let key = |r: &Regret| [r.p90.mean, r.median.mean, r.worst];
            key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal)
        });
        all
    }

    /// Returns the cell numbers of each trace.
    fn by_trace(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for at in 0..self.cells.len() {
            match groups.last_mut() {
                Some(group) if self.cells[group[0]].0 == self.cells[at].0 => group.push(at),
                _ => groups.push(vec![at]),
            }
        }
        groups
    }

    fn quantile(&self, policy: usize, share: f64, samples: &[Vec<usize>]) -> Drawn {
        let regrets = &self.regrets[policy];
        let drawn = |cells: &Vec<usize>| {
            nearest_rank(cells.iter().map(|cell| regrets[*cell]).collect(), share)
        };
        Drawn {
            here: nearest_rank(regrets.clone(), share),
            drawn: samples.iter().map(drawn).collect(),
        }
    }

    fn one(&self, policy: usize, samples: &[Vec<usize>], base: Option<&Drawn>) -> Regret {
        let regrets = &self.regrets[policy];
        let p90 = self.quantile(policy, 0.9, samples);
        let (mut worst, mut at) = (f64::NEG_INFINITY, 0);
        for (cell, regret) in regrets.iter().enumerate() {
            if *regret > worst {
                (worst, at) = (*regret, cell);
            }
        }
        Regret {
            policy: self.policies[policy].name.clone(),
            is_candidate: self.policies[policy].is_candidate,
            median: self.quantile(policy, 0.5, samples).interval(),
            p90: p90.interval(),
            worst,
            worst_at: self.cells[at].clone(),
            wins: match self.policies[policy].is_candidate {
                true => regrets.iter().filter(|regret| **regret <= 0.0).count(),
                false => 0,
            },
            beside: base.map(|base| p90.less(base).interval()),
        }
    }
}

/// A quantile over the cells, and the same quantile over each sample of traces.
pub(super) struct Drawn {
    pub(super) here: f64,
    pub(super) drawn: Vec<f64>,
}

impl Drawn {
    pub(super) fn less(&self, other: &Drawn) -> Drawn {
        let pairs = self.drawn.iter().zip(&other.drawn);
        Drawn { here: self.here - other.here, drawn: pairs.map(|(a, b)| a - b).collect() }
    }

    /// Returns the percentile interval, extended to the value itself if the value is outside.
    pub(super) fn interval(&self) -> Interval {
        let mean = self.here;
        if self.drawn.is_empty() {
            return Interval::single(mean);
        }
        let end = |share| nearest_rank(self.drawn.clone(), share);
        Interval { mean, low: end(0.025).min(mean), high: end(0.975).max(mean), runs: 0 }
    }
}

/// Returns the smallest value that at least this share of the values does not exceed. `values` has
/// at least one value.
pub(super) fn nearest_rank(mut values: Vec<f64>, share: f64) -> f64 {
    let rank = (share * values.len() as f64 - 1e-9).ceil() as usize;
    let at = rank.clamp(1, values.len()) - 1;
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

fn from_sums(
    policies: Vec<Judged>,
    order: &[(&str, &str)],
    sums: &Costs<'_>,
) -> Result<Regrets, RegretError> {
    let candidates: Vec<usize> =
        (0..policies.len()).filter(|at| policies[*at].is_candidate).collect();
    let Some(&first) = candidates.first() else { return Err(RegretError::Nothing) };
    let mut regrets = vec![Vec::with_capacity(order.len()); policies.len()];
    let mut best = Vec::with_capacity(order.len());
    for &(trace, size) in order {
        let of_cell = &sums[&(trace, size)];
        let mean = |policy: usize| match of_cell.get(policy) {
            Some((sum, count)) if *count > 0 => Ok(sum / f64::from(*count)),
            _ => Err(RegretError::Missing {
                policy: policies[policy].name.clone(),
                trace: trace.to_string(),
                size: size.to_string(),
            }),
        };
        let means = (0..policies.len()).map(mean).collect::<Result<Vec<f64>, _>>()?;
        let mut least = first;
        for &at in &candidates {
            if means[at] < means[least] {
                least = at;
            }
        }
        if means[least] <= 0.0 {
            return Err(RegretError::Free { trace: trace.to_string(), size: size.to_string() });
        }
        best.push(least);
        for (policy, mean) in means.iter().enumerate() {
            regrets[policy].push(mean / means[least] - 1.0);
        }
    }
    let cells = order.iter().map(|(trace, size)| (trace.to_string(), size.to_string())).collect();
    Ok(Regrets { policies, cells, regrets, best })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(trace: &str, size: &str, policy: &str, cost: f64) -> CellCost {
        let [trace, size, policy] = [trace, size, policy].map(str::to_string);
        CellCost { trace, size, is_candidate: policy != "opt", policy, cost }
    }

    /// Returns costs of ten traces of two sizes: `a` is best except on one trace, `b` is 10 % above
    /// it.
    fn rows() -> Vec<CellCost> {
        let mut rows = Vec::new();
        for trace in 0..10 {
            let name = format!("t{trace}");
            for size in ["5%", "10%"] {
                rows.push(cost(&name, size, "a", if trace == 9 { 200.0 } else { 100.0 }));
                rows.push(cost(&name, size, "b", 110.0));
            }
        }
        rows
    }

    #[test]
    fn regret_is_cost_over_the_best_of_the_cell() {
        let regrets = Regrets::of(&rows()).unwrap();
        assert!(regrets.policies().eq(["a", "b"]));
        assert_eq!((regrets.cells().len(), regrets.traces()), (20, 10));
        let summary = regrets.summary(Bootstrap::default(), Some(1));
        let [a, b] = &summary[..] else { panic!("{summary:?}") };
        assert_eq!((a.policy.as_str(), a.wins, b.wins), ("a", 18, 2));
        assert_eq!((a.median.mean, a.p90.mean), (0.0, 0.0));
        assert!((a.worst - (200.0 / 110.0 - 1.0)).abs() < 1e-12);
        assert_eq!(a.worst_at, ("t9".to_string(), "5%".to_string()), "the first of two");
        assert!((b.p90.mean - 0.1).abs() < 1e-12 && b.p90.mean == b.worst);
        assert_eq!((regrets.best(0), regrets.best(19)), ("a", "b"));
    }

    #[test]
    fn the_interval_is_over_traces_and_spans_what_a_trace_can_change() {
        let regrets = Regrets::of(&rows()).unwrap();
        let summary = regrets.summary(Bootstrap::default(), Some(1));
        // With the trace t9 twice in a sample, more than a tenth of its cells are bad for a; b has
        // 0.1 in nearly all of them.
        assert_eq!(summary[0].p90.low, 0.0);
        assert!((summary[0].p90.high - summary[0].worst).abs() < 1e-12);
        assert!((summary[1].p90.low - 0.1).abs() < 1e-12, "{summary:?}");
        let beside = summary[0].beside.unwrap();
        assert!((beside.mean + 0.1).abs() < 1e-12, "{beside}");
        assert!(beside.low < 0.0 && beside.high > 0.0, "one trace decides: {beside}");
        assert_eq!(summary[1].beside.map(|b| (b.low, b.mean, b.high)), Some((0.0, 0.0, 0.0)));
        // Equal seeds give equal ends; without draws there is no interval.
        assert_eq!(regrets.summary(Bootstrap::default(), Some(1)), summary);
        let point = &regrets.summary(Bootstrap { draws: 0, seed: 1 }, None)[0];
        assert_eq!((point.p90.low, point.p90.high, point.beside), (0.0, 0.0, None));
    }

    #[test]
    fn a_policy_that_is_better_everywhere_is_so_for_sure() {
        let traces = ["x", "y", "z"];
        let both = |t: &&str| [cost(t, "1", "good", 1.0), cost(t, "1", "bad", 2.0)];
        let regrets = Regrets::of(&traces.iter().flat_map(both).collect::<Vec<_>>()).unwrap();
        let summary = regrets.summary(Bootstrap::default(), Some(1));
        let beside = summary[0].beside.unwrap();
        assert_eq!((beside.low, beside.high), (-1.0, -1.0));
    }

    #[test]
    fn nobody_regrets_what_a_bound_does_better() {
        let costs = [("a", 12.0), ("opt", 9.0), ("b", 10.0)].map(|(p, c)| cost("t", "1", p, c));
        let regrets = Regrets::of(&costs).unwrap();
        let summary = regrets.summary(Bootstrap::default(), None);
        let found: Vec<_> =
            summary.iter().map(|r| (r.policy.as_str(), r.is_candidate, r.wins)).collect();
        assert_eq!(found, [("opt", false, 0), ("b", true, 1), ("a", true, 0)]);
        assert!((summary[0].p90.mean + 0.1).abs() < 1e-12, "{summary:?}");
        assert!((summary[2].p90.mean - 0.2).abs() < 1e-12, "{summary:?}");
        assert_eq!(Regrets::of(&costs[1..2]), Err(RegretError::Nothing));
    }

    #[test]
    fn seeds_are_averaged_before_anything_is_compared() {
        let costs = [
            cost("t", "1", "drawn", 90.0),
            cost("t", "1", "drawn", 130.0),
            cost("t", "1", "fixed", 100.0),
        ];
        let regrets = Regrets::of(&costs).unwrap();
        assert_eq!(regrets.best(0), "fixed", "one seed of the other is luck");
        assert!((regrets.of_policy(0)[0] - 0.1).abs() < 1e-12);
    }

    #[test]
    fn quantiles_are_values_that_are_there() {
        let ten: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        for (share, expected) in [(0.5, 5.0), (0.9, 9.0), (0.91, 10.0), (1.0, 10.0), (0.0, 1.0)] {
            assert_eq!(nearest_rank(ten.clone(), share), expected, "{share}");
        }
        assert_eq!(nearest_rank(vec![3.0], 0.9), 3.0);
        assert_eq!(nearest_rank((1..=40).map(f64::from).collect(), 0.9), 36.0);
    }

    #[test]
    fn what_is_no_comparison_is_refused() {
        assert_eq!(Regrets::of(&[]), Err(RegretError::Nothing));
        let mut rows = rows();
        rows.pop();
        let error = Regrets::of(&rows).unwrap_err();
        let says = "b has no cost for t9 at 10%, which others have: run that cell, too";
        assert_eq!(error.to_string(), says);
        let free = [cost("t", "1", "a", 0.0), cost("t", "1", "b", 5.0)];
        assert!(matches!(Regrets::of(&free), Err(RegretError::Free { .. })));
        for wrong in [-1.0, f64::NAN, f64::INFINITY] {
            let error = Regrets::of(&[cost("t", "1", "a", wrong)]).unwrap_err();
            assert!(matches!(error, RegretError::Cost { .. }), "{error}");
        }
    }
}
