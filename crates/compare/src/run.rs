//! The run: rounds in which every engine has its turn with every workload.
//!
//! The order of the engines is drawn again for every round, so that none always follows the same
//! one. Engines that fail at something are out of that workload, and the reason is reported; the
//! others continue.

use std::path::{Path, PathBuf};
use std::time::Duration;

use millpond_base::Seed;
use millpond_bench::run::turns;
use millpond_workload::tpcc::Scale;

use crate::engine::{Commits, Settings};
use crate::larger::Order;
use crate::roster;
use crate::stand::{Contestant, Loaded};
use crate::timed::{Measured, PERIOD, Timing};
use crate::workload::{Data, Workload};

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Engines, by name.
    pub engines: Vec<String>,
    /// Workloads.
    pub workloads: Vec<Workload>,
    /// Numbers of threads.
    pub threads: Vec<u32>,
    /// Numbers of threads that commit durably.
    pub commit_threads: Vec<u32>,
    /// The rows.
    pub data: Data,
    /// Warehouses of TPC-C.
    pub warehouses: u32,
    /// Rounds of everything but loads.
    pub rounds: u32,
    /// Rounds of loads.
    pub load_rounds: u32,
    /// Seconds of a slice that count.
    pub seconds: f64,
    /// Seconds before.
    pub warm_s: f64,
    /// Seconds before, where data is larger than memory.
    pub warm_larger_s: f64,
    /// Bytes of every engine's cache.
    pub cache: u64,
    /// Bytes of it where data is larger than memory.
    pub cache_larger: u64,
    /// A memory cgroup, and the limit in bytes, where data is larger than memory.
    pub cgroup: Option<(PathBuf, u64)>,
    /// Seed of everything random.
    pub seed: u64,
}

/// One result: a load or a slice.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// The workload.
    pub workload: Workload,
    /// The engine.
    pub engine: String,
    /// Threads.
    pub threads: u32,
    /// The round, from 0.
    pub round: u32,
    /// What came out.
    pub measured: Measured,
    /// Bytes on disk, of loads.
    pub bytes: Option<u64>,
}

/// A run under way.
struct Run<'p> {
    plan: &'p Plan,
    root: &'p Path,
    engines: Vec<Box<dyn Contestant>>,
    /// Engines that are out, by name and workload.
    out: Vec<(&'static str, Workload)>,
    samples: Vec<Sample>,
    /// Receives every step.
    report: &'p mut dyn FnMut(&str),
}

impl Plan {
    fn settings(&self, commits: Commits) -> Settings {
        let threads = match commits {
            Commits::Sync => &self.commit_threads,
            _ => &self.threads,
        };
        let threads = threads.iter().copied().max().unwrap_or(1);
        // Room for an engine that keeps four times what it was given, and for TPC-C's rows.
        let tpcc = u64::from(self.warehouses) << 28;
        let disk_max = (self.data.raw_bytes() * 4).max(tpcc) + (4 << 30);
        Settings {
            cache: self.cache,
            threads,
            disk_max,
            is_tight: false,
            commits,
            many_calls: false,
        }
    }

    fn timing(&self, threads: u32) -> Timing {
        let [warm, time] = [self.warm_s, self.seconds].map(Duration::from_secs_f64);
        Timing { threads, warm, time, device: None, period: PERIOD }
    }

    fn runs(&self, workload: Workload) -> bool {
        self.workloads.contains(&workload)
    }

    /// The engines that are in a workload, by name.
    pub fn engines_of(&self, workload: Workload) -> Vec<String> {
        match workload.logged() {
            Some(commits) => roster::logged_names(&self.engines, commits),
            None => self.engines.clone(),
        }
    }

    /// Runs everything below the folder `root`; `report` receives every step.
    ///
    /// # Errors
    /// An engine that this build does not have. What fails later is reported and left out.
    pub fn run(&self, root: &Path, report: &mut dyn FnMut(&str)) -> anyhow::Result<Vec<Sample>> {
        let settings = self.settings(Commits::Bare);
        let is_bare = self.workloads.iter().any(|workload| workload.logged().is_none());
        let names = if is_bare { &self.engines[..] } else { &[] };
        let engines = names.iter().map(|name| roster::make(name, root, &settings));
        let engines = engines.collect::<anyhow::Result<Vec<_>>>()?;
        let mut run = Run { plan: self, root, engines, out: vec![], samples: vec![], report };
        run.loads();
        run.in_memory();
        if self.runs(Workload::Larger) {
            run.larger();
        }
        if self.runs(Workload::Tpcc) {
            run.tpcc();
        }
        for workload in [Workload::Updates, Workload::Commits] {
            if let (true, Some(commits)) = (self.runs(workload), workload.logged()) {
                run.logged(workload, commits)?;
            }
        }
        Ok(run.samples)
    }
}

/// Of the engines' slices of a workload with `threads` threads, in the round that has this seed. No
/// other slice has it: a value that was written before is no change to an engine that looks, and
/// needs neither log nor flush.
fn slice_seed(round: Seed, workload: Workload, threads: u32) -> Seed {
    round.derive(&format!("{} in {threads} threads", workload.name()))
}

impl Run<'_> {
    /// The engines' positions in the order of round `round`.
    fn order(&self, round: u32) -> Vec<usize> {
        turns::order(Seed(self.plan.seed), round, self.engines.len())
    }

    fn seed(&self, round: u32) -> Seed {
        Seed(self.plan.seed).derive(&format!("round {round}"))
    }

    fn is_out(&self, at: usize, workload: Workload) -> bool {
        self.out.contains(&(self.engines[at].name(), workload))
    }

    /// Notes a result, or that the engine is out.
    fn note(
        &mut self,
        at: usize,
        workload: Workload,
        threads: u32,
        round: u32,
        result: anyhow::Result<(Measured, Option<u64>)>,
    ) {
        let engine = self.engines[at].name();
        match result {
            Ok((measured, bytes)) => {
                (self.report)(&format!(
                    "round {:>2}  {:<14} {threads} threads  {engine:<14} {:>12.0}/s",
                    round + 1,
                    workload.name(),
                    measured.rate
                ));
                let engine = engine.to_string();
                self.samples.push(Sample { workload, engine, threads, round, measured, bytes });
            }
            Err(error) => {
                (self.report)(&format!("{engine} is out of {}: {error:#}", workload.name()));
                self.out.push((engine, workload));
            }
        }
    }

    /// The loads. Whatever else needs rows runs on those of the last one in random order.
    fn loads(&mut self) {
        let plan = self.plan;
        let needs_rows = plan.workloads.iter().any(|w| w.is_in_memory() || *w == Workload::Larger);
        let measured = plan.runs(Workload::LoadRandom);
        let rounds = match (measured, plan.runs(Workload::LoadAscending)) {
            (false, false) => u32::from(needs_rows),
            _ => plan.load_rounds.max(1),
        };
        for round in 0..rounds {
            for order in [Workload::LoadAscending, Workload::LoadRandom] {
                let is_last = round + 1 == rounds;
                let random = order == Workload::LoadRandom;
                if plan.runs(order) || (random && needs_rows && is_last) {
                    self.load_all(order, round);
                }
            }
        }
    }

    fn load_all(&mut self, order: Workload, round: u32) {
        for at in self.order(round) {
            if self.is_out(at, order) {
                continue;
            }
            let seed = Seed(self.plan.seed);
            let loaded = self.engines[at].load(&self.plan.data, order, seed);
            let result =
                loaded.map(|Loaded { rate, bytes }| (Measured::of_rate(rate), Some(bytes)));
            self.note(at, order, 1, round, result);
        }
    }

    fn in_memory(&mut self) {
        let plan = self.plan;
        let workloads: Vec<Workload> =
            plan.workloads.iter().copied().filter(|w| w.is_in_memory()).collect();
        if workloads.is_empty() {
            return;
        }
        for round in 0..plan.rounds {
            self.warm(round);
            for &workload in &workloads {
                for &threads in &plan.threads {
                    self.slices(workload, threads, round);
                }
            }
        }
    }

    /// Has each engine read all of its rows: what was not read for a minute may have left the
    /// machine's memory.
    fn warm(&mut self, round: u32) {
        for at in self.order(round) {
            if let Err(error) = self.engines[at].warm() {
                (self.report)(&format!("{} was not warmed: {error:#}", self.engines[at].name()));
            }
        }
    }

    fn slices(&mut self, workload: Workload, threads: u32, round: u32) {
        let (mut timing, seed) =
            (self.plan.timing(threads), slice_seed(self.seed(round), workload, threads));
        if workload.logged() == Some(Commits::Sync) {
            timing.period = 1;
        }
        for at in self.order(round) {
            if self.is_out(at, workload) {
                continue;
            }
            let result = self.engines[at].slice(&self.plan.data, workload, &timing, seed);
            self.note(at, workload, threads, round, result.map(|measured| (measured, None)));
        }
    }

    fn close_all(&mut self) {
        for at in 0..self.engines.len() {
            if let Err(error) = self.engines[at].close() {
                (self.report)(&format!("{} did not close: {error:#}", self.engines[at].name()));
                self.out.push((self.engines[at].name(), Workload::Larger));
            }
        }
    }

    fn larger(&mut self) {
        let plan = self.plan;
        self.close_all();
        for round in 0..plan.rounds {
            for &threads in &plan.threads {
                for at in self.order(round) {
                    let engine = &self.engines[at];
                    if !engine.persists() || self.is_out(at, Workload::Larger) {
                        continue;
                    }
                    let order = Order {
                        engine: engine.name().to_string(),
                        root: self.root.to_path_buf(),
                        rows: plan.data.rows,
                        value_len: plan.data.shape.field_len,
                        scattered_keys: plan.data.shape.scattered_keys,
                        cache: plan.cache_larger,
                        disk_max: plan.settings(Commits::Bare).disk_max,
                        threads,
                        warm_s: plan.warm_larger_s,
                        seconds: plan.seconds.max(3.0),
                        seed: self.seed(round).0,
                        cgroup: plan.cgroup.clone(),
                    };
                    let result = order.run_in_process().map(|measured| (measured, None));
                    self.note(at, Workload::Larger, threads, round, result);
                }
            }
        }
    }

    /// A workload on stores of its own, with logs, that take the place of those before.
    fn logged(&mut self, workload: Workload, commits: Commits) -> anyhow::Result<()> {
        let plan = self.plan;
        self.close_all();
        let (root, settings) = (self.root.join(workload.name()), plan.settings(commits));
        let names = plan.engines_of(workload);
        let make = |name: &String| roster::make(name, &root, &settings);
        self.engines = names.iter().map(make).collect::<anyhow::Result<Vec<_>>>()?;
        for at in self.order(0) {
            let name = self.engines[at].name();
            match self.engines[at].load(&plan.data, workload, Seed(plan.seed)) {
                Ok(loaded) => {
                    let (workload, rate) = (workload.name(), loaded.rate);
                    (self.report)(&format!("{name} loaded rows for {workload}: {rate:.0}/s"));
                }
                Err(error) => {
                    (self.report)(&format!("{name} is out of {}: {error:#}", workload.name()));
                    self.out.push((name, workload));
                }
            }
        }
        let threads = if commits == Commits::Sync { &plan.commit_threads } else { &plan.threads };
        for round in 0..plan.rounds {
            self.warm(round);
            for &threads in threads {
                self.slices(workload, threads, round);
            }
        }
        self.close_all();
        Ok(std::fs::remove_dir_all(&root)?)
    }

    fn tpcc(&mut self) {
        let (plan, scale) = (self.plan, Scale::full(self.plan.warehouses));
        for at in self.order(0) {
            let loaded = self.engines[at].load_tpcc(&scale, Seed(plan.seed));
            let name = self.engines[at].name();
            match loaded {
                Ok(loaded) => (self.report)(&format!("{name} loaded TPC-C: {:.0}/s", loaded.rate)),
                Err(error) => {
                    (self.report)(&format!("{name} is out of tpcc: {error:#}"));
                    self.out.push((name, Workload::Tpcc));
                }
            }
        }
        for round in 0..plan.rounds {
            for &threads in &plan.threads {
                let (timing, seed) = (plan.timing(threads), self.seed(round));
                for at in self.order(round) {
                    if self.is_out(at, Workload::Tpcc) {
                        continue;
                    }
                    let seed = seed.derive(&format!("{threads} threads"));
                    let result = self.engines[at].slice_tpcc(&scale, &timing, seed);
                    let result = result.map(|measured| (measured, None));
                    self.note(at, Workload::Tpcc, threads, round, result);
                }
            }
        }
        for at in 0..self.engines.len() {
            if self.is_out(at, Workload::Tpcc) {
                continue;
            }
            match self.engines[at].check_tpcc() {
                Ok(()) => {
                    (self.report)(&format!("{}: TPC-C is consistent", self.engines[at].name()));
                }
                Err(error) => {
                    // Figures of a wrong run are worse than none.
                    let name = self.engines[at].name();
                    (self.report)(&format!("{name} is out of tpcc: {error:#}"));
                    self.samples.retain(|s| s.workload != Workload::Tpcc || s.engine != name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_slice_draws_what_another_one_drew() {
        let rounds = (0..9).map(|round| Seed(1).derive(&format!("round {round}")));
        let of = |round: Seed| {
            Workload::ALL.into_iter().flat_map(move |workload| {
                [1, 2, 16].map(|threads| slice_seed(round, workload, threads).0)
            })
        };
        let seeds: Vec<u64> = rounds.flat_map(of).collect();
        assert_eq!(seeds.iter().collect::<HashSet<_>>().len(), seeds.len());
        assert_eq!(seeds.len(), 9 * 11 * 3);
    }
}
