//! What came out, as rows: one for each workload, number of threads and engine.

use millpond_lab::table::{Table, Value};

use crate::ratio::Ratio;
use crate::run::{Plan, Sample};
use crate::workload::Workload;

/// One row of the result.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The workload.
    pub workload: Workload,
    /// Threads.
    pub threads: u32,
    /// The engine.
    pub engine: String,
    /// Operations per second: the median of the rounds.
    pub rate: f64,
    /// Millpond's rate over the engine's, pair by pair; none for Millpond itself.
    pub ratio: Option<Ratio>,
    /// Microseconds, the medians of the rounds' quantiles.
    pub p50_us: Option<f64>,
    /// The same of the 99 % quantile.
    pub p99_us: Option<f64>,
    /// Bytes on disk over bytes of keys and values: the median of the rounds.
    pub bytes_per_raw: Option<f64>,
    /// Read requests to the device per operation: the median of the rounds.
    pub reads_per_op: Option<f64>,
    /// Bytes read from the device per operation: the median of the rounds.
    pub read_bytes_per_op: Option<f64>,
    /// Of durable commits: how many shared a flush, the median of the rounds.
    pub commits_per_flush: Option<f64>,
}

impl Row {
    /// Whether an engine whose commits are to be durable was seen to flush at least once per group
    /// of them. Each thread has one commit under way, so a flush cannot serve more of them than
    /// there are threads; a fifth is left for what the clocks of the threads disagree about.
    pub fn is_seen_to_flush(&self) -> Option<bool> {
        if self.workload != Workload::Commits || self.engine == BEST {
            return None;
        }
        let most = f64::from(self.threads) * 1.2;
        Some(self.commits_per_flush.is_some_and(|commits| commits <= most))
    }
}

/// In the place of an engine: in each round the best of those that are not Millpond.
pub const BEST: &str = "best";

/// The engine that the others are compared with: the first of the plan.
fn reference(plan: &Plan) -> &str {
    plan.engines.first().map_or("", String::as_str)
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[half]),
        _ => Some((values[half - 1] + values[half]) / 2.0),
    }
}

fn commits_per_flush(workload: Workload, samples: &[&Sample]) -> Option<f64> {
    if workload != Workload::Commits {
        return None;
    }
    median(samples.iter().filter_map(|s| s.measured.flushes_per_op).map(|flushes| 1.0 / flushes))
}

/// Millpond over whichever other engine was the best in each round. Who says that a commit is
/// durable, and was not seen to flush, is left out.
fn best_of<'s>(
    rows: &[Row],
    ours: &[&Sample],
    of: &dyn Fn(&str) -> Vec<&'s Sample>,
) -> Option<Row> {
    let is_other = |row: &&Row| !row.engine.starts_with("millpond");
    let others: Vec<&Sample> = rows
        .iter()
        .filter(is_other)
        .filter(|row| row.is_seen_to_flush() != Some(false))
        .flat_map(|row| of(&row.engine))
        .collect();
    let in_round = |ours: &&Sample| {
        let rates = others.iter().filter(|s| s.round == ours.round).map(|s| s.measured.rate);
        Some((ours.measured.rate, rates.max_by(f64::total_cmp)?))
    };
    let pairs: Vec<(f64, f64)> = ours.iter().filter_map(in_round).collect();
    Some(Row {
        engine: BEST.to_string(),
        rate: median(pairs.iter().map(|pair| pair.1))?,
        ratio: Ratio::of(pairs),
        p50_us: None,
        p99_us: None,
        commits_per_flush: None,
        ..rows.first()?.clone()
    })
}

/// The rows of all samples, in the order of the plan.
pub fn rows(plan: &Plan, samples: &[Sample]) -> Vec<Row> {
    let mut rows = Vec::new();
    for &workload in &plan.workloads {
        let mut threads: Vec<u32> =
            samples.iter().filter(|s| s.workload == workload).map(|s| s.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        for threads in threads {
            let of = |engine: &str| -> Vec<&Sample> {
                let is_it = |s: &&Sample| {
                    (s.workload, s.threads, s.engine.as_str()) == (workload, threads, engine)
                };
                samples.iter().filter(is_it).collect()
            };
            let ours = of(reference(plan));
            let first = rows.len();
            for engine in &plan.engines_of(workload) {
                let theirs = of(engine);
                let Some(rate) = median(theirs.iter().map(|s| s.measured.rate)) else { continue };
                let pairs = theirs.iter().filter_map(|their| {
                    let our = ours.iter().find(|our| our.round == their.round)?;
                    Some((our.measured.rate, their.measured.rate))
                });
                let is_reference = engine == reference(plan);
                let raw = plan.data.raw_bytes() as f64;
                rows.push(Row {
                    workload,
                    threads,
                    engine: engine.clone(),
                    rate,
                    ratio: if is_reference { None } else { Ratio::of(pairs) },
                    p50_us: median(theirs.iter().filter_map(|s| s.measured.p50_us)),
                    p99_us: median(theirs.iter().filter_map(|s| s.measured.p99_us)),
                    bytes_per_raw: median(
                        theirs.iter().filter_map(|s| s.bytes).map(|bytes| bytes as f64 / raw),
                    ),
                    reads_per_op: median(theirs.iter().filter_map(|s| s.measured.reads_per_op)),
                    read_bytes_per_op: median(
                        theirs.iter().filter_map(|s| s.measured.read_bytes_per_op),
                    ),
                    commits_per_flush: commits_per_flush(workload, &theirs),
                });
            }
            if workload.logged().is_some() {
                let best = best_of(&rows[first..], &ours, &of);
                rows.extend(best);
            }
        }
    }
    rows
}

/// The rows as a table: for the terminal, and flat for JSON.
pub fn table(plan: &Plan, rows: &[Row]) -> Table {
    let over = format!("{}_over", reference(plan));
    let (low, high) = (format!("{over}_low"), format!("{over}_high"));
    let mut table = Table::new([
        "step",
        "threads",
        "engine",
        "throughput_per_s",
        over.as_str(),
        low.as_str(),
        high.as_str(),
        "pairs",
        "p50_us",
        "p99_us",
        "bytes_per_raw",
        "reads_per_tx",
        "read_bytes_per_tx",
        "commits_per_flush",
        "seen_to_flush",
    ]);
    for row in rows {
        table.rows.push(vec![
            row.workload.name().into(),
            row.threads.into(),
            row.engine.clone().into(),
            row.rate.round().into(),
            row.ratio.map(|ratio| ratio.mean).into(),
            row.ratio.map(|ratio| ratio.low).into(),
            row.ratio.map(|ratio| ratio.high).into(),
            row.ratio.map_or(Value::Empty, |ratio| (ratio.pairs as u64).into()),
            row.p50_us.into(),
            row.p99_us.into(),
            row.bytes_per_raw.into(),
            row.reads_per_op.into(),
            row.read_bytes_per_op.map(f64::round).into(),
            row.commits_per_flush.into(),
            row.is_seen_to_flush()
                .map_or(Value::Empty, |seen| (if seen { "yes" } else { "no" }).into()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timed::Measured;
    use crate::workload::Data;
    use millpond_workload::ycsb::{Shape, UpdateStyle};

    fn plan() -> Plan {
        Plan {
            engines: vec!["millpond".into(), "other".into()],
            workloads: vec![Workload::LoadRandom, Workload::Zipf],
            threads: vec![1],
            commit_threads: vec![1],
            data: Data { rows: 10, shape: Shape::LEANSTORE, update: UpdateStyle::Put },
            warehouses: 1,
            rounds: 3,
            load_rounds: 1,
            seconds: 1.0,
            warm_s: 0.0,
            warm_larger_s: 0.0,
            cache: 1 << 30,
            cache_larger: 1 << 20,
            cgroup: None,
            seed: 1,
        }
    }

    fn sample(workload: Workload, engine: &str, round: u32, rate: f64) -> Sample {
        let measured = Measured { p50_us: Some(2.0), ..Measured::of_rate(rate) };
        let bytes = (workload == Workload::LoadRandom).then_some(1920);
        Sample { workload, engine: engine.to_string(), threads: 1, round, measured, bytes }
    }

    #[test]
    fn ratios_are_of_the_same_round_and_rates_are_medians() {
        let plan = plan();
        // The machine got four times as fast, and the ratio is 2 throughout. The other engine was
        // out of the last round.
        let samples = [
            sample(Workload::Zipf, "millpond", 0, 2.0),
            sample(Workload::Zipf, "other", 0, 1.0),
            sample(Workload::Zipf, "other", 1, 4.0),
            sample(Workload::Zipf, "millpond", 1, 8.0),
            sample(Workload::Zipf, "millpond", 2, 5.0),
            sample(Workload::LoadRandom, "other", 0, 7.0),
        ];
        let rows = rows(&plan, &samples);
        let names: Vec<_> = rows.iter().map(|r| (r.workload.name(), r.engine.as_str())).collect();
        assert_eq!(names, [("load-random", "other"), ("zipf", "millpond"), ("zipf", "other")]);
        assert_eq!((rows[0].ratio, rows[0].bytes_per_raw), (None, Some(1.5)));
        assert_eq!((rows[1].rate, rows[1].ratio), (5.0, None));
        let ratio = rows[2].ratio.unwrap();
        assert_eq!((rows[2].rate, ratio.pairs), (2.5, 2));
        assert!((ratio.mean - 2.0).abs() < 1e-9 && (ratio.low - 2.0).abs() < 1e-9);
        let table = table(&plan, &rows);
        assert_eq!(table.get(2, "millpond_over").and_then(Value::number), Some(2.0));
    }

    #[test]
    fn who_does_not_flush_once_per_group_of_commits_is_shown_and_is_not_the_best() {
        let names = ["millpond", "fjall", "redb", "sqlite"].map(String::from);
        let names: Vec<String> = names
            .into_iter()
            .filter(|name| crate::roster::names().contains(&name.as_str()))
            .collect();
        let plan = Plan { engines: names, workloads: vec![Workload::Commits], ..plan() };
        let commit = |engine: &str, round, rate, flushes| {
            let mut sample = sample(Workload::Commits, engine, round, rate);
            (sample.threads, sample.measured.flushes_per_op) = (2, Some(flushes));
            sample
        };
        let mut samples = Vec::new();
        for round in 0..2 {
            samples.push(commit("millpond", round, 12.0, 0.5));
            samples.push(commit("fjall", round, 90.0, 0.01));
            samples.push(commit("redb", round, 3.0 + f64::from(round), 2.0));
            samples.push(commit("sqlite", round, 4.0 - f64::from(round), 1.0));
        }
        let rows = rows(&plan, &samples);
        let seen: Vec<_> = rows.iter().map(|r| (r.engine.as_str(), r.is_seen_to_flush())).collect();
        if plan.engines.len() < 4 {
            return println!("skipped: this build has only {:?}", plan.engines);
        }
        let yes = Some(true);
        let expected = [("millpond", yes), ("fjall", Some(false)), ("redb", yes), ("sqlite", yes)];
        assert_eq!(seen, [&expected[..], &[(BEST, None)]].concat());
        let best = rows[4].ratio.unwrap();
        assert_eq!((rows[4].rate, best.pairs), (4.0, 2));
        assert!((best.mean - 3.0).abs() < 1e-9);
    }
}
