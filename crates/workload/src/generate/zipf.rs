//! Zipf-distributed ranks: rank k (from 1) has a probability proportional to k^−θ.
//!
//! There are two methods. `table` inverts the cumulative distribution exactly, with a guide table
//! that makes a draw constant time; it costs 12 bytes per rank. `ycsb` evaluates the closed
//! formula of the YCSB benchmark (after Gray et al., SIGMOD '94). The formula is exact for the
//! first two ranks and approximate for the others. It needs no memory, and θ = 1 is taken as its
//! limit.

use super::random::Random;

/// Method of drawing ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZipfMethod {
    /// Exact inversion with tables.
    Table,
    /// YCSB's closed formula.
    Ycsb,
}

/// A sampler of ranks from 0 (the most frequent) to n − 1.
#[derive(Clone, Debug)]
pub struct Zipf(Inner);

#[derive(Clone, Debug)]
enum Inner {
    Table { cumulative: Vec<f64>, guide: Vec<u32> },
    Ycsb(Formula),
}

/// Constants of YCSB's formula.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Formula {
    n: f64,
    theta: f64,
    zeta: f64,
    eta: f64,
    /// Bound of u·zeta below which the rank is 1.
    second: f64,
    /// 1 / (1 − θ), for θ other than 1.
    alpha: f64,
}

/// Returns Σ k^−θ for k from 1 to `n`, with small terms first, so that they count.
fn zeta(n: u32, theta: f64) -> f64 {
    (1..=n).rev().map(|k| f64::from(k).powf(-theta)).sum()
}

impl Zipf {
    /// Creates a sampler of ranks 0 to `n` − 1 with exponent `theta` ≥ 0; `n` of 0 counts as 1.
    pub fn new(n: u32, theta: f64, method: ZipfMethod) -> Zipf {
        let n = n.max(1);
        match method {
            ZipfMethod::Table => Zipf::table(n, theta),
            ZipfMethod::Ycsb => {
                Zipf(Inner::Ycsb(Formula::new(f64::from(n), theta, zeta(n, theta))))
            }
        }
    }

    fn table(n: u32, theta: f64) -> Zipf {
        let total = zeta(n, theta);
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = (1..=n)
            .map(|k| {
                sum += f64::from(k).powf(-theta) / total;
                sum
            })
            .collect();
        // Rounding must not leave a gap above the last rank.
        if let Some(last) = cumulative.last_mut() {
            *last = 1.0;
        }
        let mut guide = Vec::with_capacity(n as usize);
        let mut at = 0u32;
        for slot in 0..n {
            let from = f64::from(slot) / f64::from(n);
            while cumulative[at as usize] <= from {
                at += 1;
            }
            guide.push(at);
        }
        Zipf(Inner::Table { cumulative, guide })
    }

    /// Draws a rank.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u32 {
        let u = random.unit();
        match &self.0 {
            Inner::Table { cumulative, guide } => {
                let slot = ((u * guide.len() as f64) as usize).min(guide.len() - 1);
                let mut at = guide[slot] as usize;
                // The product may round up past a slot's border.
                while at > 0 && cumulative[at - 1] > u {
                    at -= 1;
                }
                while cumulative[at] <= u {
                    at += 1;
                }
                at as u32
            }
            Inner::Ycsb(formula) => formula.rank(u) as u32,
        }
    }
}

impl Formula {
    /// Computes the constants for ranks 0 to `n` − 1, whose k^−θ sum to `zeta`.
    pub(crate) fn new(n: f64, theta: f64, zeta: f64) -> Formula {
        let share = 1.0 - self::zeta(if n < 2.0 { 1 } else { 2 }, theta) / zeta;
        let eta = (1.0 - (2.0 / n).powf(1.0 - theta)) / share;
        let second = 1.0 + 0.5f64.powf(theta);
        Formula { n, theta, zeta, eta, second, alpha: 1.0 / (1.0 - theta) }
    }

    /// Returns the rank of `u`, which is uniform in [0, 1).
    #[inline]
    pub(crate) fn rank(&self, u: f64) -> u64 {
        let last = self.n - 1.0;
        let uz = u * self.zeta;
        if uz < 1.0 || last < 1.0 {
            return 0;
        }
        if uz < self.second || last < 2.0 {
            return 1;
        }
        let rank = if (self.theta - 1.0).abs() < 1e-9 {
            let share = 1.0 - 1.5 / self.zeta;
            self.n * ((self.n / 2.0).ln() * (u - 1.0) / share).exp()
        } else {
            self.n * (self.eta * u - self.eta + 1.0).powf(self.alpha)
        };
        // The formula may reach n itself, which is no rank.
        rank.clamp(0.0, last) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_base::Seed;

    fn shares(n: u32, theta: f64, method: ZipfMethod, draws: u32) -> Vec<f64> {
        let zipf = Zipf::new(n, theta, method);
        let mut random = Random::new(Seed(11));
        let mut counts = vec![0u32; n as usize];
        for _ in 0..draws {
            counts[zipf.draw(&mut random) as usize] += 1;
        }
        counts.iter().map(|c| f64::from(*c) / f64::from(draws)).collect()
    }

    #[test]
    fn the_table_draws_every_rank_with_its_exact_probability() {
        for theta in [0.0, 0.5, 0.99, 1.0, 1.7, 3.0] {
            let total = zeta(50, theta);
            let shares = shares(50, theta, ZipfMethod::Table, 400_000);
            for (k, share) in shares.iter().enumerate() {
                let exact = ((k + 1) as f64).powf(-theta) / total;
                let sigma = (exact * (1.0 - exact) / 400_000.0).sqrt();
                assert!((share - exact).abs() < 5.0 * sigma, "θ {theta} rank {k}");
            }
        }
    }

    #[test]
    fn the_formula_is_exact_for_two_ranks_near_for_the_rest_and_never_out_of_range() {
        for theta in [0.0, 0.5, 0.99, 1.0, 1.5] {
            let exact = 1.0 / zeta(1000, theta);
            let shares = shares(1000, theta, ZipfMethod::Ycsb, 300_000);
            assert!((shares[0] - exact).abs() < 0.004, "θ {theta}: {} {exact}", shares[0]);
            let second = exact * 0.5f64.powf(theta);
            assert!((shares[1] - second).abs() < 0.004, "θ {theta}");
            let head: f64 = shares[..100].iter().sum();
            let want = zeta(100, theta) / zeta(1000, theta);
            assert!((head - want).abs() < 0.03, "θ {theta}: {head} {want}");
        }
    }

    #[test]
    fn tiny_universes_work() {
        for method in [ZipfMethod::Table, ZipfMethod::Ycsb] {
            for n in [0, 1, 2, 3] {
                let shares = shares(n.max(1), 0.9, method, 1000);
                assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{method:?} {n}");
            }
        }
    }
}
