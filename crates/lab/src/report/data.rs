//! The data of a report: the rows of some result directories, by trace, policy and size.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value as Json;

use crate::results::{ResultDir, ResultError};
use crate::sweep::{CONTENT, OPTIONS};
use crate::table::{Table, Value, short_names};

/// Reason why a report could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A result directory could not be read.
    #[error(transparent)]
    Result(#[from] ResultError),
    /// The directories have no row.
    #[error("nothing to report: no row in {0}")]
    Empty(String),
    /// No row is of the policy to compare with.
    #[error("no row is of '{asked}', to which misses were to be relative; there are {known}")]
    Reference {
        /// The requested policy.
        asked: String,
        /// The policies that rows have.
        known: String,
    },
}

/// Counts of each unit for one policy at one size of one trace. A unit is a seed, a repetition, or
/// a separate run, in one result directory. Its parts are the blocks of a trace, or the whole
/// trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    units: Vec<(Unit, Vec<Part>)>,
}

/// Names that identify a repetition of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Unit {
    seed: String,
    repetition: String,
    /// The index of the unit's result directory.
    directory: usize,
    /// Distinguishes units of one directory that are otherwise alike.
    run: usize,
}

/// Reads a part of a unit's name.
type KeyOf = fn(&Unit) -> [&str; 2];

/// One row: its unit and its numbers.
struct RowOf {
    seed: String,
    repetition: String,
    directory: usize,
    part: Part,
}

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
    /// Adds a row. The row becomes a part of its unit, or is ignored if the unit has it already. A
    /// row with other numbers for the same part starts another run.
    fn take(&mut self, row: RowOf) {
        let RowOf { seed, repetition, directory, part } = row;
        for run in 0.. {
            let unit = Unit { seed: seed.clone(), repetition: repetition.clone(), directory, run };
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

    /// Drops units with the same numbers as a unit of another directory: repeats of a simulation.
    fn drop_copies(&mut self) {
        let all = std::mem::take(&mut self.units);
        for (unit, parts) in all {
            let is_there = |(known, there): &(Unit, Vec<Part>)| {
                let is_alike = known.seed == unit.seed && known.repetition == unit.repetition;
                let is_elsewhere = known.directory != unit.directory;
                is_alike
                    && is_elsewhere
                    && there.len() == parts.len()
                    && parts.iter().all(|part| there.contains(part))
            };
            if !self.units.iter().any(is_there) {
                self.units.push((unit, parts));
            }
        }
    }

    fn sums(&self, number: impl Fn(&Part) -> Option<f64>) -> Vec<f64> {
        let sum = |(_, parts): &(Unit, Vec<Part>)| parts.iter().map(&number).sum::<Option<f64>>();
        self.units.iter().filter_map(sum).collect()
    }

    /// Returns the misses of each unit.
    pub(super) fn misses(&self) -> Vec<f64> {
        self.sums(|part| part.misses)
    }

    /// Returns the writes of each unit.
    pub(super) fn writes(&self) -> Vec<f64> {
        self.sums(|part| part.writes)
    }

    /// Returns the miss ratio of each unit, from its row or from all its blocks.
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

    /// Adds the dimensions in which the units of this cell differ, in the words of a caption.
    fn repeated_over(&self, words: &mut BTreeSet<&'static str>) {
        let distinct = |key: KeyOf| -> usize {
            self.units.iter().map(|(unit, _)| key(unit)).collect::<BTreeSet<_>>().len()
        };
        if distinct(|unit| [&unit.seed, ""]) > 1 {
            words.insert("seeds");
        }
        if distinct(|unit| ["", &unit.repetition]) > 1 {
            words.insert("repetitions");
        }
        // Directories with different seeds are parts of one run.
        if distinct(|unit| [&unit.seed, &unit.repetition]) < self.units.len() {
            words.insert("runs");
        }
    }

    fn has_blocks(&self) -> bool {
        self.units.iter().any(|(_, parts)| parts.len() > 1)
    }
}

/// One policy with its parameters and options on one trace.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The name in plots and tables: the policy, and the options if rows differ in them.
    pub label: String,
    /// The policy with its parameters.
    pub name: String,
    /// The policy without its parameters.
    pub id: String,
    /// The end of the label; only lines with equal ends are compared.
    pub options: String,
    /// The counts, by size.
    pub cells: BTreeMap<u64, Cell>,
}

/// One trace: its policies in the order of their first row.
#[derive(Clone, Debug, Default)]
pub(super) struct TraceData {
    pub name: String,
    pub lines: Vec<Line>,
    /// Hash of the trace's references; empty if rows do not state it.
    content: String,
}

/// The rows of some result directories.
pub struct ReportData {
    pub(super) traces: Vec<TraceData>,
    pub(super) table: Table,
    pub(super) runs: Vec<Json>,
    /// `true` if rows have different options, so that labels state them.
    pub(super) has_options: bool,
}

impl ReportData {
    /// Reads the rows of directories.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn read(paths: &[PathBuf]) -> Result<ReportData, ReportError> {
        let (mut table, mut runs) = (Table::default(), Vec::new());
        let mut directories = Vec::new();
        for (at, path) in paths.iter().enumerate() {
            let dir = ResultDir::open(path)?;
            runs.push(dir.run()?);
            table.append(dir.rows()?);
            directories.resize(table.rows.len(), at);
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
        directories.iter().enumerate().for_each(|(row, of)| data.take(row, *of));
        let lines = data.traces.iter_mut().flat_map(|trace| &mut trace.lines);
        lines.flat_map(|line| line.cells.values_mut()).for_each(Cell::drop_copies);
        data.shorten();
        Ok(data)
    }

    /// Finds the policy to which misses are relative. `asked` is the name of a policy with its
    /// parameters, as rows write it, or a label with its options. Returns the name: each line is
    /// compared with the policy's line with the same options.
    ///
    /// # Errors
    /// [`ReportError::Reference`] if no row is of the policy.
    pub fn reference(&self, asked: &str) -> Result<String, ReportError> {
        let known = || self.traces.iter().flat_map(|trace| &trace.lines);
        let named = known().find(|line| line.name == asked);
        if let Some(line) = named.or_else(|| known().find(|line| line.label == asked)) {
            return Ok(line.name.clone());
        }
        let mut names: Vec<&str> = Vec::new();
        for line in known() {
            if !names.contains(&line.name.as_str()) {
                names.push(&line.name);
            }
        }
        Err(ReportError::Reference { asked: asked.to_string(), known: names.join(", ") })
    }

    /// Gives traces the shortest unambiguous names.
    fn shorten(&mut self) {
        let paths: Vec<String> = self.traces.iter().map(|trace| trace.name.clone()).collect();
        let mut names = short_names(&paths);
        let twice = |at: usize| paths.iter().filter(|path| **path == paths[at]).count() > 1;
        // Two traces can share a name: a column of the table then distinguishes their rows.
        for at in (0..paths.len()).filter(|at| twice(*at)) {
            let content = &self.traces[at].content;
            names[at] += &match content.as_str() {
                "" => " (unknown content)".to_string(),
                hash => format!(" (content {})", hash.get(..8).unwrap_or(hash)),
            };
        }
        let (at, content) = (self.table.column("trace"), self.table.column(CONTENT));
        for row in &mut self.table.rows {
            let content = content.map(|at| row[at].to_string()).unwrap_or_default();
            let is_of =
                |trace: &TraceData, name: &str| trace.name == name && trace.content == content;
            if let Some(at) = at
                && let Some(known) = {
                    let name = row[at].to_string();
                    self.traces.iter().position(|trace| is_of(trace, &name))
                }
            {
                row[at] = Value::Text(names[known].clone());
            }
        }
        for (trace, name) in self.traces.iter_mut().zip(names) {
            trace.name = name;
        }
    }

    fn take(&mut self, row: usize, directory: usize) {
        let text = |name: &str| self.table.get(row, name).map(ToString::to_string);
        let number = |name: &str| self.table.get(row, name).and_then(|v| v.number());
        let (Some(trace), Some(policy), Some(size)) =
            (text("trace"), text("policy"), number("size"))
        else {
            return;
        };
        let name = match text("params") {
            Some(params) if !params.is_empty() => format!("{policy}({params})"),
            _ => policy.clone(),
        };
        let mut options = match text(OPTIONS) {
            Some(options) if self.has_options => format!(", {options}"),
            _ => String::new(),
        };
        // Sampled estimates and exact counts are never averaged, nor joined in one line.
        if text("method").as_deref() == Some("sampled") {
            options += ", sampled";
        }
        let part = Part {
            block: text("block").unwrap_or_default(),
            ratio: number("miss_ratio"),
            references: number("references"),
            misses: number("misses"),
            writes: number("writes"),
        };
        let [seed, repetition] = ["seed", "repetition"].map(|name| text(name).unwrap_or_default());
        let content = text(CONTENT).unwrap_or_default();
        let is_of = |known: &TraceData| known.name == trace && known.content == content;
        let at = self.traces.iter().position(is_of).unwrap_or_else(|| {
            self.traces.push(TraceData { name: trace, lines: Vec::new(), content });
            self.traces.len() - 1
        });
        let lines = &mut self.traces[at].lines;
        let is_of = |line: &Line| line.name == name && line.options == options;
        let at = lines.iter().position(is_of).unwrap_or_else(|| {
            let label = format!("{name}{options}");
            lines.push(Line { label, name, id: policy, options, cells: BTreeMap::new() });
            lines.len() - 1
        });
        let cell = lines[at].cells.entry(size as u64).or_default();
        cell.take(RowOf { seed, repetition, directory, part });
    }

    /// Returns a sentence or two that explain a point of a plot and its band.
    pub(super) fn caption(&self) -> String {
        let cells =
            || self.traces.iter().flat_map(|t| &t.lines).flat_map(|line| line.cells.values());
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

    /// Returns every policy's label, in the order of first appearance, which is the order of
    /// colours.
    pub(super) fn labels(&self) -> Vec<&str> {
        let mut labels: Vec<&str> = Vec::new();
        for line in self.traces.iter().flat_map(|t| &t.lines) {
            if !labels.contains(&line.label.as_str()) {
                labels.push(&line.label);
            }
        }
        labels
    }
}
