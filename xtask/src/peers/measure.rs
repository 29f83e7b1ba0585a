//! One cell: a policy, a trace and a size, both sides in turn.
//!
//! **Policy time.** Ours is the time per reference that `sim --tables dense` reports, as in a
//! sweep, which holds the renumbered trace in memory. The wheel of libCacheSim cannot read a trace
//! from memory. So its time is that of `process_trace` over the mapped file in the page cache,
//! less a pass of its own reader over the same file with everything sampled away (about 7 ns per
//! reference). The difference is the time of its cache alone. Both times are wall-clock times, as
//! `sim` counts.
//!
//! **End to end.** Ours is a second run without `--tables`: the whole process, from start to exit.
//! Theirs is `process_trace` alone, reader and cache, without Python's start, which favours them.
//!
//! Each side runs in its own process, pinned to the same core, one directly after the other. A
//! pair's ratio is computed before anything is averaged. libCacheSim gets the best of its default
//! hash table and two fitted ones, tried before the pairs, unless `--default-table` is given.

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::Value;

use super::cells::{HASHPOWER_DEFAULT, Pair, frames, hashpowers};
use super::csv;
use super::options::Options;
use super::statistics::{Ratio, median, ratio};
use super::tools::Tools;
use super::traces::Trace;

/// One run of one side.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Run {
    pub misses: u64,
    /// Policy time per reference.
    pub policy_ns: f64,
    /// Wall-clock time from the file.
    pub end_to_end_s: f64,
    /// CPU time from the file.
    pub end_to_end_cpu_s: f64,
}

/// Result of one cell.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    pub trace: String,
    pub percent: u64,
    pub frames: u64,
    pub ours: &'static str,
    pub theirs: &'static str,
    pub hashpower: u32,
    /// Their policy time with the wheel's own default table, one run.
    pub theirs_default_ns: f64,
    pub pairs: Vec<(Run, Run)>,
    pub ours_ns: f64,
    pub theirs_ns: f64,
    pub policy: Ratio,
    pub wall: Ratio,
    pub cpu: Ratio,
    pub agreement: Agreement,
}

/// Agreement of both sides' misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Agreement {
    /// Equal to the last miss.
    Equal,
    /// Misses differ, and may, since definitions or random numbers differ.
    MayDiffer,
    /// Misses differ, and should not.
    Differs,
}

/// Runs a cell.
pub fn cell(
    tools: &Tools,
    trace: &Trace,
    pair: Pair,
    percent: u64,
    options: &Options,
) -> Result<Cell> {
    let frames = frames(trace.pages, percent);
    let mut hashpower = HASHPOWER_DEFAULT;
    let (mut fastest, mut default_ns) = (f64::INFINITY, f64::NAN);
    for power in hashpowers(frames, options.is_default_table) {
        let run = theirs(tools, trace, pair, frames, power)?;
        if power == HASHPOWER_DEFAULT {
            default_ns = run.policy_ns;
        }
        if run.policy_ns < fastest {
            (fastest, hashpower) = (run.policy_ns, power);
        }
    }
    // This run warms the page cache and our binary; it is not counted.
    ours(tools, trace, pair, frames)?;
    let mut pairs = Vec::new();
    for round in 0..options.repetitions {
        // The sides take turns going first.
        let (mine, other) = if round % 2 == 0 {
            let mine = ours(tools, trace, pair, frames)?;
            (mine, theirs(tools, trace, pair, frames, hashpower)?)
        } else {
            let other = theirs(tools, trace, pair, frames, hashpower)?;
            (ours(tools, trace, pair, frames)?, other)
        };
        pairs.push((mine, other));
    }
    let agreement = agreement(pair, &pairs)?;
    let of = |get: fn(&Run) -> f64| {
        let samples: Vec<f64> = pairs.iter().map(|(mine, other)| get(other) / get(mine)).collect();
        ratio(&samples)
    };
    let side = |get: fn(&(Run, Run)) -> f64| median(&pairs.iter().map(get).collect::<Vec<_>>());
    Ok(Cell {
        trace: trace.name.clone(),
        percent,
        frames,
        ours: pair.ours,
        theirs: pair.theirs,
        hashpower,
        theirs_default_ns: default_ns,
        ours_ns: side(|(mine, _)| mine.policy_ns),
        theirs_ns: side(|(_, other)| other.policy_ns),
        policy: of(|run| run.policy_ns),
        wall: of(|run| run.end_to_end_s),
        cpu: of(|run| run.end_to_end_cpu_s),
        agreement,
        pairs,
    })
}

/// Compares misses. Ours must be the same in every run.
fn agreement(pair: Pair, pairs: &[(Run, Run)]) -> Result<Agreement> {
    let (mine, other) = pairs.first().context("a cell without a run")?;
    if pairs.iter().any(|(run, _)| run.misses != mine.misses) {
        bail!("{} missed differently often in equal runs", pair.ours);
    }
    Ok(match (mine.misses == other.misses, pair.is_exact) {
        (true, _) => Agreement::Equal,
        (false, false) => Agreement::MayDiffer,
        (false, true) => Agreement::Differs,
    })
}

fn theirs(tools: &Tools, trace: &Trace, pair: Pair, frames: u64, hashpower: u32) -> Result<Run> {
    let path = trace.file.to_string_lossy();
    let (frames, power) = (frames.to_string(), hashpower.to_string());
    let arguments = ["theirs", &path, pair.theirs, &frames, &power];
    let answer = tools.peer(&tools.directory, &arguments)?;
    let number = |key| number(&answer, key);
    let references = number("references")?;
    if references != trace.references as f64 {
        bail!("libCacheSim read {references} references of {}", trace.references);
    }
    Ok(Run {
        misses: number("misses")? as u64,
        // CPU time, as for ours, since other processes may have used the core.
        policy_ns: (number("cpu")? - number("read")?) * 1e9 / references,
        end_to_end_s: number("seconds")?,
        end_to_end_cpu_s: number("cpu")?,
    })
}

/// Runs once for the policy time and once from the file, each as a user would run it.
fn ours(tools: &Tools, trace: &Trace, pair: Pair, frames: u64) -> Result<Run> {
    let (policy, _) = sim(tools, trace, pair, frames, "dense")?;
    let (row, answer) = sim(tools, trace, pair, frames, "auto")?;
    let misses = csv::number(&row, "misses")?;
    if misses != csv::number::<u64>(&policy, "misses")? {
        bail!("{} missed differently often with dense tables", pair.ours);
    }
    Ok(Run {
        misses,
        policy_ns: csv::number(&policy, "ns_per_reference")?,
        end_to_end_s: number(&answer, "seconds")?,
        end_to_end_cpu_s: number(&answer, "cpu")?,
    })
}

type Row = Vec<(String, String)>;

/// Runs `millpond sim` once; returns its row, and the time measured around it.
fn sim(
    tools: &Tools,
    trace: &Trace,
    pair: Pair,
    frames: u64,
    tables: &str,
) -> Result<(Row, Value)> {
    let program = tools.millpond.to_string_lossy();
    let (path, frames) = (trace.file.to_string_lossy(), frames.to_string());
    let what = ["ours", &program, "sim", &path, "--policy", pair.ours, "--size", &frames];
    // Their call writes no result directory either.
    let how = ["--format", "csv", "--threads", "1", "--no-results", "--quiet", "--tables", tables];
    let arguments = [&what[..], &how[..]].concat();
    let answer = tools.peer(&tools.directory, &arguments)?;
    if answer["status"] != 0 {
        let errors = answer["errors"].as_str().unwrap_or("");
        bail!("millpond {} failed: {}", arguments[2..].join(" "), errors.trim());
    }
    let row = csv::only_row(answer["output"].as_str().unwrap_or(""))?;
    let references: u64 = csv::number(&row, "references")?;
    if references != trace.references {
        bail!("millpond read {references} references of {}", trace.references);
    }
    Ok((row, answer))
}

fn number(answer: &Value, key: &str) -> Result<f64> {
    answer[key].as_f64().with_context(|| format!("peer.py said no {key}"))
}

#[cfg(test)]
mod tests {
    use super::super::cells::PAIRS;
    use super::*;

    fn run(misses: u64) -> Run {
        Run { misses, policy_ns: 1.0, end_to_end_s: 1.0, end_to_end_cpu_s: 1.0 }
    }

    #[test]
    fn a_difference_counts_only_where_the_definitions_are_equal() {
        let exact = PAIRS.into_iter().find(|p| p.is_exact).unwrap();
        let loose = PAIRS.into_iter().find(|p| !p.is_exact).unwrap();
        let of = |pair, a, b| agreement(pair, &[(run(a), run(b))]).unwrap();
        assert_eq!(of(exact, 7, 7), Agreement::Equal);
        assert_eq!(of(exact, 7, 8), Agreement::Differs);
        assert_eq!(of(loose, 7, 8), Agreement::MayDiffer);
    }

    #[test]
    fn ours_must_repeat_itself() {
        let pairs = [(run(7), run(7)), (run(8), run(7))];
        assert!(agreement(PAIRS[0], &pairs).is_err());
    }
}
