//! Luan's joint method: a table of marks for each test, their scores, and the ranking (luan 3.4.3).

use std::cmp::Ordering;
use std::fmt;

use super::paired::{Outcome, sign_test, t_test};

/// Largest p-value that gives `>` or `<`.
const CLEAR: f64 = 0.05;
/// Largest p-value that gives `>>` or `<<`.
const VERY_CLEAR: f64 = 0.01;

/// Direction in which the values of a metric are better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// Larger values, such as hit ratios and throughput.
    Larger,
    /// Smaller values, such as misses and execution time.
    Smaller,
}

/// Mark of one policy against another one in one test.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mark {
    /// `<<`: worse, with a p-value of at most 0.01.
    MuchWorse,
    /// `<`: worse, with a p-value of at most 0.05.
    Worse,
    /// `=`: no difference was shown, which does not prove equality.
    Equal,
    /// `>`: better, with a p-value of at most 0.05.
    Better,
    /// `>>`: better, with a p-value of at most 0.01.
    MuchBetter,
}

impl Mark {
    /// Returns the mark for a test's outcome.
    pub fn of(outcome: Outcome, better: Better) -> Mark {
        let is_better = match (outcome.first_is, better) {
            (Ordering::Equal, _) => return Mark::Equal,
            (Ordering::Greater, Better::Larger) | (Ordering::Less, Better::Smaller) => true,
            _ => false,
        };
        match (outcome.p <= VERY_CLEAR, outcome.p <= CLEAR, is_better) {
            (true, _, true) => Mark::MuchBetter,
            (true, _, false) => Mark::MuchWorse,
            (_, true, true) => Mark::Better,
            (_, true, false) => Mark::Worse,
            _ => Mark::Equal,
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mark::MuchWorse => "<<",
            Mark::Worse => "<",
            Mark::Equal => "=",
            Mark::Better => ">",
            Mark::MuchBetter => ">>",
        })
    }
}

/// Weights of the marks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Weights {
    /// Weight of `>`, and negated of `<`: Luan's α.
    pub clear: f64,
    /// Weight of `>>`, and negated of `<<`: Luan's β.
    pub very_clear: f64,
    /// Weight of `=`: Luan's γ.
    pub equal: f64,
}

/// Luan's weights: 1, 2 and 0.
impl Default for Weights {
    fn default() -> Weights {
        Weights { clear: 1.0, very_clear: 2.0, equal: 0.0 }
    }
}

impl Weights {
    fn of(self, mark: Mark) -> f64 {
        match mark {
            Mark::MuchWorse => -self.very_clear,
            Mark::Worse => -self.clear,
            Mark::Equal => self.equal,
            Mark::Better => self.clear,
            Mark::MuchBetter => self.very_clear,
        }
    }
}

/// The marks of each policy (row) against each policy (column), as Luan's tables 3 and 4 print
/// them. A policy is `=` to itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Marks(pub Vec<Vec<Mark>>);

impl Marks {
    fn of(values: &[Vec<f64>], better: Better, test: fn(&[f64], &[f64]) -> Outcome) -> Marks {
        let row = |a: &Vec<f64>| values.iter().map(|b| Mark::of(test(a, b), better)).collect();
        Marks(values.iter().map(row).collect())
    }

    /// Returns the sum of the weights in each row.
    pub fn scores(&self, weights: Weights) -> Vec<f64> {
        self.0.iter().map(|row| row.iter().map(|mark| weights.of(*mark)).sum()).collect()
    }
}

/// The marks of both tests for all pairs of some policies.
#[derive(Clone, PartialEq, Debug)]
pub struct Joint {
    /// Marks of the t-test.
    pub t: Marks,
    /// Marks of the sign test.
    pub sign: Marks,
}

impl Joint {
    /// Compares policies by their values: one value for each policy and cache size, with sizes in
    /// the same order. Values are means over seeds if there are several.
    ///
    /// ```
    /// # use millpond_lab::method::{Better, Joint, Weights};
    /// let hit_ratios = [vec![0.50, 0.61, 0.72, 0.80, 0.91], vec![0.40, 0.52, 0.60, 0.71, 0.80]];
    /// let joint = Joint::of(&hit_ratios, Better::Larger);
    /// assert_eq!(joint.t.0[0][1].to_string(), ">>");
    /// // Five of five are 1 in 32.
    /// assert_eq!(joint.sign.0[0][1].to_string(), ">");
    /// assert_eq!(joint.scores(Weights::default()), [1.5, -1.5]);
    /// ```
    pub fn of(values: &[Vec<f64>], better: Better) -> Joint {
        let marks = |test| Marks::of(values, better, test);
        Joint { t: marks(t_test), sign: marks(sign_test) }
    }

    /// Returns the mean of both scores of each policy.
    pub fn scores(&self, weights: Weights) -> Vec<f64> {
        let (t, sign) = (self.t.scores(weights), self.sign.scores(weights));
        t.iter().zip(sign).map(|(t, sign)| (t + sign) / 2.0).collect()
    }

    /// Returns the policies' indexes, the best score first; equal scores keep the order of the
    /// policies.
    pub fn ranking(&self, weights: Weights) -> Vec<usize> {
        let scores = self.scores(weights);
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policies in the order of Luan's tables.
    const POLICIES: [&str; 13] = [
        "GCLOCK",
        "CLOCK",
        "LRU",
        "2Q-Simple",
        "2Q-Full",
        "ARC",
        "CAR",
        "CART",
        "LIRS",
        "LRFU",
        "FBR",
        "LRU-2",
        "CLOCK-Pro",
    ];

    /// Luan's table 3.
    const TABLE_3: &str = "
        =  =  =  >  =  =  =  >> >> =  =  >> >>
        =  =  << >  =  =  =  >> >> =  =  >> >>
        =  >> =  >  >  >  >> >> >> =  =  >> >>
        <  <  <  =  <  <  <  =  >> <  <  =  =
        =  =  <  >  =  =  =  >> >> =  =  >> >>
        =  =  <  >  =  =  >  >> >> =  =  >> >>
        =  =  << >  =  <  =  >> >> =  =  >> >>
        << << << =  << << << =  >> =  <  =  >>
        << << << << << << << << =  << << << <<
        =  =  =  >  =  =  =  =  >> =  << >> >>
        =  =  =  >  =  =  =  >  >> >> =  >> >>
        << << << =  << << << =  >> << << =  =
        << << << =  << << << << << << << =  =";

    /// Luan's table 4.
    const TABLE_4: &str = "
        =  >  =  =  =  =  >> >> >> =  << >> >>
        <  =  << =  =  =  =  =  >> <  << =  >>
        =  >> =  >> >  =  >> >> >> =  <  >> >>
        =  =  << =  << =  =  =  >> <  << =  =
        =  =  <  >> =  =  =  =  >> =  << >  >>
        =  =  =  =  =  =  =  =  >> =  << =  >>
        << =  << =  =  =  =  >  >> <  << =  >>
        << =  << =  =  =  <  =  >> << << =  >>
        << << << << << << << << =  << << << <<
        =  >  =  >  =  =  >  >> >> =  << =  >>
        >> >> >  >> >> >> >> >> >> >> =  >> >>
        << =  << =  <  =  =  =  >> =  << =  =
        << << << =  << << << << >> << << =  =";

    /// Luan's table 5. It prints −16 for CLOCK-Pro. That follows from the tables only if the cell
    /// of CLOCK-Pro beside LIRS in table 3 is `>>`, which the cell of LIRS beside CLOCK-Pro and
    /// table 4 confirm.
    const TABLE_5: [(&str, f64); 13] = [
        ("LIRS", -24.0),
        ("CLOCK-Pro", -16.0),
        ("LRU-2", -9.5),
        ("CART", -7.0),
        ("2Q-Simple", -5.5),
        ("CAR", 2.0),
        ("CLOCK", 2.5),
        ("ARC", 5.5),
        ("2Q-Full", 6.0),
        ("LRFU", 6.0),
        ("GCLOCK", 9.0),
        ("LRU", 14.5),
        ("FBR", 16.5),
    ];

    fn marks(table: &str) -> Marks {
        let mark = |text: &str| {
            use Mark::{Better, Equal, MuchBetter, MuchWorse, Worse};
            let all = [MuchWorse, Worse, Equal, Better, MuchBetter];
            all.into_iter().find(|mark| mark.to_string() == text).unwrap()
        };
        let rows = table.trim().lines();
        Marks(rows.map(|row| row.split_whitespace().map(mark).collect()).collect())
    }

    #[test]
    fn his_table_5_follows_from_his_tables_3_and_4_but_for_one_cell() {
        let mut joint = Joint { t: marks(TABLE_3), sign: marks(TABLE_4) };
        let score = |joint: &Joint, name: &str| {
            let at = POLICIES.iter().position(|policy| *policy == name).unwrap();
            joint.scores(Weights::default())[at]
        };
        for (name, printed) in TABLE_5 {
            let follows = if name == "CLOCK-Pro" { -18.0 } else { printed };
            assert_eq!(score(&joint, name), follows, "{name}");
        }
        joint.t.0[12][8] = Mark::MuchBetter;
        assert_eq!(score(&joint, "CLOCK-Pro"), -16.0);
        let best = joint.ranking(Weights::default())[..3].to_vec();
        assert_eq!(
            best.iter().map(|at| POLICIES[*at]).collect::<Vec<_>>(),
            ["FBR", "LRU", "GCLOCK"]
        );
    }

    #[test]
    fn marks_follow_the_levels_and_the_metric() {
        let outcome = |p, first_is| Outcome { p, first_is };
        let mark = |p, first_is| Mark::of(outcome(p, first_is), Better::Larger);
        assert_eq!(mark(0.01, Ordering::Greater), Mark::MuchBetter);
        assert_eq!(mark(0.011, Ordering::Greater), Mark::Better);
        assert_eq!(mark(0.05, Ordering::Less), Mark::Worse);
        assert_eq!(mark(0.051, Ordering::Less), Mark::Equal);
        assert_eq!(mark(0.0, Ordering::Equal), Mark::Equal);
        let misses = Mark::of(outcome(0.001, Ordering::Greater), Better::Smaller);
        assert_eq!(misses, Mark::MuchWorse);
    }

    #[test]
    fn each_mark_is_the_other_way_round_for_the_other_policy() {
        let mut random = fastrand::Rng::with_seed(11);
        let values: Vec<Vec<f64>> = (0..6)
            .map(|policy| (0..20).map(|_| random.f64() + f64::from(policy) * 0.12).collect())
            .collect();
        let joint = Joint::of(&values, Better::Larger);
        let mut seen = Vec::new();
        for marks in [&joint.t, &joint.sign] {
            for (a, row) in marks.0.iter().enumerate() {
                for (b, mark) in row.iter().enumerate() {
                    let other = Weights::default().of(marks.0[b][a]);
                    assert_eq!(Weights::default().of(*mark), -other);
                    seen.push(*mark);
                }
                assert_eq!(row[a], Mark::Equal);
            }
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 5, "{seen:?}");
        assert_eq!(joint.ranking(Weights::default())[0], 5);
    }
}
