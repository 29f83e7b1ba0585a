//! One row of a sweep's results.

use crate::interval::Interval;
use crate::sim::Counts;
use crate::table::{Table, Value};

/// One run: its parameters and its counts.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The trace's name.
    pub trace: String,
    /// The policy's id.
    pub policy: String,
    /// The given parameters, `name=value,…`; empty for defaults.
    pub params: String,
    /// Number of frames.
    pub size: u32,
    /// The seed.
    pub seed: u64,
    /// The counters of the run.
    pub counts: Counts,
    /// Page reads.
    pub misses: u64,
    /// Page writes.
    pub writes: u64,
    /// Nanoseconds of CPU time per reference in the simulation. Reading, decoding and renumbering
    /// are not included.
    pub ns_per_reference: f64,
    /// Further columns of the host that ran the simulation.
    pub extra: Vec<(&'static str, Value)>,
}

/// Column with a hash of the trace's references, which identifies equal traces.
pub const CONTENT: &str = "content";
/// Column with all other parameters that numbers depend on: see [`Plan::options`].
///
/// [`Plan::options`]: super::Plan::options
pub const OPTIONS: &str = "options";

const COLUMNS: [&str; 20] = [
    "trace",
    "policy",
    "params",
    "size",
    "seed",
    "references",
    "hits",
    "misses",
    "writes",
    "hit_ratio",
    "offers_per_eviction",
    "policy_bytes",
    "ns_per_reference",
    "dirty_evictions",
    "dirty_at_end",
    "evictions",
    "bypasses",
    "scans",
    "pollution",
    "pollution_ratio",
];

impl Row {
    fn values(&self) -> Vec<Value> {
        let c = &self.counts;
        let polluted = (c.scans > 0).then_some(c.pollution);
        vec![
            self.trace.as_str().into(),
            self.policy.as_str().into(),
            self.params.as_str().into(),
            self.size.into(),
            self.seed.into(),
            c.references.into(),
            c.hits.into(),
            self.misses.into(),
            self.writes.into(),
            c.hit_ratio().into(),
            c.offers_per_eviction().into(),
            c.policy_bytes.into(),
            self.ns_per_reference.into(),
            c.dirty_evictions.into(),
            c.dirty_at_end.into(),
            c.evictions.into(),
            c.bypasses.into(),
            c.scans.into(),
            polluted.into(),
            polluted.map(|p| p as f64 / f64::from(self.size)).into(),
        ]
    }
}

/// Returns the rows as a table, in their order.
pub fn rows_to_table(rows: &[Row]) -> Table {
    let mut table = Table::new(COLUMNS.into_iter().chain([CONTENT, OPTIONS]));
    for row in rows {
        for (name, _) in &row.extra {
            if table.column(name).is_none() {
                table.columns.push((*name).to_string());
            }
        }
    }
    for row in rows {
        let mut values = row.values();
        values.resize(table.columns.len(), Value::Empty);
        for (name, value) in &row.extra {
            if let Some(at) = table.column(name) {
                values[at] = value.clone();
            }
        }
        table.rows.push(values);
    }
    table
}

/// Adds the column `relative_misses` (watt fig. 1): misses divided by those of the policy written
/// `reference` on the same trace, size and block, averaged over its seeds. Fields are empty where
/// the reference has no row.
pub fn relative_misses(table: &mut Table, reference: &str) {
    let text = |row: &[Value], at: Option<usize>| match at.map(|at| &row[at]) {
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let [trace, policy, params, size, block, misses] =
        ["trace", "policy", "params", "size", "block", "misses"].map(|name| table.column(name));
    let full_name = |row: &[Value]| match text(row, params) {
        params if params.is_empty() => text(row, policy),
        params => format!("{}({params})", text(row, policy)),
    };
    let misses_of = |row: &[Value]| misses.and_then(|at| row[at].number());
    let place = |row: &[Value]| [trace, size, block].map(|at| text(row, at));
    let bases: Vec<([String; 3], f64)> = table
        .rows
        .iter()
        .filter(|row| full_name(row) == reference)
        .filter_map(|row| Some((place(row), misses_of(row)?)))
        .collect();
    let relative: Vec<Value> = table
        .rows
        .iter()
        .map(|row| {
            let here = place(row);
            let same: Vec<f64> =
                bases.iter().filter(|(p, _)| *p == here).map(|(_, m)| *m).collect();
            let base = same.iter().sum::<f64>() / same.len() as f64;
            misses_of(row).filter(|_| base > 0.0).map(|m| m / base).into()
        })
        .collect();
    table.columns.push("relative_misses".to_string());
    for (row, value) in table.rows.iter_mut().zip(relative) {
        row.push(value);
    }
}

/// Returns one row for each policy and size of a trace, with means over its seeds and the 95 %
/// interval of the misses. Returns the table itself if no policy ran with two seeds.
pub fn over_seeds(table: &Table) -> Table {
    let columns = ["trace", "policy", "params", "size", "seed", "misses"];
    let [Some(trace), Some(policy), Some(params), Some(size), Some(seed), Some(misses)] =
        columns.map(|name| table.column(name))
    else {
        return table.clone();
    };
    let mut groups: Vec<Vec<&Vec<Value>>> = Vec::new();
    for row in &table.rows {
        let more = ["block", CONTENT, OPTIONS].into_iter().filter_map(|name| table.column(name));
        let places: Vec<usize> = [trace, policy, params, size].into_iter().chain(more).collect();
        let alike = |other: &Vec<&Vec<Value>>| places.iter().all(|at| other[0][*at] == row[*at]);
        match groups.iter().position(alike) {
            // A repeated seed does not count as a further repetition.
            Some(at) if groups[at].iter().any(|other| other[seed] == row[seed]) => {}
            Some(at) => groups[at].push(row),
            None => groups.push(vec![row]),
        }
    }
    if groups.len() == table.rows.len() {
        return table.clone();
    }
    let mut means = Table { columns: table.columns.clone(), rows: Vec::new() };
    means.columns[seed] = "seeds".to_string();
    for (at, name) in ["misses_low", "misses_high"].into_iter().enumerate() {
        means.columns.insert(misses + 1 + at, name.to_string());
    }
    for rows in groups {
        let mut row: Vec<Value> = (0..table.columns.len()).map(|at| mean(&rows, at)).collect();
        row[seed] = (rows.len() as u64).into();
        let values: Vec<f64> = rows.iter().filter_map(|row| row[misses].number()).collect();
        let interval = Interval::of_rates(&values).filter(|_| rows.len() > 1);
        row.insert(misses + 1, interval.map(|i| i.low).into());
        row.insert(misses + 2, interval.map(|i| i.high).into());
        means.rows.push(row);
    }
    means
}

/// Returns the mean of a column of numbers, or the value that all rows share.
fn mean(rows: &[&Vec<Value>], at: usize) -> Value {
    let first = &rows[0][at];
    if rows.iter().all(|row| row[at] == *first) {
        return first.clone();
    }
    let values: Vec<f64> = rows.iter().filter_map(|row| row[at].number()).collect();
    Interval::of(&values).map(|interval| interval.mean).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(policy: &str, params: &str, seed: u64, misses: u64) -> Row {
        Row {
            trace: "t".into(),
            policy: policy.into(),
            params: params.into(),
            size: 10,
            seed,
            counts: Counts { references: 100, hits: 100 - misses, ..Counts::default() },
            misses,
            writes: 0,
            ns_per_reference: 1.0,
            extra: Vec::new(),
        }
    }

    #[test]
    fn misses_are_normalised_to_the_mean_of_a_policy_over_its_seeds() {
        let rows = [
            row("watt", "", 1, 40),
            row("watt", "", 2, 60),
            row("watt", "sample=4", 1, 80),
            row("lru", "", 1, 75),
        ];
        let mut table = rows_to_table(&rows);
        relative_misses(&mut table, "watt");
        let relative: Vec<f64> =
            (0..4).map(|r| table.get(r, "relative_misses").unwrap().number().unwrap()).collect();
        assert_eq!(relative, [0.8, 1.2, 1.6, 1.5]);
    }

    #[test]
    fn seeds_become_a_mean_and_an_interval() {
        let rows = [row("watt", "", 1, 40), row("watt", "", 2, 60), row("lru", "", 1, 75)];
        let table = over_seeds(&rows_to_table(&rows));
        let get = |row, name| table.get(row, name).cloned().unwrap();
        assert_eq!(table.rows.len(), 2);
        assert_eq!((get(0, "misses"), get(0, "seeds")), (50.0.into(), 2u64.into()));
        assert!(get(0, "misses_low").number().unwrap() > 0.0, "no count is below zero");
        assert!(get(0, "misses_high").number().unwrap() > 60.0);
        assert_eq!((get(1, "misses"), get(1, "misses_low")), (75u64.into(), Value::Empty));
        let single = rows_to_table(&rows[1..]);
        assert_eq!(over_seeds(&single), single, "nothing to average");
    }
}
