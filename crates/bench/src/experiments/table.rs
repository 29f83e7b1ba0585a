//! Results as rows: flat, with the same columns for every command.

use millpond_lab::table::{Table, Value};

use crate::experiments::contest::StepResult;
use crate::instance::InstanceInfo;
use crate::instance::setup::Engine;
use crate::interval::Interval;
use crate::run::runner::{Outcome, Tick};

/// A row under construction: names and values in order.
#[derive(Clone, Debug, Default)]
pub struct Row(Vec<(String, Value)>);

impl Row {
    /// Creates a row that begins with its step, its engine and its number of threads.
    pub fn new(step: &str, engine: &str, threads: u32) -> Row {
        Row::default().with("step", step).with("engine", engine).with("threads", threads)
    }

    /// Adds a column.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Row {
        self.0.push((name.to_string(), value.into()));
        self
    }

    /// Returns the row's names and values, for a figure of an experiment.
    pub fn into_fields(self) -> Vec<(String, Value)> {
        self.0
    }

    /// Adds an interval as three columns: its mean and both ends.
    #[must_use]
    pub fn with_interval(self, name: &str, interval: &Interval) -> Row {
        self.with(name, interval.mean)
            .with(&format!("{name}_low"), interval.low)
            .with(&format!("{name}_high"), interval.high)
    }

    /// Adds the columns of every run: throughput, latencies, hit ratio, reads and writes per
    /// transaction.
    #[must_use]
    pub fn with_outcome(self, outcome: &Outcome, engine: Engine) -> Row {
        let per_tx = |events: u64| events as f64 / outcome.transactions.max(1) as f64;
        // The twin has no counters because it has no misses.
        let counts = match engine {
            Engine::Twin => Some(crate::run::counts::Counts::default()),
            Engine::Pool => outcome.counts,
        };
        let of = |read: &dyn Fn(&crate::run::counts::Counts) -> f64| counts.as_ref().map(read);
        self.with("throughput_per_s", outcome.throughput_per_s)
            .with("p50_us", outcome.latency_us(0.50))
            .with("p99_us", outcome.latency_us(0.99))
            .with("hit_ratio", of(&|c| c.hit_ratio()))
            .with("reads_per_tx", of(&|c| per_tx(c.reads)))
            .with("writes_per_tx", of(&|c| per_tx(c.writes)))
            .with("p999_us", outcome.latency_us(0.999))
            .with("leaf_hit_ratio", of(&|c| c.leaf_hit_ratio()))
            .with("references_per_tx", of(&|c| per_tx(c.references)))
            .with("restarts_per_tx", of(&|c| per_tx(c.restarts)))
            .with("cpu_us_per_tx", outcome.cpu_us_per_tx())
            .with("instructions_per_tx", outcome.instructions.map(per_tx))
            .with("rss_mib", outcome.resident_bytes.map(|bytes| bytes as f64 / 1048576.0))
            .with("transactions", outcome.transactions)
            .with("seconds", outcome.seconds)
    }

    /// Adds the columns of transactions, if there were any: their outcomes, and their log.
    #[must_use]
    pub fn with_transactions(self, outcome: &Outcome, info: &InstanceInfo) -> Row {
        if !info.log && !info.locks {
            return self;
        }
        let switch = |on| if on { "on" } else { "off" };
        let row = self
            .with("log", switch(info.log))
            .with("locks", switch(info.locks))
            .with("durability", info.durability.as_str())
            .with("retries", outcome.retries);
        let Some(counts) = outcome.counts else { return row };
        let row = match counts.tier_share() {
            Some(share) => row.with("tier_served", share),
            None => row,
        };
        if !info.log {
            return row;
        }
        let per_tx = |n: u64| n as f64 / outcome.transactions.max(1) as f64;
        row.with("log_bytes_per_tx", per_tx(counts.log_bytes))
            .with("log_written_per_tx", per_tx(counts.log_written))
            .with("log_syncs_per_s", counts.log_syncs as f64 / outcome.seconds.max(1e-9))
    }

    /// Adds the columns of the engine that ran.
    #[must_use]
    pub fn with_facts(self, info: &InstanceInfo) -> Row {
        self.with("policy", info.policy.as_str())
            .with("translation", info.translation.as_str())
            .with("latching", info.latching.as_str())
            .with("page_size", info.page_size)
            .with("pool_frames", info.frames)
            .with("data_pages", info.pages)
            .with("rows_loaded", info.rows)
            .with("load_s", info.load_s)
    }
}

/// Combines rows into a table with the columns of all of them.
pub fn table(rows: impl IntoIterator<Item = Row>) -> Table {
    let mut all = Table::default();
    for Row(fields) in rows {
        let mut one = Table::new(fields.iter().map(|(name, _)| name.as_str()));
        one.rows.push(fields.into_iter().map(|(_, value)| value).collect());
        all.append(one);
    }
    all
}

/// Returns the row of one step of a contest: its combined rounds, and its ratios.
pub fn contest_row(workload: &str, result: &StepResult) -> Option<Row> {
    let all = Outcome::of_rounds(&result.rounds)?;
    let info = &result.info;
    Some(
        Row::new(&result.name, &info.engine.to_string(), all.threads)
            .with_outcome(&all, info.engine)
            .with_transactions(&all, info)
            .with("workload", workload)
            .with("rounds", result.rounds.len() as u64)
            .with("throughput_low", result.throughput.low)
            .with("throughput_high", result.throughput.high)
            .with_interval("ratio_to_first", &result.to_first)
            .with_interval("ratio_to_last", &result.to_last)
            .with_interval("cpu_ratio_to_first", &result.cpu_to_first)
            .with_interval("cpu_ratio_to_last", &result.cpu_to_last)
            .with_facts(info),
    )
}

/// Returns a time series as rows, each beginning with the columns of `head`.
pub fn series_rows(head: &Row, series: &[Tick]) -> Vec<Row> {
    series
        .iter()
        .map(|tick| {
            let rate = |events: u64| events as f64 / tick.seconds.max(1e-9);
            head.clone()
                .with("second", tick.at_s)
                .with("throughput_per_s", rate(tick.transactions))
                .with("hit_ratio", tick.counts.map(|c| c.hit_ratio()))
                .with("reads_per_s", tick.counts.map(|c| rate(c.reads)))
                .with("writes_per_s", tick.counts.map(|c| rate(c.writes)))
        })
        .collect()
}
