//! Two tests for paired values, one-sided: the sign test and Student's t-test.

use std::cmp::Ordering;

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Outcome of a test of two columns of values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outcome {
    /// The one-sided p-value: the probability of this observation, or a more extreme one, if
    /// neither column tended to be larger.
    pub p: f64,
    /// Direction of the difference: `Greater` if the first column is larger, `Less` if it is
    /// smaller.
    pub first_is: Ordering,
}

impl Outcome {
    /// The outcome for two columns without a difference.
    const NOTHING: Outcome = Outcome { p: 1.0, first_is: Ordering::Equal };
}

/// The sign test (luan 3.4.1), on the number of pairs in which the first value is larger. Pairs of
/// equal values, and values that are not numbers, do not count.
///
/// ```
/// # use millpond_lab::method::sign_test;
/// // All of five: 1 in 32.
/// assert_eq!(sign_test(&[2.0; 5], &[1.0; 5]).p, 0.03125);
/// ```
pub fn sign_test(first: &[f64], second: &[f64]) -> Outcome {
    let count = |wanted| {
        first.iter().zip(second).filter(|(a, b)| a.partial_cmp(b) == Some(wanted)).count() as u64
    };
    let (larger, smaller) = (count(Ordering::Greater), count(Ordering::Less));
    let n = larger + smaller;
    if n == 0 {
        return Outcome::NOTHING;
    }
    // The upper tail of the binomial distribution with p = 1/2, from n downwards.
    let (mut log_ways, mut p) = (0.0_f64, 0.0);
    for i in (larger.max(smaller)..=n).rev() {
        p += (log_ways - n as f64 * std::f64::consts::LN_2).exp();
        log_ways += (i as f64 / (n - i + 1) as f64).ln();
    }
    Outcome { p: p.min(1.0), first_is: larger.cmp(&smaller) }
}

/// Student's paired t-test (luan 3.4.2), over all pairs, including equal ones.
pub fn t_test(first: &[f64], second: &[f64]) -> Outcome {
    let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
    let n = differences.len() as f64;
    if differences.len() < 2 {
        return Outcome::NOTHING;
    }
    let mean = differences.iter().sum::<f64>() / n;
    let Some(first_is) = mean.partial_cmp(&0.0) else { return Outcome::NOTHING };
    let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let error = (variance / n).sqrt();
    if !error.is_finite() {
        return Outcome::NOTHING;
    }
    if first_is == Ordering::Equal {
        return Outcome { p: 0.5, first_is };
    }
    let p = match StudentsT::new(0.0, 1.0, n - 1.0) {
        Ok(student) if error > 0.0 => student.cdf(-(mean / error).abs()),
        _ => 0.0,
    };
    Outcome { p, first_is }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Interval;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn the_sign_test_is_the_tail_of_a_fair_coin() {
        // LRU wins 8 of 10 sizes over CLOCK in Luan's table 1: (45 + 10 + 1) / 1024.
        let first = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0];
        let outcome = sign_test(&first, &[0.5; 10]);
        assert!(near(outcome.p, 0.0546875), "{outcome:?}");
        assert_eq!(outcome.first_is, Ordering::Greater);
        let swapped = sign_test(&[0.5; 10], &first);
        assert!(near(swapped.p, outcome.p) && swapped.first_is == Ordering::Less);
        // Ties do not count as trials.
        let tied = sign_test(&[1.0, 1.0, 1.0, 5.0], &[0.0, 0.0, 0.0, 5.0]);
        assert!(near(tied.p, 0.125), "{tied:?}");
        assert_eq!(sign_test(&[1.0, f64::NAN], &[1.0, 2.0]), Outcome::NOTHING);
        assert_eq!(sign_test(&[], &[]), Outcome::NOTHING);
        // One of two pairs: p is above a half, because both tails include the middle.
        let even = sign_test(&[0.0, 1.0], &[1.0, 0.0]);
        assert!(near(even.p, 0.75) && even.first_is == Ordering::Equal);
        // Thousands of trials neither overflow nor vanish: 1,100 of 2,000 is z = 4.47.
        let many: Vec<f64> = (0..2000).map(|i| if i < 1100 { 1.0 } else { -1.0 }).collect();
        let p = sign_test(&many, &[0.0; 2000]).p;
        assert!((3.5e-6..5e-6).contains(&p), "{p}");
    }

    #[test]
    fn intervals_have_the_p_values_of_the_t_test() {
        let (a, b) = ([1.30, 1.42, 1.28, 1.55, 1.31], [1.21, 1.30, 1.27, 1.29, 1.30]);
        let logs = |values: &[f64]| values.iter().map(|v| v.ln()).collect::<Vec<_>>();
        let ratio = Interval::of_ratios(&a, &b).unwrap();
        let outcome = t_test(&logs(&a), &logs(&b));
        assert!((ratio.p_above(1.0) - outcome.p).abs() < 1e-9, "{ratio} {outcome:?}");
        assert!((ratio.p_below(1.0) - (1.0 - outcome.p)).abs() < 1e-9);
        let outcome = t_test(&a, &[1.25; 5]);
        assert!((Interval::of(&a).unwrap().p_above(1.25) - outcome.p).abs() < 1e-9);
    }

    #[test]
    fn the_t_test_is_student_s() {
        // With two degrees of freedom the tail is 1/2 − t / (2 √(2 + t²)), here t = 2 √3.
        let outcome = t_test(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0]);
        assert!(near(outcome.p, 0.5 - 12f64.sqrt() / (2.0 * 14f64.sqrt())), "{outcome:?}");
        assert_eq!(outcome.first_is, Ordering::Greater);
        // With ten degrees of freedom, t = 2.228139 has 2.5 % beyond it. The mean of the eleven
        // differences is that number of standard errors.
        let shape: Vec<f64> = (0..11).map(|i| f64::from(i) - 5.0).collect();
        let shift = 2.228_139 * 1.0;
        let first: Vec<f64> = shape.iter().map(|d| d + shift).collect();
        let outcome = t_test(&first, &[0.0; 11]);
        assert!((outcome.p - 0.025).abs() < 1e-5, "{outcome:?}");
        assert_eq!(t_test(&[1.0], &[2.0]), Outcome::NOTHING, "one pair says nothing");
        assert_eq!(t_test(&[1.0, 1.0], &[2.0, 2.0]).p, 0.0);
        assert_eq!(t_test(&[3.0, 3.0], &[3.0, 3.0]).p, 0.5);
        assert_eq!(t_test(&[f64::NAN, 3.0], &[3.0, 3.0]), Outcome::NOTHING);
        assert_eq!(t_test(&[f64::INFINITY, 3.0], &[3.0, 3.0]), Outcome::NOTHING);
        assert_eq!(t_test(&[1e300, -1e300], &[3.0, 3.0]), Outcome::NOTHING);
    }
}
