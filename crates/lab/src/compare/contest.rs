//! Rows of runs as values by contestant, replicate and setting.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::error::CompareError;
use super::metric::Metric;
use crate::parameters::BLOCKS;
use crate::sweep::{CONTENT, OPTIONS};
use crate::table::{Table, Value, short_names};

/// The rows of one run, with its name.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name of the run, which is the name of its directory.
    pub name: String,
    /// The rows of the run.
    pub rows: Table,
}

/// Columns that describe the setting in which a row was measured.
const AXES: [&str; 21] = [
    "figure", "trace", "percent", "size", "workload", "ratio", "threads", "workers", "evictors",
    "mode", "step", "what", "skew", "drive", "table", "state", "before", "pool", "round", "index",
    "gap",
];

/// Dimension of repetition; tests are made over its units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replicate {
    /// Runs of an experiment that take turns.
    Repetition,
    /// Seeds of a policy's random draws.
    Seed,
    /// Blocks of a trace; neighbouring blocks depend on each other.
    Block,
    /// Traces.
    Trace,
    /// Cache sizes, as in Luan's method; the sizes of one trace are not independent.
    Size,
}

impl Replicate {
    /// All replicates, the most informative first.
    pub const ALL: [Replicate; 5] = [
        Replicate::Repetition,
        Replicate::Trace,
        Replicate::Block,
        Replicate::Size,
        Replicate::Seed,
    ];

    /// Returns the columns that number the replicate's units; the first column that the rows have
    /// is used.
    fn columns(self) -> &'static [&'static str] {
        match self {
            Replicate::Repetition => &["repetition"],
            Replicate::Seed => &["seed"],
            Replicate::Block => &["block"],
            Replicate::Trace => &["trace"],
            Replicate::Size => &["percent", "size", "pool_frames"],
        }
    }

    /// Returns the number of units at which the replicate is chosen by default.
    fn enough(self) -> usize {
        match self {
            Replicate::Repetition | Replicate::Trace | Replicate::Seed => 3,
            Replicate::Size => 5,
            Replicate::Block => 8,
        }
    }
}

impl fmt::Display for Replicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Replicate::Repetition => "repetition",
            Replicate::Seed => "seed",
            Replicate::Block => "block",
            Replicate::Trace => "trace",
            Replicate::Size => "size",
        })
    }
}

/// Place of a measurement: the columns of the replicate, and the columns of the setting.
type Place = BTreeMap<&'static str, String>;

/// The values of one metric.
#[derive(Clone, Debug)]
pub struct Contest {
    /// The metric of the values.
    pub metric: Metric,
    /// The contestants: policies with their parameters, or runs, or both.
    pub contestants: Vec<String>,
    /// Copies among the traces. Each trace that repeats the references of another trace is mapped
    /// to that trace, and both count as one.
    pub twins: BTreeMap<String, String>,
    values: Vec<Vec<(Place, f64)>>,
}

impl Contest {
    /// Reads the rows of some runs. The contestants are policies. If two runs have the same policy
    /// in the same setting and replicate, the contestants are policies of runs, and are named by
    /// both. `only` names the contestants to compare; an empty list means all.
    ///
    /// # Errors
    /// [`CompareError`].
    pub fn of(
        runs: &[Run],
        metric: Option<Metric>,
        only: &[String],
    ) -> Result<Contest, CompareError> {
        let mut all = Table::default();
        runs.iter().for_each(|run| all.append(run.rows.clone()));
        if all.rows.is_empty() {
            return Err(CompareError::Few { found: "there is no row".to_string() });
        }
        let metric = match metric {
            Some(metric) => metric,
            None => Metric::of(&all)?,
        };
        let names = short_names(&runs.iter().map(|run| run.name.clone()).collect::<Vec<_>>());
        same_options(runs, &metric)?;
        let twins = twins(runs, &metric)?;
        let is_by_run = collide(runs, &metric, &twins);
        let (contestants, values) = (Vec::new(), Vec::new());
        let mut contest = Contest { metric, contestants, twins, values };
        for (run, name) in runs.iter().zip(&names) {
            for row in 0..run.rows.rows.len() {
                let label = match (is_by_run, label(&run.rows, row)) {
                    (false, Some(label)) => label,
                    (false, None) | (true, None) => name.clone(),
                    (true, Some(label)) => format!("{label} in {name}"),
                };
                contest.take(&run.rows, row, label)?;
            }
        }
        contest.keep(only)?;
        Ok(contest)
    }

    fn take(&mut self, rows: &Table, row: usize, label: String) -> Result<(), CompareError> {
        let Some(value) = self.metric.value(rows, row) else { return Ok(()) };
        let at = match self.contestants.iter().position(|known| *known == label) {
            Some(at) => at,
            None => {
                self.contestants.push(label);
                self.values.push(Vec::new());
                self.contestants.len() - 1
            }
        };
        let place = place(rows, row, &self.twins);
        if let Some((_, first)) = self.values[at].iter().find(|(known, _)| *known == place) {
            let trace = rows.get(row, "trace").map(ToString::to_string);
            let is_copy = trace.is_some_and(|trace| self.twins.contains_key(&trace));
            // A time differs from run to run, so the value of the original trace is kept, not the
            // copy's.
            if *first == value || is_copy {
                return Ok(());
            }
            return Err(CompareError::Twice {
                contestant: self.contestants[at].clone(),
                place: shown(&place),
                first: Value::from(*first).to_string(),
                second: Value::from(value).to_string(),
            });
        }
        self.values[at].push((place, value));
        Ok(())
    }

    /// Drops the contestants that `only` does not name, and sorts the others into its order.
    fn keep(&mut self, only: &[String]) -> Result<(), CompareError> {
        let mut kept = Vec::new();
        for name in only {
            let at = self.contestants.iter().position(|known| known == name);
            let known = || self.contestants.join(", ");
            kept.push(
                at.ok_or_else(|| CompareError::Unknown { name: name.clone(), known: known() })?,
            );
        }
        if !only.is_empty() {
            self.contestants = kept.iter().map(|at| self.contestants[*at].clone()).collect();
            self.values = kept.iter().map(|at| self.values[*at].clone()).collect();
        }
        if self.contestants.len() < 2 {
            let found = match self.contestants.first() {
                Some(one) => format!("only {one} has {}", self.metric),
                None => format!("no row has a number for {}", self.metric),
            };
            return Err(CompareError::Few { found });
        }
        Ok(())
    }

    /// Returns `true` if all values are above zero, which ratios require.
    pub(super) fn has_ratios(&self) -> bool {
        self.values.iter().flatten().all(|(_, value)| *value > 0.0)
    }

    /// Returns the most informative replicate that has enough units of every contestant.
    ///
    /// # Errors
    /// [`CompareError::Replicates`].
    pub fn replicate(&self) -> Result<Replicate, CompareError> {
        let count = |replicate: &Replicate| {
            let units = |at| self.units(at, *replicate).len();
            (0..self.contestants.len()).map(units).min().unwrap_or(0)
        };
        let ample = Replicate::ALL.into_iter().find(|r| count(r) >= r.enough());
        let any = || Replicate::ALL.into_iter().find(|r| count(r) >= 2);
        ample.or_else(any).ok_or(CompareError::Replicates {
            replicate: "repetition, trace, block, seed or size".to_string(),
            hint: format!(
                "simulate more traces, or one in blocks ({}), or run live again",
                BLOCKS.set_to(20)
            ),
        })
    }

    /// Returns `true` if any value has a unit of the replicate.
    pub(super) fn has(&self, replicate: Replicate) -> bool {
        self.values.iter().flatten().any(|(place, _)| unit(place, replicate).is_some())
    }

    /// Returns the units of a replicate that a contestant has. A policy without random draws runs
    /// with one seed and would give equal values with any seed, so it has the units of all others.
    fn units(&self, contestant: usize, replicate: Replicate) -> BTreeSet<String> {
        let of = |at: usize| -> BTreeSet<String> {
            self.values[at].iter().filter_map(|(place, _)| unit(place, replicate)).collect()
        };
        let own = of(contestant);
        match replicate == Replicate::Seed && own.len() == 1 {
            true => (0..self.values.len()).flat_map(of).collect(),
            false => own,
        }
    }

    /// Returns values by unit of the replicate, then by setting, as means over every other
    /// repetition.
    pub(super) fn by_unit(&self, contestant: usize, replicate: Replicate) -> Units {
        let mut all: BTreeMap<Unit, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
        for (place, value) in &self.values[contestant] {
            let Some(unit) = unit(place, replicate) else { continue };
            let setting = self.setting(place, replicate);
            all.entry(Unit::of(&unit)).or_default().entry(setting).or_default().push(*value);
        }
        let means = |of: BTreeMap<String, Vec<f64>>| {
            of.into_iter().map(|(at, all)| (at, mean(&all))).collect()
        };
        all.into_iter().map(|(unit, of)| (unit, means(of))).collect()
    }

    /// Returns the mean over repetitions, seeds and blocks in each setting.
    pub(super) fn by_setting(&self, contestant: usize) -> BTreeMap<String, f64> {
        let mut settings: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (place, value) in &self.values[contestant] {
            settings.entry(shown(&setting_of(place))).or_default().push(*value);
        }
        settings.into_iter().map(|(setting, values)| (setting, mean(&values))).collect()
    }

    /// Returns the setting of a place without the replicate. A percentage of the pages is a
    /// different number of frames in each trace. Sizes of different traces are therefore matched by
    /// rank, from the smallest up.
    fn setting(&self, place: &Place, replicate: Replicate) -> String {
        let mut setting = setting_of(place);
        let column = replicate.columns().iter().find(|column| place.contains_key(*column));
        column.map(|column| setting.remove(column));
        if replicate == Replicate::Trace
            && let Some((size, trace)) = setting.get("size").zip(place.get("trace"))
        {
            let is_there = |(other, _): &&(Place, f64)| other.get("trace") == Some(trace);
            let all = self.values.iter().flatten().filter(is_there);
            let sizes: BTreeSet<Unit> =
                all.filter_map(|(other, _)| other.get("size")).map(|s| Unit::of(s)).collect();
            let rank = sizes.iter().position(|other| *other == Unit::of(size)).unwrap_or(0);
            setting.insert("size", format!("no. {}", rank + 1));
        }
        shown(&setting)
    }

    /// Returns the number of settings, and the number of settings that some contestant lacks.
    pub(super) fn settings(&self) -> (usize, usize) {
        let all: Vec<_> = (0..self.values.len()).map(|at| self.by_setting(at)).collect();
        let any: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
        let is_lacking = |setting: &&&String| all.iter().any(|of| !of.contains_key(**setting));
        (any.len(), any.iter().filter(is_lacking).count())
    }

    /// Returns the means by cache size, which form a contestant's curve. The list is empty if the
    /// sizes are frames of different traces.
    pub(super) fn by_size(&self, contestant: usize) -> Vec<(f64, f64)> {
        let traces: BTreeSet<_> =
            self.values.iter().flatten().filter_map(|(place, _)| place.get("trace")).collect();
        let mut sizes: BTreeMap<Unit, Vec<f64>> = BTreeMap::new();
        for (place, value) in &self.values[contestant] {
            let Some(size) = unit(place, Replicate::Size) else { continue };
            if traces.len() > 1 && !place.contains_key("percent") {
                continue;
            }
            sizes.entry(Unit::of(&size)).or_default().push(*value);
        }
        let point = |(size, values): (Unit, Vec<f64>)| Some((size.number()?, mean(&values)));
        sizes.into_iter().filter_map(point).collect()
    }
}

/// Values by unit and setting.
pub(super) type Units = BTreeMap<Unit, BTreeMap<String, f64>>;

/// Gives a policy that ran with one seed the seeds of the others too, because it draws nothing.
pub(super) fn with_seeds_of<'a>(own: &mut Units, others: impl Iterator<Item = &'a Units>) {
    if own.len() == 1
        && let Some(only) = own.values().next().cloned()
    {
        own.extend(others.flat_map(|of| of.keys().map(|unit| (unit.clone(), only.clone()))));
    }
}

/// Unit of a replicate; numeric units sort as numbers.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Unit(String);

impl Unit {
    fn of(text: &str) -> Unit {
        Unit(text.to_string())
    }

    fn number(&self) -> Option<f64> {
        self.0.trim_end_matches(" %").parse().ok()
    }
}

impl Eq for Unit {}

impl PartialOrd for Unit {
    fn partial_cmp(&self, other: &Unit) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Unit {
    fn cmp(&self, other: &Unit) -> std::cmp::Ordering {
        let numbers = self.number().zip(other.number());
        let by_number = numbers.map_or(std::cmp::Ordering::Equal, |(a, b)| a.total_cmp(&b));
        by_number.then_with(|| self.0.cmp(&other.0))
    }
}

/// Returns the policy of a row with its parameters.
fn label(rows: &Table, row: usize) -> Option<String> {
    let text = |name| match rows.get(row, name)? {
        Value::Empty => None,
        value => Some(value.to_string()),
    };
    let policy = text("policy")?;
    Some(match text("params").filter(|params| !params.is_empty()) {
        Some(params) => format!("{policy}({params})"),
        None => policy,
    })
}

/// Returns `true` if two runs have the same policy in one place.
fn collide(runs: &[Run], metric: &Metric, twins: &BTreeMap<String, String>) -> bool {
    let mut seen: BTreeMap<(Option<String>, Place), usize> = BTreeMap::new();
    for (at, run) in runs.iter().enumerate() {
        for row in 0..run.rows.rows.len() {
            if metric.value(&run.rows, row).is_none() {
                continue;
            }
            let key = (label(&run.rows, row), place(&run.rows, row, twins));
            if *seen.entry(key).or_insert(at) != at {
                return true;
            }
        }
    }
    false
}

/// Returns the texts of two columns, for all rows that have a value of the metric and of the second
/// column. The first text is empty if its column is missing.
fn texts<'r>(
    runs: &'r [Run],
    metric: &'r Metric,
    columns: [&'static str; 2],
) -> impl Iterator<Item = [String; 2]> + 'r {
    let of_run = move |run: &'r Run| {
        let rows = &run.rows;
        let text = |row, name| match rows.get(row, name)? {
            Value::Empty => None,
            value => Some(value.to_string()),
        };
        let counts = move |row: &usize| metric.value(rows, *row).is_some();
        (0..rows.rows.len()).filter(counts).filter_map(move |row| {
            Some([text(row, columns[0]).unwrap_or_default(), text(row, columns[1])?])
        })
    };
    runs.iter().flat_map(of_run)
}

/// Refuses rows with different options; the error names both options. Rows without options come
/// from live runs, other programs or older versions, and are accepted.
fn same_options(runs: &[Run], metric: &Metric) -> Result<(), CompareError> {
    let mut all = texts(runs, metric, ["policy", OPTIONS]).map(|[_, options]| options);
    let Some(first) = all.next() else { return Ok(()) };
    match all.find(|other| *other != first) {
        None => Ok(()),
        Some(second) => Err(CompareError::Options { first, second }),
    }
}

/// Maps each trace that repeats the references of an earlier trace to that trace. A trace is its
/// references: two names for them are one replicate, and two contents under one name are an error.
fn twins(runs: &[Run], metric: &Metric) -> Result<BTreeMap<String, String>, CompareError> {
    let (mut names, mut contents) = (BTreeMap::new(), BTreeMap::new());
    let mut twins = BTreeMap::new();
    for [trace, content] in texts(runs, metric, ["trace", CONTENT]) {
        let known = contents.entry(trace.clone()).or_insert_with(|| content.clone());
        if *known != content {
            return Err(CompareError::Contents { trace });
        }
        let name = names.entry(content).or_insert_with(|| trace.clone());
        if *name != trace {
            twins.insert(trace, name.clone());
        }
    }
    Ok(twins)
}

fn place(rows: &Table, row: usize, twins: &BTreeMap<String, String>) -> Place {
    let axes = AXES.iter().chain(Replicate::ALL.iter().flat_map(|r| r.columns()));
    let mut place = Place::new();
    for axis in axes {
        match rows.get(row, axis) {
            None | Some(Value::Empty) => {}
            Some(value) => drop(place.insert(axis, value.to_string())),
        }
    }
    if let Some(trace) = place.get_mut("trace")
        && let Some(name) = twins.get(trace)
    {
        trace.clone_from(name);
    }
    // Frame counts that follow from a share of the data differ from one trace to the next.
    if place.contains_key("percent") {
        place.remove("size");
    }
    // In live runs the frame counts also differ from one policy to the next, because a run's data
    // grow before they are counted.
    if ["percent", "size", "pool", "ratio"].iter().any(|axis| place.contains_key(axis)) {
        place.remove("pool_frames");
    }
    place
}

fn unit(place: &Place, replicate: Replicate) -> Option<String> {
    replicate.columns().iter().find_map(|column| place.get(column).cloned())
}

/// Returns a place without its repetitions.
fn setting_of(place: &Place) -> Place {
    let mut setting = place.clone();
    setting.retain(|axis, _| !["repetition", "seed", "block"].contains(axis));
    setting
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn shown(place: &Place) -> String {
    let parts: Vec<String> = place.iter().map(|(axis, value)| format!("{axis} {value}")).collect();
    parts.join(", ")
}
