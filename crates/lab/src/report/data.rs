//! What a report shows: the rows of some result directories, by trace, policy and size.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value as Json;

use crate::results::{ResultDir, ResultError};
use crate::table::{Table, Value, short_names};

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
        data.shorten();
        Ok(data)
    }

    /// Gives traces the shortest names that tell them apart.
    fn shorten(&mut self) {
        let paths: Vec<String> = self.traces.iter().map(|trace| trace.name.clone()).collect();
        let names = short_names(&paths);
        let at = self.table.column("trace");
        for row in &mut self.table.rows {
            if let Some(at) = at
                && let Some(known) = paths.iter().position(|path| *path == row[at].to_string())
            {
                row[at] = Value::Text(names[known].clone());
            }
        }
        for (trace, name) in self.traces.iter_mut().zip(names) {
            trace.name = name;
        }
    }

    fn take(&mut self, row: usize) {
        let text = |name: &str| self.table.get(row, name).map(ToString::to_string);
        let number = |name: &str| self.table.get(row, name).and_then(|v| v.number());
        let (Some(trace), Some(policy), Some(size)) =
            (text("trace"), text("policy"), number("size"))
        else {
            return;
        };
        let mut label = match text("params") {
            Some(params) if !params.is_empty() => format!("{policy}({params})"),
            _ => policy.clone(),
        };
        // An estimate is no measurement: they are never averaged, nor joined in one line.
        if text("method").as_deref() == Some("sampled") {
            label += ", sampled";
        }
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
