//! Data larger than memory: one slice in a process of its own.
//!
//! A process has one page cache charge and one heap, so an engine that shall make do with little
//! memory gets a process. It opens the store that the parent loaded and closed, warms up, measures
//! and prints one line of JSON.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use millpond_base::Seed;
use millpond_workload::ycsb::UpdateStyle;
use serde::{Deserialize, Serialize};

use crate::cgroup::MemoryGroup;
use crate::device::Device;
use crate::engine::{Commits, Settings};
use crate::roster;
use crate::timed::{Measured, PERIOD, Timing};
use crate::workload::{Data, Workload};

/// The hidden first argument of the process.
pub const COMMAND: &str = "slice-larger-than-memory";

/// The parameters of the process, as one argument of JSON.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The engine's name.
    pub engine: String,
    /// The folder below which it has its own.
    pub root: PathBuf,
    /// Rows that were loaded.
    pub rows: u64,
    /// Bytes of a value.
    pub value_len: u32,
    /// Set if keys have 10 scattered bytes.
    pub scattered_keys: bool,
    /// Bytes of the engine's cache.
    pub cache: u64,
    /// Most bytes of its files.
    pub disk_max: u64,
    /// Threads.
    pub threads: u32,
    /// Seconds before anything counts.
    pub warm_s: f64,
    /// Seconds that count.
    pub seconds: f64,
    /// Seed of the keys.
    pub seed: u64,
    /// The memory cgroup to make one in, and its limit in bytes.
    pub cgroup: Option<(PathBuf, u64)>,
}

impl Order {
    /// Runs the slice in a new process.
    ///
    /// # Errors
    /// The process could not be started or failed; its standard error says why.
    pub fn run_in_process(&self) -> anyhow::Result<Measured> {
        drop_from_page_cache(&self.root.join(&self.engine))?;
        let program = std::env::current_exe()?;
        let output = Command::new(program)
            .arg(COMMAND)
            .arg(serde_json::to_string(self)?)
            .stderr(Stdio::inherit())
            .output()?;
        anyhow::ensure!(
            output.status.success(),
            "{} with a cache of {} MiB ended with {} (a memory limit kills)",
            self.engine,
            self.cache >> 20,
            output.status
        );
        serde_json::from_slice(&output.stdout).context("the process printed no result")
    }

    /// What the process does.
    ///
    /// # Errors
    /// The engine's, or there is no such cgroup.
    pub fn run_here(&self) -> anyhow::Result<Measured> {
        let _group = match &self.cgroup {
            Some((parent, limit)) => Some(MemoryGroup::enter(parent, *limit)?),
            None => None,
        };
        let shape = millpond_workload::ycsb::Shape {
            scattered_keys: self.scattered_keys,
            fields: 1,
            field_len: self.value_len,
        };
        let data = Data { rows: self.rows, shape, update: UpdateStyle::Put };
        let settings = Settings {
            cache: self.cache,
            threads: self.threads,
            disk_max: self.disk_max,
            is_tight: true,
            commits: Commits::Bare,
            many_calls: false,
        };
        let timing = Timing {
            threads: self.threads,
            warm: Duration::from_secs_f64(self.warm_s),
            time: Duration::from_secs_f64(self.seconds),
            device: Device::of(&self.root),
            period: PERIOD,
        };
        let mut engine = roster::make(&self.engine, &self.root, &settings)?;
        engine.open(&settings)?;
        let measured = engine.slice(&data, Workload::Larger, &timing, Seed(self.seed))?;
        engine.close()?;
        Ok(measured)
    }
}

/// Makes the kernel forget the files in `folder`, so that no engine begins with another's luck.
fn drop_from_page_cache(folder: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            drop_from_page_cache(&path)?;
        } else if let Ok(file) = std::fs::File::open(&path) {
            // Only clean pages go. Advice: what a file system refuses costs comparability alone.
            let _ = file.sync_all();
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        }
    }
    Ok(())
}
