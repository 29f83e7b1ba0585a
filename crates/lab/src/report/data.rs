//! What a report shows: the rows of some result directories, by trace, policy and size.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value as Json;

use crate::results::{ResultDir, ResultError};
use crate::sweep::OPTIONS;
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

/// One policy at one size of one trace: what each of its units counted. A unit is a seed, a
/// repetition, or a run of its own; its parts are the blocks of a trace, or the whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    units: Vec<(Unit, Vec<Part>)>,
}

/// What a value is repeated over.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Unit {
    seed: String,
    repetition: String,
    run: usize,
}

/// Reads a part of what names a unit.
type KeyOf = fn(&Unit) -> String;

/// The numbers of a row.
#[derive(Clone, PartialEq, Debug)]
struct Part {
    block: String,
    ratio: Option<f64>,
    references: Option<f64>,
    misses: Option<f64>,
    writes: Option<f64>,
}

impl Cell {
    /// Takes a row: a part of its unit, nothing new where it is there already, or of another run
    /// where its unit has other numbers.
    fn take(&mut self, seed: &str, repetition: &str, part: Part) {
        for run in 0.. {
            let unit = Unit { seed: seed.to_string(), repetition: repetition.to_string(), run };
            let Some((_, parts)) = self.units.iter_mut().find(|(known, _)| *known == unit) else {
                self.units.push((unit, vec![part]));
                return;
            };
            let is_whole = |part: &Part| part.block.is_empty();
            match parts.iter().find(|known| known.block == part.block) {
                None if parts.iter().all(|known| !is_whole(known)) && !is_whole(&part) => {
                    parts.push(part);
                    return;
                }
                Some(known) if *known == part => return,
                _ => {}
            }
        }
    }

    fn sums(&self, number: impl Fn(&Part) -> Option<f64>) -> Vec<f64> {
        let sum = |(_, parts): &(Unit, Vec<Part>)| parts.iter().map(&number).sum::<Option<f64>>();
        self.units.iter().filter_map(sum).collect()
    }

    /// The misses of each unit.
    pub(super) fn misses(&self) -> Vec<f64> {
        self.sums(|part| part.misses)
    }

    /// The writes of each unit.
    pub(super) fn writes(&self) -> Vec<f64> {
        self.sums(|part| part.writes)
    }

    /// The miss ratio of each unit: that of its row, or of its blocks together.
    pub(super) fn miss_ratios(&self) -> Vec<f64> {
        let ratio = |(_, parts): &(Unit, Vec<Part>)| match &parts[..] {
            [Part { ratio: Some(ratio), .. }] => Some(*ratio),
            parts => {
                let misses = parts.iter().map(|part| part.misses).sum::<Option<f64>>()?;
                let references = parts.iter().map(|part| part.references).sum::<Option<f64>>()?;
                Some(misses / Some(references).filter(|r| *r > 0.0)?)
            }
        };
        self.units.iter().filter_map(ratio).collect()
    }

    /// Adds what the units of this cell differ in, in the words of a caption.
    fn repeated_over(&self, words: &mut BTreeSet<&'static str>) {
        let of: [(&'static str, KeyOf); 3] = [
            ("seeds", |unit| unit.seed.clone()),
            ("repetitions", |unit| unit.repetition.clone()),
            ("runs", |unit| unit.run.to_string()),
        ];
        for (word, key) in of {
            let all: BTreeSet<String> = self.units.iter().map(|(unit, _)| key(unit)).collect();
            if all.len() > 1 {
                words.insert(word);
            }
        }
    }

    fn has_blocks(&self) -> bool {
        self.units.iter().any(|(_, parts)| parts.len() > 1)
    }
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
    /// Whether rows have different options, so that labels say which.
    has_options: bool,
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
        let options: BTreeSet<String> = (0..table.rows.len())
            .filter_map(|row| table.get(row, OPTIONS).map(ToString::to_string))
            .filter(|options| !options.is_empty())
            .collect();
        let has_options = options.len() > 1;
        let mut data = ReportData { traces: Vec::new(), table, runs, has_options };
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
        if self.has_options
            && let Some(options) = text(OPTIONS)
        {
            label += &format!(", {options}");
        }
        // An estimate is no measurement: they are never averaged, nor joined in one line.
        if text("method").as_deref() == Some("sampled") {
            label += ", sampled";
        }
        let part = Part {
            block: text("block").unwrap_or_default(),
            ratio: number("miss_ratio"),
            references: number("references"),
            misses: number("misses"),
            writes: number("writes"),
        };
        let [seed, repetition] = ["seed", "repetition"].map(|name| text(name).unwrap_or_default());
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
        cell.take(&seed, &repetition, part);
    }

    /// What a point of a plot is, and what its band is over, in a sentence or two.
    pub(super) fn caption(&self) -> String {
        let cells =
            || self.traces.iter().flat_map(|t| &t.lines).flat_map(|(_, _, line)| line.values());
        let mut over = BTreeSet::new();
        cells().for_each(|cell| cell.repeated_over(&mut over));
        let over: Vec<&str> = over.into_iter().collect();
        let bands = match over.is_empty() {
            true => "Each point is one run, and there are no bands.".to_string(),
            false => format!(
                "Points are means, and bands 95 % confidence intervals, over the {}, where there \
                 are several.",
                over.join(" and ")
            ),
        };
        match cells().any(Cell::has_blocks) {
            true => format!("{bands} The blocks of a trace are taken together."),
            false => bands,
        }
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
