//! CPU time by component before and after a change, from results of `millpond breakdown --json`.
//!
//! A component's time per transaction is a number of samples times the time per sample. Its error
//! is therefore the error of the number ([`Interval::of_count`]). Drift of the machine between the
//! runs is not included.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::interval::Interval;

/// Value of the field `command` in a result of a breakdown.
pub const COMMAND: &str = "breakdown";
/// Name of the row of all components together.
pub const ALL: &str = "all";

/// Reason why two results cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BreakdownError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// The file holds other data than a breakdown.
    #[error(
        "{}: {what}; a result of a breakdown is needed, as `millpond breakdown tpcc --json --out \
         FILE` writes it",
        path.display()
    )]
    Other {
        /// The file.
        path: PathBuf,
        /// The fault found in it.
        what: String,
    },
    /// The results come from different workloads.
    #[error(
        "{} is of {}, and {} of {}: only the same workload can be compared",
        before.0.display(), before.1, after.0.display(), after.1
    )]
    Workloads {
        /// The first file and its workload.
        before: (PathBuf, String),
        /// The second file and its workload.
        after: (PathBuf, String),
    },
    /// No number of threads occurs in both results.
    #[error(
        "{} has runs with {} threads, and {} with {}: the same number has to be in both",
        before.0.display(), before.1, after.0.display(), after.1
    )]
    Threads {
        /// The first file and its numbers of threads.
        before: (PathBuf, String),
        /// The second file and its numbers of threads.
        after: (PathBuf, String),
    },
}

/// One run of a breakdown, with one number of threads.
#[derive(Clone, PartialEq, Debug, Default)]
struct Run {
    /// Microseconds per transaction that one sample represents.
    us: f64,
    /// Number of all samples.
    all: u64,
    /// Samples of each component.
    components: BTreeMap<String, u64>,
}

impl Run {
    fn time(&self, samples: u64) -> Interval {
        Interval::of_count(samples).times(self.us)
    }
}

/// A result of a breakdown.
#[derive(Clone, PartialEq, Debug)]
pub struct Breakdown {
    /// The file of the result.
    pub path: PathBuf,
    /// The build that made the result: its id, or only its version if the file has no id.
    pub build: String,
    /// The parameters of the run.
    pub params: serde_json::Map<String, Json>,
    runs: BTreeMap<u64, Run>,
}

impl Breakdown {
    /// Reads a result.
    ///
    /// # Errors
    /// The file cannot be read, or holds other data.
    pub fn read(path: &Path) -> Result<Breakdown, BreakdownError> {
        let text = std::fs::read(path)
            .map_err(|error| BreakdownError::Read { path: path.to_path_buf(), error })?;
        let other = |what| BreakdownError::Other { path: path.to_path_buf(), what };
        let json = serde_json::from_slice(&text).map_err(|error| other(error.to_string()))?;
        Breakdown::parse(path, &json).map_err(other)
    }

    fn parse(path: &Path, json: &Json) -> Result<Breakdown, String> {
        match json["command"].as_str() {
            Some(COMMAND) => {}
            Some(other) => return Err(format!("it is a result of `{other}`")),
            None => return Err("it names no command".to_string()),
        }
        let params = json["params"].as_object().ok_or("it has no params")?.clone();
        let rows = json["rows"].as_array().filter(|rows| !rows.is_empty());
        let mut runs: BTreeMap<u64, (Run, f64)> = BTreeMap::new();
        for (at, row) in rows.ok_or("it has no rows")?.iter().enumerate() {
            let none = |column: &str| format!("row {} has no {column} that can be", at + 1);
            let whole = |column: &str| row[column].as_u64().ok_or_else(|| none(column));
            let number = |column: &str| {
                let value = row[column].as_f64().filter(|value| value.is_finite() && *value >= 0.0);
                value.ok_or_else(|| none(column))
            };
            let samples = whole("samples")?.max(1);
            let (us, unassigned) = (number("cpu_us_per_tx")?, number("unassigned")?);
            let component = row["component"].as_str().ok_or_else(|| none("component"))?;
            let (run, run_unassigned) = runs.entry(whole("threads")?).or_default();
            run.us = us / samples as f64;
            *run_unassigned = unassigned;
            run.components.insert(component.to_string(), samples);
        }
        let runs = runs.into_iter().map(|(threads, (mut run, unassigned))| {
            // Samples that could not be assigned have no row.
            let assigned = run.components.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
            run.all = (assigned as f64 / (1.0 - unassigned.min(0.999))).round() as u64;
            (threads, run)
        });
        let version = json["version"].as_str().unwrap_or("unknown");
        let build = params.get("build").and_then(Json::as_str).unwrap_or(version).to_string();
        Ok(Breakdown { path: path.to_path_buf(), build, params, runs: runs.collect() })
    }

    /// Returns the workload, and its data where the file names them.
    pub fn workload(&self) -> String {
        let text = |name: &str| self.params.get(name).and_then(Json::as_str);
        let name = text("workload").unwrap_or("an unknown workload");
        text("data").map_or_else(|| name.to_string(), |data| format!("{name} ({data})"))
    }

    fn threads(&self) -> String {
        let all: Vec<String> = self.runs.keys().map(u64::to_string).collect();
        all.join(", ")
    }
}

/// A component's CPU time per transaction before and after, in microseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// Number of threads of the runs.
    pub threads: u64,
    /// Name of the component, or [`ALL`].
    pub component: String,
    /// CPU time before the change.
    pub before: Interval,
    /// CPU time after the change.
    pub after: Interval,
    /// The increase from `before` to `after`.
    pub difference: Interval,
}

impl Change {
    fn of(threads: u64, component: &str, before: Interval, after: Interval) -> Change {
        let difference = after.minus(&before);
        Change { threads, component: component.to_string(), before, after, difference }
    }

    /// Returns *less* or *more* if the difference's interval excludes 0, else *open*.
    pub fn verdict(&self) -> &'static str {
        match self.difference {
            Interval { high, .. } if high < 0.0 => "less",
            Interval { low, .. } if low > 0.0 => "more",
            _ => "open",
        }
    }
}

/// Returns the changes of all components for each number of threads that both results have: the
/// largest component first, and all components together last.
///
/// # Errors
/// The results come from different workloads, or have no number of threads in common.
pub fn changes(before: &Breakdown, after: &Breakdown) -> Result<Vec<Change>, BreakdownError> {
    let both = |of: fn(&Breakdown) -> String| {
        ((before.path.clone(), of(before)), (after.path.clone(), of(after)))
    };
    // A file that does not name its data is compared by the workload's name.
    let differ = |name: &str| match (before.params.get(name), after.params.get(name)) {
        (Some(one), Some(other)) => one != other,
        _ => name != "data",
    };
    if differ("workload") || differ("data") {
        let (before, after) = both(Breakdown::workload);
        return Err(BreakdownError::Workloads { before, after });
    }
    let mut all = Vec::new();
    for (threads, one) in &before.runs {
        let Some(other) = after.runs.get(threads) else { continue };
        let count = |run: &Run, name: &str| run.components.get(name).copied().unwrap_or(0);
        let mut names: Vec<&String> = one.components.keys().collect();
        names.extend(other.components.keys().filter(|name| !one.components.contains_key(*name)));
        let change = |name: &String| {
            let (before, after) = (one.time(count(one, name)), other.time(count(other, name)));
            Change::of(*threads, name, before, after)
        };
        let mut of_run: Vec<Change> = names.into_iter().map(change).collect();
        let larger = |change: &Change| change.before.mean.max(change.after.mean);
        of_run.sort_by(|a, b| larger(b).total_cmp(&larger(a)));
        all.extend(of_run);
        all.push(Change::of(*threads, ALL, one.time(one.all), other.time(other.all)));
    }
    if all.is_empty() {
        let (before, after) = both(Breakdown::threads);
        return Err(BreakdownError::Threads { before, after });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a result whose samples represent `us` each; a tenth of all samples are unassigned.
    fn result(params: Json, us: f64, rows: &[(u64, &str, u64)]) -> Json {
        let row = |(threads, component, samples): &(u64, &str, u64)| {
            json!({
                "threads": threads,
                "component": component,
                "samples": samples,
                "cpu_us_per_tx": *samples as f64 * us,
                "unassigned": 0.1,
            })
        };
        let rows: Vec<Json> = rows.iter().map(row).collect();
        json!({ "command": "breakdown", "version": "1.2.3", "params": params, "rows": rows })
    }

    fn parsed(json: &Json) -> Result<Breakdown, String> {
        Breakdown::parse(Path::new("x.json"), json)
    }

    fn tpcc() -> Json {
        json!({ "workload": "tpcc", "data": "1 warehouse", "build": "1.2.3-abc" })
    }

    #[test]
    fn a_change_is_marked_where_samples_tell_it_from_none() {
        let before = [(1, "logging", 10_000), (1, "B-tree", 5_000), (1, "gone", 30)];
        let after = [(1, "logging", 8_000), (1, "B-tree", 5_050), (1, "new", 40), (2, "x", 1)];
        let [before, after] = [(&before[..], 0.001), (&after[..], 0.001)]
            .map(|(rows, us)| parsed(&result(tpcc(), us, rows)).unwrap());
        let all = changes(&before, &after).unwrap();
        let found: Vec<(&str, &str)> =
            all.iter().map(|change| (change.component.as_str(), change.verdict())).collect();
        let expected = [("logging", "less"), ("B-tree", "open"), ("new", "more"), ("gone", "less")];
        assert_eq!(found[..4], expected);
        assert_eq!(found[4..], [(ALL, "less")], "two threads are in one of them only");
        let logging = &all[0];
        assert!((logging.difference.mean + 2.0).abs() < 1e-9, "{logging:?}");
        // 1.96 · √(10000 + 8000) samples.
        let half = logging.difference.high - logging.difference.mean;
        assert!((half - 0.263).abs() < 0.002, "{logging:?}");
        // 15,030 of 16,700.
        assert!((all[4].before.mean - 16.7).abs() < 1e-6, "{:?}", all[4]);
    }

    #[test]
    fn a_sample_stands_for_what_its_own_run_says() {
        let rows = [(1, "logging", 1000)];
        let [slow, fast] = [2.0, 1.0].map(|us| parsed(&result(tpcc(), us, &rows)).unwrap());
        let change = &changes(&slow, &fast).unwrap()[0];
        assert_eq!((change.before.mean, change.after.mean), (2000.0, 1000.0));
        assert_eq!(change.verdict(), "less");
        assert_eq!(changes(&slow, &slow).unwrap()[0].verdict(), "open");
    }

    #[test]
    fn different_workloads_are_named() {
        let rows = [(1, "logging", 10)];
        let of = |params: Json| parsed(&result(params, 1.0, &rows)).unwrap();
        let error =
            |one: &Breakdown, other: &Breakdown| changes(one, other).unwrap_err().to_string();
        let one = of(tpcc());
        let ycsb = of(json!({ "workload": "ycsb-read", "data": "5 rows" }));
        let text = error(&one, &ycsb);
        assert!(
            text.contains("tpcc (1 warehouse)") && text.contains("ycsb-read (5 rows)"),
            "{text}"
        );
        let larger = of(json!({ "workload": "tpcc", "data": "2 warehouses" }));
        assert!(error(&one, &larger).contains("2 warehouses"));
        let older = of(json!({ "workload": "tpcc" }));
        assert!(
            changes(&one, &older).is_ok() && older.build == "1.2.3" && one.build == "1.2.3-abc"
        );
        assert!(changes(&of(json!({})), &older).is_err());
        let two = parsed(&result(tpcc(), 1.0, &[(2, "logging", 10)])).unwrap();
        assert!(error(&one, &two).contains("x.json has runs with 1 threads, and x.json with 2"));
    }

    #[test]
    fn what_is_no_result_says_why() {
        let good = result(tpcc(), 1.0, &[(1, "logging", 10)]);
        let broken = |change: fn(&mut Json)| {
            let mut json = good.clone();
            change(&mut json);
            parsed(&json).unwrap_err()
        };
        for (error, expected) in [
            (broken(|json| json["command"] = "bench tpcc".into()), "a result of `bench tpcc`"),
            (broken(|json| *json = json!([1])), "names no command"),
            (broken(|json| json["params"] = Json::Null), "no params"),
            (broken(|json| json["rows"] = json!([])), "no rows"),
            (broken(|json| json["rows"][0]["samples"] = json!(-1)), "row 1 has no samples"),
            (broken(|json| json["rows"][0]["cpu_us_per_tx"] = Json::Null), "no cpu_us_per_tx"),
            (broken(|json| json["rows"][0]["component"] = json!(7)), "no component"),
            (broken(|json| json["rows"][0]["threads"] = json!("1")), "no threads"),
        ] {
            assert!(error.contains(expected), "{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.json");
        assert!(matches!(Breakdown::read(&path), Err(BreakdownError::Read { .. })));
        std::fs::write(&path, "no json").unwrap();
        let text = Breakdown::read(&path).unwrap_err().to_string();
        assert!(text.contains("text.json") && text.contains("breakdown tpcc --json"), "{text}");
        std::fs::write(&path, good.to_string()).unwrap();
        assert_eq!(Breakdown::read(&path).unwrap().workload(), "tpcc (1 warehouse)");
    }
}
