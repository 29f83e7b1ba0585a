//! Drawing row numbers: a distribution of ranks, spread over the rows.

use super::scramble::Scramble;
use super::zeta::zeta;
use super::zipf::Zipf;
use crate::generate::{Formula, Random};

/// Frequency of each rank.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Distribution {
    /// All ranks equally often.
    Uniform,
    /// Rank k (from 1) in proportion to k^−θ, exactly, for any θ ≥ 0: see [`Zipf`].
    Zipf {
        /// The exponent θ.
        theta: f64,
    },
    /// YCSB's closed formula (Gray et al., SIGMOD '94): exact for the first two ranks, approximate
    /// for the others. Meant for θ below 1.
    Ycsb {
        /// The exponent θ.
        theta: f64,
    },
    /// The Zipf distribution over the age of rows, by YCSB's formula, with the newest row most
    /// often.
    Latest {
        /// The exponent θ.
        theta: f64,
    },
}

impl Distribution {
    /// Returns the exponent, 0 for a uniform distribution.
    pub fn theta(self) -> f64 {
        match self {
            Distribution::Uniform => 0.0,
            Distribution::Zipf { theta }
            | Distribution::Ycsb { theta }
            | Distribution::Latest { theta } => theta,
        }
    }
}

/// Reason that there is no chooser with these parameters.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChooserError {
    /// There are no rows to choose from.
    #[error("there are no rows to choose from")]
    NoRows,
    /// The exponent is negative or no number.
    #[error("the Zipf exponent is {theta}: it must be 0 or more")]
    Theta {
        /// The exponent.
        theta: f64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Ranks {
    Uniform,
    Zipf(Zipf),
    Ycsb(Formula),
    Latest(Formula),
}

/// Draws row numbers from 0 to n − 1.
#[derive(Clone, Copy, Debug)]
pub struct Chooser {
    ranks: Ranks,
    scramble: Scramble,
    rows: u64,
}

impl Chooser {
    /// Creates a chooser among `rows` rows. [`Distribution::Latest`] is never scrambled.
    pub fn new(
        distribution: Distribution,
        scramble: Scramble,
        rows: u64,
    ) -> Result<Chooser, ChooserError> {
        let theta = distribution.theta();
        if rows == 0 {
            return Err(ChooserError::NoRows);
        }
        if !(0.0..=1e6).contains(&theta) {
            return Err(ChooserError::Theta { theta });
        }
        let formula = || Formula::new(rows as f64, theta, zeta(rows, theta));
        let ranks = match distribution {
            Distribution::Uniform => Ranks::Uniform,
            Distribution::Zipf { theta } => Ranks::Zipf(Zipf::new(rows, theta)),
            Distribution::Ycsb { .. } => Ranks::Ycsb(formula()),
            Distribution::Latest { .. } => Ranks::Latest(formula()),
        };
        let scramble = match ranks {
            Ranks::Uniform | Ranks::Latest(_) => Scramble::Off,
            _ => scramble,
        };
        Ok(Chooser { ranks, scramble, rows })
    }

    /// Returns the number of rows that it chooses among.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Draws a row number, or for [`Distribution::Latest`] the row's age: 0 is the newest row,
    /// which the caller knows.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        let rank = match &self.ranks {
            Ranks::Uniform => return random.below(self.rows),
            Ranks::Zipf(zipf) => zipf.draw(random),
            Ranks::Ycsb(formula) | Ranks::Latest(formula) => formula.rank(random.unit()),
        };
        // With more than 2⁵³ rows, a rank may round up to the end.
        self.scramble.row(rank.min(self.rows - 1), self.rows)
    }

    /// Returns `true` if [`Chooser::draw`] returns ages instead of row numbers.
    #[inline]
    pub fn draws_ages(&self) -> bool {
        matches!(self.ranks, Ranks::Latest(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_base::Seed;

    fn counts(distribution: Distribution, scramble: Scramble, rows: u64, draws: u32) -> Vec<u32> {
        let chooser = Chooser::new(distribution, scramble, rows).unwrap();
        let mut random = Random::new(Seed(9));
        let mut counts = vec![0u32; rows as usize];
        for _ in 0..draws {
            counts[chooser.draw(&mut random) as usize] += 1;
        }
        counts
    }

    #[test]
    fn uniform_choices_pass_a_chi_square_test() {
        let counts = counts(Distribution::Uniform, Scramble::Permute, 1000, 1_000_000);
        let sum: f64 = counts.iter().map(|c| (f64::from(*c) - 1000.0).powi(2) / 1000.0).sum();
        let bound = 999.0 + 5.0 * (2.0f64 * 999.0).sqrt();
        assert!(sum < bound, "χ² {sum}");
    }

    #[test]
    fn the_exponent_weighs_ranks_and_not_the_universe() {
        // A sum of 1/n where 1/i is meant would draw only the first two ranks at θ = 0.99.
        for distribution in [Distribution::Zipf { theta: 0.99 }, Distribution::Ycsb { theta: 0.99 }]
        {
            let counts = counts(distribution, Scramble::Off, 10_000, 400_000);
            let share = |ranks: std::ops::Range<usize>| {
                f64::from(counts[ranks].iter().sum::<u32>()) / 400_000.0
            };
            let exact = |ranks: u64| zeta(ranks, 0.99) / zeta(10_000, 0.99);
            for ranks in [1, 2, 100, 1000, 5000] {
                let off = (share(0..ranks as usize) - exact(ranks)).abs();
                assert!(off < 0.02, "{distribution:?}: {ranks} ranks off by {off}");
            }
            assert!(share(5000..10_000) > 0.05, "{distribution:?} never draws the tail");
        }
    }

    #[test]
    fn a_permutation_keeps_the_shares_and_moves_the_rows() {
        let theta = 0.9;
        let plain = counts(Distribution::Zipf { theta }, Scramble::Off, 5000, 200_000);
        let mut moved = counts(Distribution::Zipf { theta }, Scramble::Permute, 5000, 200_000);
        assert_ne!(plain, moved);
        for (rank, count) in plain.iter().enumerate() {
            let row = Scramble::Permute.row(rank as u64, 5000) as usize;
            assert_eq!(moved[row], *count, "rank {rank}");
            moved[row] = 0;
        }
        assert!(moved.iter().all(|left| *left == 0));
    }

    #[test]
    fn latest_draws_small_ages_most() {
        let latest = Distribution::Latest { theta: 0.99 };
        let chooser = Chooser::new(latest, Scramble::Permute, 100).unwrap();
        assert!(chooser.draws_ages());
        let counts = counts(latest, Scramble::Permute, 1000, 100_000);
        let exact = 100_000.0 / zeta(1000, 0.99);
        assert!((f64::from(counts[0]) - exact).abs() < 0.03 * 100_000.0);
        assert!(counts[0] > counts[10] && counts[10] > counts[500]);
    }

    #[test]
    fn the_same_seed_draws_the_same_rows_and_bad_parameters_are_errors() {
        let once = counts(Distribution::Zipf { theta: 1.2 }, Scramble::Hash, 777, 5000);
        assert_eq!(once, counts(Distribution::Zipf { theta: 1.2 }, Scramble::Hash, 777, 5000));
        let no_rows = Chooser::new(Distribution::Uniform, Scramble::Off, 0);
        assert_eq!(no_rows.unwrap_err(), ChooserError::NoRows);
        for theta in [-0.1, f64::NAN, f64::INFINITY] {
            let bad = Chooser::new(Distribution::Ycsb { theta }, Scramble::Off, 5);
            assert!(matches!(bad.unwrap_err(), ChooserError::Theta { .. }));
        }
    }
}
