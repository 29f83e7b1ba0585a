//! Scores by the joint method over pool sizes (luan 3.4.3), and the agreement of rankings with
//! his.

use super::policies::{NAMES, THIRTEEN};
use crate::experiment::Grid;
use millpond_lab::interval::Interval;
use millpond_lab::method::{Better, Joint, Marks, Weights, spearman};
use millpond_lab::table::{Table, Value};

/// Scores of his policies by hit ratio, at all sizes common to all of them.
pub(super) struct Scores {
    pub joint: Joint,
    /// Scores by policy, in the order of [`NAMES`].
    pub scores: Vec<f64>,
}

impl Scores {
    /// Computes scores from means over the repetitions of a grid of policies and sizes; `None`
    /// without two sizes.
    pub fn of(grid: &Grid) -> Option<Scores> {
        Scores::at(grid, &grid.labels(1))
    }

    /// Computes scores like [`Scores::of`], at some sizes only.
    pub fn at(grid: &Grid, sizes: &[&str]) -> Option<Scores> {
        let sizes: Vec<&str> = sizes
            .iter()
            .copied()
            .filter(|size| NAMES.iter().all(|policy| grid.mean(&[policy, size]).is_some()))
            .collect();
        if sizes.len() < 2 {
            return None;
        }
        let of_policy = |policy: &&str| -> Vec<f64> {
            sizes.iter().filter_map(|size| grid.mean(&[policy, size])).collect()
        };
        let values: Vec<Vec<f64>> = NAMES.iter().map(of_policy).collect();
        let joint = Joint::of(&values, Better::Larger);
        Some(Scores { scores: joint.scores(Weights::default()), joint })
    }

    /// Returns a policy's score.
    pub fn score(&self, policy: &str) -> Option<f64> {
        let at = NAMES.iter().position(|name| *name == policy)?;
        self.scores.get(at).copied()
    }

    /// Returns the policy's place; the best is 1.
    pub fn place(&self, policy: &str) -> Option<usize> {
        let ranking = self.joint.ranking(Weights::default());
        ranking.iter().position(|at| NAMES[*at] == policy).map(|place| place + 1)
    }

    /// Returns the rank correlation with his table 5.
    pub fn agreement(&self) -> Option<f64> {
        self.agreement_with(&THIRTEEN.map(|policy| policy.2))
    }

    /// Returns the rank correlation with scores of another of his tables, by policy as in
    /// [`NAMES`].
    pub fn agreement_with(&self, his: &[f64; 13]) -> Option<f64> {
        spearman(&self.scores, his)
    }

    /// Formats a row of marks like his tables.
    pub fn marks(marks: &Marks, at: usize) -> String {
        let row = marks.0.get(at).map_or(&[][..], Vec::as_slice);
        row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the rank correlation with his table 5, computed in each repetition, over the
/// repetitions.
pub(super) fn agreement(rows: &Table) -> Option<Interval> {
    over_repetitions(rows, Scores::agreement)
}

/// Returns a number computed from each repetition's scores, over the repetitions.
pub(super) fn over_repetitions(
    rows: &Table,
    number: impl Fn(&Scores) -> Option<f64>,
) -> Option<Interval> {
    each_repetition(rows, |of_it| {
        number(&Scores::of(&Grid::of(of_it, &["policy", "size"], "hit_ratio"))?)
    })
}

/// Returns a number computed from each repetition's rows, over the repetitions that have it.
pub(super) fn each_repetition(
    rows: &Table,
    number: impl Fn(&Table) -> Option<f64>,
) -> Option<Interval> {
    let mut repetitions: Vec<String> = Vec::new();
    for row in 0..rows.rows.len() {
        let name = rows.get(row, "repetition").map(Value::to_string).unwrap_or_default();
        if !repetitions.contains(&name) {
            repetitions.push(name);
        }
    }
    let each =
        repetitions.iter().filter_map(|repetition| number(&rows.only("repetition", repetition)));
    Interval::of(&each.collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes hit ratios that follow his scores, or oppose them.
    fn rows(sign: f64) -> Table {
        let mut table = Table::new(["policy", "size", "repetition", "hit_ratio"]);
        for (policy, _, score, ..) in THIRTEEN {
            for size in 1u64..=20 {
                for repetition in 1u64..=2 {
                    let hit = 50.0 + sign * score + size as f64 * (1.0 + score * 1e-3);
                    let row: [Value; 4] =
                        [policy.into(), size.into(), repetition.into(), hit.into()];
                    table.rows.push(row.to_vec());
                }
            }
        }
        table
    }

    #[test]
    fn hit_ratios_that_follow_his_scores_agree_with_them() {
        let same = rows(1.0);
        let scores = Scores::of(&Grid::of(&same, &["policy", "size"], "hit_ratio")).unwrap();
        assert_eq!(scores.score("LIRS"), Some(-24.0), "<< beside all others in both tests");
        assert_eq!((scores.place("FBR"), scores.place("LIRS")), (Some(1), Some(13)));
        // His equal scores differ here.
        assert!(scores.agreement().unwrap() > 0.98, "{:?}", scores.agreement());
        assert!(Scores::marks(&scores.joint.t, 8).starts_with("<< << <<"));
        assert!(agreement(&same).unwrap().low > 0.98);
        assert!(agreement(&rows(-1.0)).unwrap().high < -0.98);
        assert_eq!(agreement(&Table::new(["policy", "repetition"])), None);
    }
}
