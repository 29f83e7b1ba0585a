//! What a report shows: the rows of some result directories, by trace, policy and size.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value as Json;

use crate::results::{ResultDir, ResultError};
use crate::table::Table;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A result directory.
    #[error(transparent)]
    Result(#[from] ResultError),
    /// Directories without a row.
    #[error("nothing to report: no row in {0}")]
    Empty(String),
}

/// One measurement over its seeds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Spread {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// Half of Student's t distribution beyond 97.5 %, for 1, 2, 3, … degrees of freedom.
const T_975: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

impl Spread {
    /// Mean and 95 % confidence interval; for one value, the value.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let n = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        if values.len() == 1 {
            return Some(Spread { mean, low: mean, high: mean });
        }
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let t = T_975.get(values.len() - 2).copied().unwrap_or(1.96);
        let half = t * (variance / n).sqrt();
        Some(Spread { mean, low: mean - half, high: mean + half })
    }
}

/// One policy at one size of one trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    pub miss_ratio: Vec<f64>,
    pub misses: Vec<f64>,
    pub writes: Vec<f64>,
}

/// One policy with its parameters on one trace, by size.
pub(super) type Line = BTreeMap<u64, Cell>;

/// One trace: its policies in the order of their first row.
#[derive(Clone, Debug, Default)]
pub(super) struct TraceData {
    pub name: String,
    /// Label and id of each policy, and its line.
    pub lines: Vec<(String, String, Line)>,
}

/// The rows of some result directories.
pub struct ReportData {
    pub(super) traces: Vec<TraceData>,
    pub(super) table: Table,
    pub(super) runs: Vec<Json>,
}

impl ReportData {
    /// Reads directories.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn read(paths: &[PathBuf]) -> Result<ReportData, ReportError> {
        let (mut table, mut runs) = (Table::default(), Vec::new());
        for path in paths {
            let dir = ResultDir::open(path)?;
            runs.push(dir.run()?);
            table.append(dir.rows()?);
        }
        if table.rows.is_empty() {
            let names: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
            return Err(ReportError::Empty(names.join(", ")));
        }
        let mut data = ReportData { traces: Vec::new(), table, runs };
        (0..data.table.rows.len()).for_each(|row| data.take(row));
        Ok(data)
    }

    fn take(&mut self, row: usize) {
        let text = |name: &str| self.table.get(row, name).map(ToString::to_string);
        let number = |name: &str| self.table.get(row, name).and_then(|v| v.number());
        let (Some(trace), Some(policy), Some(size)) =
            (text("trace"), text("policy"), number("size"))
        else {
            return;
        };
        let label = match text("params") {
            Some(params) if !params.is_empty() => format!("{policy}({params})"),
            _ => policy.clone(),
        };
        let misses = number("misses");
        let ratio = number("miss_ratio")
            .or_else(|| Some(misses? / number("references").filter(|r| *r > 0.0)?));
        let writes = number("writes");
        let at = match self.traces.iter().position(|t| t.name == trace) {
            Some(at) => at,
            None => {
                self.traces.push(TraceData { name: trace, lines: Vec::new() });
                self.traces.len() - 1
            }
        };
        let lines = &mut self.traces[at].lines;
        let at = match lines.iter().position(|(l, _, _)| *l == label) {
            Some(at) => at,
            None => {
                lines.push((label, policy, Line::new()));
                lines.len() - 1
            }
        };
        let cell = lines[at].2.entry(size as u64).or_default();
        cell.miss_ratio.extend(ratio);
        cell.misses.extend(misses);
        cell.writes.extend(writes);
    }

    /// Every policy's label, in the order of first appearance: the order of colours.
    pub(super) fn labels(&self) -> Vec<&str> {
        let mut labels: Vec<&str> = Vec::new();
        for (label, _, _) in self.traces.iter().flat_map(|t| &t.lines) {
            if !labels.contains(&label.as_str()) {
                labels.push(label);
            }
        }
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_mean_and_its_confidence_interval() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[2.0]), Some(Spread { mean: 2.0, low: 2.0, high: 2.0 }));
        let spread = Spread::of(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(spread.mean, 2.0);
        assert!((spread.high - 2.0 - 4.303 / 3f64.sqrt()).abs() < 1e-9, "{spread:?}");
    }
}
