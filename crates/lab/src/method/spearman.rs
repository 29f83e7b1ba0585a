//! Spearman's rank correlation: the agreement of two rankings.

/// Returns the correlation of the ranks of paired values, from −1 (reversed) to 1 (the same order).
/// Equal values share the mean of their ranks. The result is `None` for fewer than two pairs, for
/// values that are not numbers, and if all values of one side are equal.
///
/// ```
/// # use millpond_lab::method::spearman;
/// assert_eq!(spearman(&[1.0, 2.0, 3.0], &[10.0, 20.0, 21.0]), Some(1.0));
/// assert_eq!(spearman(&[1.0, 2.0, 3.0], &[9.0, 5.0, 1.0]), Some(-1.0));
/// ```
pub fn spearman(first: &[f64], second: &[f64]) -> Option<f64> {
    let n = first.len().min(second.len());
    let (first, second) = (&first[..n], &second[..n]);
    if n < 2 || first.iter().chain(second).any(|value| value.is_nan()) {
        return None;
    }
    let (first, second) = (ranks(first), ranks(second));
    let middle = (n as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum()
    };
    let spread = (product(&first, &first) * product(&second, &second)).sqrt();
    (spread > 0.0).then(|| product(&first, &second) / spread)
}

/// Returns the rank of each value, from 1; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 7.0]), [2.5, 1.0, 2.5, 4.0]);
        // Ranks 1 2.5 2.5 4 and 1 2 3 4: 4.5 / √(4.5 · 5).
        let rho = spearman(&[1.0, 5.0, 5.0, 6.0], &[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!((rho - 4.5 / 22.5_f64.sqrt()).abs() < 1e-12, "{rho}");
        assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), None, "no order at all");
        assert_eq!(spearman(&[1.0], &[1.0]), None);
        assert_eq!(spearman(&[1.0, f64::NAN], &[1.0, 2.0]), None);
    }
}
