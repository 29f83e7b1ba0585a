//! The exact Zipf distribution without tables: rank k (from 1) has a probability proportional to
//! k^−θ, for any θ ≥ 0, 1 and above included.
//!
//! Rejection-inversion (Hörmann and Derflinger, ACM TOMACS 1996). The area under x^−θ between k − ½
//! and k + ½ is at least the bar k^−θ, since the function is convex. So the sampler draws a point
//! uniformly by area under the curve, by inverting the integral, and rounds it to the nearest rank.
//! It keeps the point if it is in that rank's bar, which is placed at the right-hand side of the
//! rank's area. The first rank's area is cut to its bar. At most a few per cent of the draws are
//! rejected. For most points, a bound on their distance left of the rank saves evaluating the bar.
//!
//! The tables of [`crate::generate::Zipf`] draw the same distribution faster for small n. Here the
//! cost does not depend on n, which may be billions.

use crate::generate::Random;

/// A sampler of ranks from 0 (the most frequent) to n − 1.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    n: f64,
    theta: f64,
    /// 1 − θ, and its inverse if it has one.
    power: f64,
    root: f64,
    /// Range of the integral, from the first rank's cut area to the last rank's right border.
    low: f64,
    high: f64,
    /// Maximum distance left of a rank at which a point is in the bar of any rank.
    near: f64,
}

impl Zipf {
    /// Creates a sampler of ranks 0 to `n` − 1 with exponent `theta`. An `n` of 0 counts as 1, a
    /// negative or undefined `theta` as 0.
    pub fn new(n: u64, theta: f64) -> Zipf {
        let theta = if theta > 0.0 { theta } else { 0.0 };
        let power = if (1.0 - theta).abs() < 1e-9 { 0.0 } else { 1.0 - theta };
        let n = n.max(1) as f64;
        let mut zipf = Zipf { n, theta, power, root: 1.0 / power, low: 0.0, high: 0.0, near: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(n + 0.5);
        zipf.near = 2.0 - zipf.place(zipf.integral(2.5) - zipf.bar(2.0));
        zipf
    }

    /// Returns k^−θ.
    #[inline]
    fn bar(&self, k: f64) -> f64 {
        k.powf(-self.theta)
    }

    /// Returns the integral of x^−θ from 1 to `x`.
    #[inline]
    fn integral(&self, x: f64) -> f64 {
        if self.power == 0.0 { x.ln() } else { (x.powf(self.power) - 1.0) * self.root }
    }

    /// Returns the point at which the integral is `area`.
    #[inline]
    fn place(&self, area: f64) -> f64 {
        if self.power == 0.0 {
            area.exp()
        } else {
            // Rounding may carry the base below 0 for θ > 1 and the last ranks.
            (1.0 + area * self.power).max(0.0).powf(self.root)
        }
    }

    /// Draws a rank.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.high + random.unit() * (self.low - self.high);
            let x = self.place(area);
            // `clamp` also sends an infinite place to the last rank.
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.near || area >= self.integral(k + 0.5) - self.bar(k) {
                return k as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::zeta;
    use millpond_base::Seed;

    /// Returns χ² of `draws` draws against the exact probabilities, and its degrees of freedom.
    fn chi_square(n: u64, theta: f64, draws: u32) -> (f64, f64) {
        let zipf = Zipf::new(n, theta);
        let mut random = Random::new(Seed(5));
        let mut counts = vec![0u32; n as usize];
        for _ in 0..draws {
            counts[zipf.draw(&mut random) as usize] += 1;
        }
        let total = zeta(n, theta);
        let (mut sum, mut cells) = (0.0, 0.0);
        let (mut rest_expected, mut rest) = (0.0, 0.0);
        for (k, count) in counts.iter().enumerate() {
            let expected = ((k + 1) as f64).powf(-theta) / total * f64::from(draws);
            if expected < 5.0 {
                rest_expected += expected;
                rest += f64::from(*count);
            } else {
                sum += (f64::from(*count) - expected).powi(2) / expected;
                cells += 1.0;
            }
        }
        if rest_expected >= 5.0 {
            sum += (rest - rest_expected).powi(2) / rest_expected;
            cells += 1.0;
        }
        (sum, cells - 1.0)
    }

    #[test]
    fn every_rank_has_its_exact_probability_for_any_exponent() {
        for theta in [0.0, 0.3, 0.9, 0.99, 1.0, 1.01, 1.5, 2.0, 4.0] {
            for n in [2u64, 10, 1000] {
                let (sum, freedom) = chi_square(n, theta, 300_000);
                // Five standard deviations above the mean of χ².
                let bound = freedom + 5.0 * (2.0 * freedom).sqrt() + 5.0;
                assert!(sum < bound, "θ {theta} n {n}: χ² {sum} for {freedom} degrees");
            }
        }
    }

    #[test]
    fn huge_universes_have_the_right_head() {
        let n = 10_000_000_000u64;
        let zipf = Zipf::new(n, 0.99);
        let mut random = Random::new(Seed(6));
        let draws = 300_000;
        let (mut first, mut hundred, mut million) = (0u32, 0u32, 0u32);
        for _ in 0..draws {
            let rank = zipf.draw(&mut random);
            assert!(rank < n);
            first += u32::from(rank == 0);
            hundred += u32::from(rank < 100);
            million += u32::from(rank < 1_000_000);
        }
        let total = zeta(n, 0.99);
        for (count, ranks) in [(first, 1), (hundred, 100), (million, 1_000_000)] {
            let exact = zeta(ranks, 0.99) / total;
            let sigma = (exact * (1.0 - exact) / f64::from(draws)).sqrt();
            let share = f64::from(count) / f64::from(draws);
            assert!((share - exact).abs() < 5.0 * sigma, "{ranks}: {share} and not {exact}");
        }
    }

    #[test]
    fn degenerate_parameters_draw_valid_ranks() {
        let mut random = Random::new(Seed(7));
        for n in [0, 1, 2, u64::MAX] {
            for theta in [-1.0, f64::NAN, 0.0, 1.0, 30.0, 500.0] {
                let zipf = Zipf::new(n, theta);
                for _ in 0..100 {
                    assert!(zipf.draw(&mut random) < n.max(1), "n {n} θ {theta}");
                }
            }
        }
    }
}
