//! Regrets of repeated runs, such as live ones: intervals over the repetitions.
//!
//! [`Regrets`] estimates the results of other traces, and draws traces. Live workloads are few and
//! chosen by hand, so only the results of other repetitions can be estimated. A sample draws as
//! many repetitions as there are, with replacement, the same ones for every policy and cell. Each
//! sample determines the best policy of a cell anew, because that choice is uncertain too.

use millpond_policies::parts::Random;

use super::regret::{Bootstrap, CellCost, Drawn, Regret, RegretError, Regrets, nearest_rank};

/// Returns each policy's regrets over the cells of all repetitions, the least 90th percentile
/// first. The 90th percentiles are compared with that of the policy `beside`.
///
/// With few repetitions the intervals are too narrow: those of five have 0.63 of the width that
/// Student's t would give them.
///
/// # Errors
/// [`RegretError`]; a policy must have each cell in each repetition.
pub fn repeated(
    repetitions: &[Vec<CellCost>],
    bootstrap: Bootstrap,
    beside: Option<&str>,
) -> Result<Vec<Regret>, RegretError> {
    let regrets = Regrets::of(&repetitions.concat())?;
    let names: Vec<String> = regrets.policies().map(str::to_string).collect();
    let number = |policy: &str| names.iter().position(|name| name == policy);
    let costs = repetitions
        .iter()
        .map(|repetition| costs_of(repetition, &names, regrets.cells()))
        .collect::<Result<Vec<_>, _>>()?;
    let points = regrets.summary(Bootstrap { draws: 0, ..bootstrap }, None);
    let is_candidate: Vec<bool> = names
        .iter()
        .map(|name| points.iter().any(|p| p.policy == *name && p.is_candidate))
        .collect();
    let random = Random::new(bootstrap.seed);
    // Median and 90th percentile of each sample, by policy.
    let mut drawn = vec![[Vec::new(), Vec::new()]; names.len()];
    for _ in 0..bootstrap.draws {
        let sample: Vec<u32> = random.sample(costs.len(), costs.len() as u32).collect();
        for (policy, regrets) in of_sample(&costs, &sample, &is_candidate).into_iter().enumerate() {
            drawn[policy][0].push(nearest_rank(regrets.clone(), 0.5));
            drawn[policy][1].push(nearest_rank(regrets, 0.9));
        }
    }
    let p90 = |policy: usize| Drawn {
        here: nearest_rank(regrets.of_policy(policy).to_vec(), 0.9),
        drawn: drawn[policy][1].clone(),
    };
    let base = beside.and_then(number).map(p90);
    let with_intervals = |point: Regret| match number(&point.policy) {
        None => point,
        Some(policy) => {
            let (here, of_medians) = (point.median.mean, drawn[policy][0].clone());
            let p90 = p90(policy);
            Regret {
                median: Drawn { here, drawn: of_medians }.interval(),
                beside: base.as_ref().map(|base| p90.less(base).interval()),
                p90: p90.interval(),
                ..point
            }
        }
    };
    Ok(points.into_iter().map(with_intervals).collect())
}

/// Returns the costs of a repetition by policy, then by cell.
fn costs_of(
    repetition: &[CellCost],
    names: &[String],
    cells: &[(String, String)],
) -> Result<Vec<Vec<f64>>, RegretError> {
    let cost = |policy: &String, (trace, size): &(String, String)| {
        let of_cell = |c: &&CellCost| c.policy == *policy && c.trace == *trace && c.size == *size;
        let missing = || RegretError::Missing {
            policy: policy.clone(),
            trace: trace.clone(),
            size: size.clone(),
        };
        repetition.iter().find(of_cell).map(|cell| cell.cost).ok_or_else(missing)
    };
    let of_policy = |policy| cells.iter().map(|cell| cost(policy, cell)).collect();
    names.iter().map(of_policy).collect()
}

/// Returns the regrets of a sample of repetitions by policy, then by cell.
fn of_sample(costs: &[Vec<Vec<f64>>], sample: &[u32], is_candidate: &[bool]) -> Vec<Vec<f64>> {
    let sum = |policy: usize, cell: usize| -> f64 {
        sample.iter().map(|repetition| costs[*repetition as usize][policy][cell]).sum()
    };
    let cells = costs.first().and_then(|first| first.first()).map_or(0, Vec::len);
    let mut regrets = vec![Vec::with_capacity(cells); is_candidate.len()];
    for cell in 0..cells {
        let sums: Vec<f64> = (0..is_candidate.len()).map(|policy| sum(policy, cell)).collect();
        let of_candidates = sums.iter().zip(is_candidate).filter(|(_, is)| **is);
        let least = of_candidates.map(|(sum, _)| *sum).fold(f64::INFINITY, f64::min);
        for (policy, sum) in sums.iter().enumerate() {
            // A cell without cost in a sample causes no regret.
            regrets[policy].push(if least > 0.0 { sum / least - 1.0 } else { 0.0 });
        }
    }
    regrets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(size: &str, policy: &str, cost: f64) -> CellCost {
        let [trace, size, policy] = ["t", size, policy].map(str::to_string);
        CellCost { trace, size, is_candidate: policy != "opt", policy, cost }
    }

    /// Returns costs for ten sizes: `steady` costs a tenth more than `best` in each repetition,
    /// `wild` 0 to 40 % more, depending on the repetition.
    fn rows() -> Vec<Vec<CellCost>> {
        let of = |repetition: u32| {
            (0..10).flat_map(move |size| {
                let (size, wild) = (format!("{size}%"), 100.0 + 10.0 * f64::from(repetition));
                [("best", 100.0), ("steady", 110.0), ("wild", wild), ("opt", 90.0)]
                    .map(|(policy, c)| cost(&size, policy, c))
            })
        };
        (0..5).map(|repetition| of(repetition).collect()).collect()
    }

    #[test]
    fn intervals_are_as_wide_as_repetitions_differ() {
        let all = repeated(&rows(), Bootstrap::default(), Some("steady")).unwrap();
        let of = |policy: &str| all.iter().find(|r| r.policy == policy).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let (steady, wild) = (of("steady"), of("wild"));
        assert!(near(steady.p90.low, 0.1) && near(steady.p90.high, 0.1), "{steady:?}");
        assert!(near(wild.p90.mean, 0.2) && wild.p90.low < 0.1 && wild.p90.high > 0.3, "{wild:?}");
        assert!(wild.median.low < 0.1 && wild.median.high > 0.3, "{wild:?}");
        let beside = wild.beside.unwrap();
        assert!(near(beside.mean, 0.1) && beside.low < 0.0 && beside.high > 0.2, "{beside}");
        assert_eq!((of("best").wins, of("opt").wins), (10, 0));
        assert!(near(of("opt").p90.mean, -0.1), "a bound is nobody's regret");
        // Sorted by the 90th percentile; equal seeds give equal ends.
        let order: Vec<_> = all.iter().map(|r| r.policy.as_str()).collect();
        assert_eq!(order, ["opt", "best", "steady", "wild"]);
        assert_eq!(repeated(&rows(), Bootstrap::default(), Some("steady")).unwrap(), all);
    }

    #[test]
    fn a_cell_that_one_repetition_lacks_is_named() {
        let mut rows = rows();
        rows[3].retain(|c| (c.policy.as_str(), c.size.as_str()) != ("wild", "7%"));
        let error = repeated(&rows, Bootstrap::default(), None).unwrap_err();
        let says = "wild has no cost for t at 7%, which others have: run that cell, too";
        assert_eq!(error.to_string(), says);
        assert_eq!(repeated(&[], Bootstrap::default(), None), Err(RegretError::Nothing));
    }
}
