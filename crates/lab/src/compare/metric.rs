//! The metric of a comparison: a column, or a weighted sum of columns, and the direction in which
//! its values are better.

use std::fmt;

use super::error::CompareError;
use crate::method::Better;
use crate::table::{Table, Value};

/// Columns where larger values are better; in all other columns smaller values are.
const LARGER: [&str; 5] = ["hits", "hit_ratio", "leaf_hit_ratio", "transactions", "rows"];

/// Columns tried in this order if no metric is named.
const DEFAULTS: [&str; 6] =
    ["misses", "throughput_per_s", "miss_ratio", "evictions_per_s", "rows_per_s", "reads_per_tx"];

/// A weighted sum of columns.
#[derive(Clone, PartialEq, Debug)]
pub struct Metric {
    /// Weight and column of each term.
    terms: Vec<(f64, String)>,
    /// The direction in which values are better.
    pub better: Better,
}

impl Metric {
    /// Parses a metric: a column, or a sum such as `misses+2*writes`. Larger values are better for
    /// rates (`…_per_s`), hits and hit ratios; smaller values are better for all others.
    ///
    /// # Errors
    /// [`CompareError::Metric`], also for a sum that mixes columns of both directions.
    ///
    /// ```
    /// # use millpond_lab::compare::Metric;
    /// assert_eq!(Metric::parse("misses + 2 * writes").unwrap().to_string(), "misses+2*writes");
    /// assert!(Metric::parse("misses+hits").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Metric, CompareError> {
        let wrong = |reason: String| CompareError::Metric { metric: text.to_string(), reason };
        let mut terms = Vec::new();
        for part in text.split('+') {
            let (weight, column) = match part.split_once('*') {
                None => (1.0, part.trim()),
                Some((weight, column)) => {
                    let weight = weight.trim();
                    let parsed = weight.parse::<f64>().ok().filter(|w| w.is_finite() && *w > 0.0);
                    let parsed = parsed
                        .ok_or_else(|| wrong(format!("'{weight}' is no number above zero")))?;
                    (parsed, column.trim())
                }
            };
            if column.is_empty() {
                return Err(wrong("a column is missing".to_string()));
            }
            terms.push((weight, column.to_string()));
        }
        let is_larger = |column: &str| LARGER.contains(&column) || column.ends_with("_per_s");
        let larger = terms.iter().filter(|(_, column)| is_larger(column)).count();
        let better = match larger {
            0 => Better::Smaller,
            n if n == terms.len() => Better::Larger,
            _ => {
                let reason = "of some of its columns larger values are better, of some smaller";
                return Err(wrong(reason.to_string()));
            }
        };
        Ok(Metric { terms, better })
    }

    /// Returns the default metric of a table: misses for simulations, throughput for live runs.
    ///
    /// # Errors
    /// [`CompareError::NoMetric`].
    pub fn of(table: &Table) -> Result<Metric, CompareError> {
        let has = |column: &str| {
            let mut values = (0..table.rows.len()).filter_map(|row| table.get(row, column));
            values.any(|value| value.number().is_some())
        };
        match DEFAULTS.iter().find(|column| has(column)) {
            Some(column) => Metric::parse(column),
            None => Err(CompareError::NoMetric {
                tried: DEFAULTS.join(", "),
                columns: table
                    .columns
                    .iter()
                    .filter(|c| has(c))
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }

    /// Returns the metric's value in a row, or `None` if one of its columns has no number.
    pub fn value(&self, table: &Table, row: usize) -> Option<f64> {
        let term = |(weight, column): &(f64, String)| {
            Some(weight * table.get(row, column).and_then(Value::number)?)
        };
        self.terms.iter().map(term).sum()
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (weight, column)) in self.terms.iter().enumerate() {
            let plus = if at > 0 { "+" } else { "" };
            match *weight == 1.0 {
                true => write!(f, "{plus}{column}")?,
                false => write!(f, "{plus}{weight}*{column}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_columns_or_sums_of_them() {
        let mut table = Table::new(["misses", "writes", "throughput_per_s"]);
        table.rows.push(vec![10u64.into(), 3u64.into(), Value::Empty]);
        let sum = Metric::parse("misses+2*writes").unwrap();
        assert_eq!((sum.value(&table, 0), sum.better), (Some(16.0), Better::Smaller));
        let rate = Metric::parse("throughput_per_s").unwrap();
        assert_eq!((rate.value(&table, 0), rate.better), (None, Better::Larger));
        assert_eq!(Metric::of(&table).unwrap().to_string(), "misses");
        let other = Table { columns: vec!["x".into()], rows: vec![vec![1u64.into()]] };
        let error = Metric::of(&other).unwrap_err().to_string();
        assert!(error.ends_with("name a column with `metric`; there are x"), "{error}");
    }

    #[test]
    fn what_is_no_metric_is_told_why() {
        for (text, part) in [
            ("", "a column is missing"),
            ("misses+", "a column is missing"),
            ("x*writes", "'x' is no number above zero"),
            ("-1*writes", "above zero"),
            ("misses+hit_ratio", "of some of its columns larger"),
        ] {
            let error = Metric::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
