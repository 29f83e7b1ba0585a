//! The generalised harmonic number: the total weight of the ranks of a Zipf distribution.

/// Number of terms that are summed one by one.
const DIRECT: u64 = 1 << 16;

/// Returns Σ k^−θ for k from 1 to `n`, to about 1 part in 10¹³.
///
/// The first 65,536 terms are summed, smallest first so that they count. The Euler–Maclaurin
/// formula gives the rest, with an error below 10⁻²⁰ of the sum. So a sum over 10⁹ rows costs as
/// much as one over 65,536.
pub fn zeta(n: u64, theta: f64) -> f64 {
    let term = |k: f64| k.powf(-theta);
    let head: f64 = (1..=n.min(DIRECT)).rev().map(|k| term(k as f64)).sum();
    if n <= DIRECT {
        return head;
    }
    let (a, b) = (DIRECT as f64, n as f64);
    let power = 1.0 - theta;
    // ∫ x^−θ from a to b, written so that θ = 1 is its limit and not 0/0.
    let log = (b / a).ln();
    let integral = if (power * log).abs() < 1e-12 {
        a.powf(power) * log
    } else {
        a.powf(power) * (power * log).exp_m1() / power
    };
    let ends = (term(b) - term(a)) / 2.0;
    let slopes = -theta * (term(b) / b - term(a) / a) / 12.0;
    head + integral + ends + slopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_continues_the_sum() {
        for theta in [0.0, 0.5, 0.9, 0.99, 1.0, 1.0 + 1e-14, 1.2, 3.0] {
            let n = 300_000u64;
            let direct: f64 = (1..=n).rev().map(|k| (k as f64).powf(-theta)).sum();
            let error = (zeta(n, theta) / direct - 1.0).abs();
            assert!(error < 1e-12, "θ {theta}: off by {error:e}");
        }
    }

    #[test]
    fn known_values() {
        assert_eq!(zeta(0, 1.0), 0.0);
        assert_eq!(zeta(1, 0.99), 1.0);
        assert!((zeta(1_000_000_000, 2.0) - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-8);
        // H(n) = ln n + γ + 1/2n − …
        let n = 1_000_000_000_000u64;
        let harmonic = (n as f64).ln() + 0.577_215_664_901_532_9;
        assert!((zeta(n, 1.0) - harmonic).abs() < 1e-11);
    }
}
