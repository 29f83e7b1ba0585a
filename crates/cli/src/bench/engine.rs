//! Flags that choose the engine, and flags for the length of a run.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use millpond::internals::store::options::{PAGE_SIZE_DEFAULT, POLICY_DEFAULT};
use millpond::internals::store::{
    HitDelivery, LatchingMode, Reclamation, SyncMode, TranslationMode,
};
use millpond::{DirectIo, Durability, EvictionMode, Options, Placement, Submission};
use millpond_base::cleaning::Cleaning;
use millpond_base::{Share, Size};
use millpond_bench::instance::setup::{DeviceSpec, Engine, Setup};
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::{Length, RunSpec};
use serde_json::{Value as Json, json};

use crate::error::Failure;
use crate::store::compression::CompressionArg;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum EngineArg {
    /// Trees on the buffer pool
    Pool,
    /// Trees on plain memory
    Twin,
}

/// Something that is there or is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Switch {
    /// Turned on
    On,
    /// Turned off
    Off,
}

/// When a commit is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DurabilityArg {
    /// When the commit returns
    Sync,
    /// When the commit returns, after a short wait for a group-commit batch
    Group,
    /// A moment after the commit returned
    Async,
    /// Like async, for loads
    Bulk,
}

impl DurabilityArg {
    pub(crate) fn durability(self) -> Durability {
        match self {
            DurabilityArg::Sync => Durability::Sync,
            DurabilityArg::Group => Durability::Group,
            DurabilityArg::Async => Durability::Async,
            DurabilityArg::Bulk => Durability::Bulk,
        }
    }
}

/// The engine and its strategies.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArgs {
    /// The engine: the buffer pool, or its in-memory twin
    #[arg(long, value_enum, default_value = "pool")]
    engine: EngineArg,
    /// Size of the pool: bytes for everything (2GiB), frames (50000) or % of the loaded pages;
    /// without a size nothing is ever evicted
    #[arg(long, value_name = "SIZE")]
    pool: Option<String>,
    /// Bytes of a page
    #[arg(long, default_value_t = PAGE_SIZE_DEFAULT, value_name = "BYTES")]
    page_size: u32,
    /// Compression of pages; needs a store with a log
    #[arg(long, value_enum, default_value = "none", value_name = "HOW")]
    compression: CompressionArg,
    /// The replacement policy: lean-evict, lru, 'watt(write_weight=2)'
    #[arg(long, short, default_value = POLICY_DEFAULT, value_name = "POLICY")]
    policy: String,
    /// Delivery of hits to the policy: auto, exact (a mutex for each hit) or batched
    #[arg(long, default_value = "auto", value_name = "HOW")]
    hit_delivery: HitDelivery,
    /// Number of references per step of the clock, for policies that count references
    #[arg(long, default_value_t = 1, value_name = "N")]
    references_per_tick: u32,
    /// Translation of references into frames: swizzled or hashed
    #[arg(long, default_value = "swizzled", value_name = "HOW")]
    translation: TranslationMode,
    /// Form of latching: optimistic, latched, or none for one thread
    #[arg(long, default_value = "optimistic", value_name = "HOW")]
    latching: LatchingMode,
    /// Rule for the reuse of frames: version or epoch
    #[arg(long, default_value = "version", value_name = "HOW")]
    reclamation: Reclamation,
    /// Threads that evict: worker, or threads(N)
    #[arg(long, default_value = "worker", value_name = "WHO")]
    eviction: EvictionMode,
    /// Victims sought at once
    #[arg(long, value_name = "FRAMES")]
    batch: Option<u32>,
    /// Run no thread that writes dirty pages in the background
    #[arg(long)]
    no_background_writer: bool,
    /// Make the eviction threads page cleaners, which write victims as soon as more than this share
    /// of the pool is dirty (li 2.1.1); needs --eviction threads(N)
    #[arg(long, value_name = "SHARE")]
    dirty_share: Option<Share>,
    /// Clean pages that page cleaners keep ready for eviction, as a share of the pool
    #[arg(long, default_value = "1%", requires = "dirty_share", value_name = "SHARE")]
    free_list: Share,
    /// Let page cleaners write the dirty neighbours of a page with it, as MySQL does; needs
    /// --translation hashed
    #[arg(long, requires = "dirty_share")]
    flush_neighbours: bool,
    /// Read ahead of misses that continue a sequence of page ids, as MySQL does: up to 8 following
    /// pages of an extent of 64 that have the same parent (li 5.6.1.3)
    #[arg(long, conflicts_with = "no_background_writer")]
    readahead: bool,
    /// Rule for making written pages durable: checkpoint, org (after each write), rec (after each
    /// write for the log's sake) or range (deferred, by ranges); all except checkpoint write pages
    /// in place (li 4.4.1.2)
    #[arg(long, default_value = "checkpoint", value_name = "WHEN")]
    sync_mode: SyncMode,
    /// Put a second tier between pool and storage, with its cache in this file, which is removed
    /// afterwards; needs --log on or --locks on
    #[arg(long, value_name = "FILE")]
    second_tier: Option<PathBuf>,
    /// Bytes of the second tier's file
    #[arg(long, default_value = "1GiB", requires = "second_tier", value_name = "SIZE")]
    #[arg(value_parser = crate::store::size_of)]
    second_tier_size: u64,
    /// The second tier's policy: tq, tq-io, t2-lru
    #[arg(long, default_value = "tq", requires = "second_tier", value_name = "POLICY")]
    second_tier_policy: String,
    /// Keep written pages in the second tier, and write them to storage later
    #[arg(long, requires = "second_tier")]
    second_tier_write_back: bool,
    /// Touch the pool's memory before the run
    #[arg(long)]
    prefault: bool,
    /// Divide the pool among this many NUMA nodes, real or simulated
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// Destination of evicted pages: memory, file:PATH, slow:nvme|sata|disk|array, or an export of
    /// an NBD server: nbd://HOST:PORT/EXPORT, nbd+unix:///EXPORT?socket=/PATH; the export's bytes
    /// are lost
    #[arg(long, default_value = "memory", value_name = "DEVICE")]
    device: DeviceSpec,
    /// Slow the device down only after the warm-up, so that the pool is warm sooner; needs --device
    /// slow:… and a pool without log and locks
    #[arg(long)]
    fast_warm_up: bool,
    /// Direct I/O, which bypasses the page cache: auto, on or off
    #[arg(long, default_value = "auto", value_name = "WHEN")]
    direct_io: DirectIo,
    /// Submission of I/O: auto, sync or uring
    #[arg(long, default_value = "auto", value_name = "HOW")]
    submission: Submission,
    /// Log the changes of transactions: beside the file of --device, else in memory. Without log
    /// and locks there are trees and a pool, but no transactions; that is the default of all
    /// measuring commands except `breakdown`
    #[arg(long, value_enum)]
    log: Option<Switch>,
    /// Let transactions lock everything they read and write; the default is that of --log
    #[arg(long, value_enum)]
    locks: Option<Switch>,
    /// Moment at which a logged transaction is durable
    #[arg(long, value_enum)]
    #[arg(help = "Moment at which a logged transaction is durable [default: async]")]
    durability: Option<DurabilityArg>,
    /// Approximate amount of log that a recovery may have to read; checkpoints write pages to keep
    /// to it
    #[arg(long, value_name = "SIZE", value_parser = crate::store::size_of)]
    log_gap: Option<u64>,
    /// Seed of data, workload and policy
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
}

impl EngineArgs {
    /// Returns the setup that the flags describe. Flags about logging need a log.
    pub(crate) fn setup(&self) -> Result<Setup, Failure> {
        let unused =
            [("durability", self.durability.is_some()), ("log-gap", self.log_gap.is_some())];
        if self.log != Some(Switch::On)
            && let Some((flag, _)) = unused.iter().find(|(_, given)| *given)
        {
            let text = format!("--{flag} is about a log, and there is none: add --log on");
            return Err(Failure::Usage(text));
        }
        self.setup_of_steps()
    }

    /// Turns log and locks on unless the flags turn them off.
    pub(crate) fn with_transactions(mut self) -> EngineArgs {
        self.log.get_or_insert(Switch::On);
        self.locks.get_or_insert(Switch::On);
        self
    }

    fn durability(&self) -> Durability {
        self.durability.unwrap_or(DurabilityArg::Async).durability()
    }

    /// Returns the setup for a contest whose steps choose log and locks themselves.
    pub(crate) fn setup_of_steps(&self) -> Result<Setup, Failure> {
        let mut options = Options::new().page_size(self.page_size).policy(self.policy.as_str());
        options = options.compression(self.compression.into());
        options.own_policies = crate::own::live();
        options.lab.direct_io = self.direct_io;
        options.lab.submission = self.submission;
        options.lab.eviction = self.eviction;
        options.lab.prefault = self.prefault;
        options.lab.numa_nodes = self.nodes;
        options = options
            .lab(|lab| lab.log = self.log == Some(Switch::On))
            .lab(|lab| lab.locks = self.locks == Some(Switch::On))
            .durability(self.durability());
        if let Some(bytes) = self.log_gap {
            options = options.log_gap(bytes);
        }
        if let Some(path) = &self.second_tier {
            let policy = self.second_tier_policy.as_str();
            options = options.second_tier(path, self.second_tier_size, policy);
            options = options.write_back(self.second_tier_write_back);
        }
        options = options.lab(|lab| {
            lab.translation = self.translation;
            lab.latching = self.latching;
            lab.hit_delivery = self.hit_delivery;
            lab.references_per_tick = self.references_per_tick;
            lab.reclamation = self.reclamation;
            lab.batch = self.batch;
            lab.background_writer = !self.no_background_writer;
            lab.cleaning = self.cleaning();
            lab.read_ahead = self.readahead;
            lab.sync_mode = self.sync_mode;
            if self.sync_mode != SyncMode::Checkpoint {
                lab.placement = Placement::InPlace;
            }
            lab.tiny_pages = true;
            lab.seed = self.seed;
        });
        let engine = match self.engine {
            EngineArg::Pool => Engine::Pool,
            EngineArg::Twin => Engine::Twin,
        };
        let pool = self.pool.as_deref().map(size).transpose()?;
        let device = self.device.clone();
        let warms_up_fast = self.fast_warm_up;
        let load_threads = cores();
        Ok(Setup { engine, options, pool, device, warms_up_fast, load_threads, ..Setup::new() })
    }

    fn cleaning(&self) -> Option<Cleaning> {
        let (free, neighbours) = (self.free_list, self.flush_neighbours);
        self.dirty_share.map(|dirty| Cleaning { dirty, free, neighbours })
    }

    pub(crate) fn params(&self) -> Json {
        json!({
            "engine": self.setup_of_steps().map(|s| s.engine.to_string()).unwrap_or_default(),
            "pool": self.pool,
            "page_size": self.page_size,
            "compression": self.compression.name(),
            "policy": self.policy,
            "hit_delivery": self.hit_delivery.to_string(),
            "references_per_tick": self.references_per_tick,
            "translation": self.translation.to_string(),
            "latching": self.latching.to_string(),
            "reclamation": self.reclamation.to_string(),
            "eviction": self.eviction.to_string(),
            "batch": self.batch,
            "background_writer": !self.no_background_writer,
            "dirty_share": self.dirty_share.map(|share| share.to_string()),
            "free_list": self.dirty_share.map(|_| self.free_list.to_string()),
            "flush_neighbours": self.flush_neighbours,
            "readahead": self.readahead,
            "sync_mode": self.sync_mode.to_string(),
            "second_tier": self.second_tier.as_ref().map(|path| path.display().to_string()),
            "second_tier_size": self.second_tier.as_ref().map(|_| self.second_tier_size),
            "second_tier_policy": self.second_tier.as_ref().map(|_| &self.second_tier_policy),
            "second_tier_write_back": self.second_tier_write_back,
            "prefault": self.prefault,
            "nodes": self.nodes,
            "device": self.device.to_string(),
            "fast_warm_up": self.fast_warm_up,
            "direct_io": self.direct_io.to_string(),
            "submission": self.submission.to_string(),
            "log": self.log == Some(Switch::On),
            "locks": self.locks == Some(Switch::On),
            "durability": format!("{:?}", self.durability()).to_lowercase(),
            "log_gap": self.log_gap,
            "seed": self.seed,
        })
    }
}

/// Parses a size such as `64MiB`.
pub(crate) fn size(text: &str) -> Result<Size, Failure> {
    text.parse().map_err(|error: millpond_base::SizeError| Failure::Usage(error.to_string()))
}

/// Returns the number of cores of the machine.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// How long, and with how many threads.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Run")]
pub(crate) struct RunArguments {
    /// Threads that run the workload
    #[arg(long, short, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Seconds of measurement
    #[arg(long, short, default_value = "10", value_name = "S")]
    seconds: f64,
    /// Number of operations, instead of seconds: every run does the same work
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    operations: Option<u64>,
    /// Seconds of warm-up before anything is counted; by default 1, with --operations none
    #[arg(long, value_name = "S")]
    warm_up: Option<f64>,
    /// Seconds between two points of the time series
    #[arg(long, default_value = "1", value_name = "S")]
    interval: f64,
    /// No live progress line
    #[arg(long, short)]
    pub quiet: bool,
}

/// Parses a flag's seconds; zero is allowed.
pub(crate) fn seconds(name: &str, s: f64) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(s).map_err(|_| {
        Failure::Usage(format!("--{name} cannot be {s}: a number of seconds is needed"))
    })
}

/// Parses a flag's seconds; zero is refused.
pub(crate) fn some_seconds(name: &str, s: f64) -> Result<Duration, Failure> {
    let time = seconds(name, s)?;
    match time.is_zero() {
        true => Err(Failure::Usage(format!("--{name} cannot be 0: nothing would be measured"))),
        false => Ok(time),
    }
}

impl RunArguments {
    pub(crate) fn threads(&self) -> u32 {
        self.threads
    }

    pub(crate) fn spec(&self) -> Result<RunSpec, Failure> {
        let warm_up = self.warm_up.map(|s| seconds("warm-up", s)).transpose()?;
        let measure = match self.operations {
            Some(operations) => Length::Operations(operations),
            None => Length::Time(some_seconds("seconds", self.seconds)?),
        };
        let warm_up = match (warm_up, self.operations) {
            (Some(time), _) if time.is_zero() => Length::NONE,
            (Some(time), _) => Length::Time(time),
            (None, Some(_)) => Length::NONE,
            (None, None) => Length::Time(Duration::from_secs(1)),
        };
        let interval = seconds("interval", self.interval)?.max(Duration::from_millis(1));
        Ok(RunSpec { warm_up, measure, interval })
    }

    pub(crate) fn params(&self) -> Json {
        json!({
            "threads": self.threads,
            "seconds": if self.operations.is_some() { None } else { Some(self.seconds) },
            "operations": self.operations,
            "warm_up": self.warm_up,
        })
    }
}

/// Returns the spec of a run of `measure` seconds after `warm_up` seconds.
pub(crate) fn run_spec(warm_up: f64, measure: f64) -> Result<RunSpec, Failure> {
    let warm_up = seconds("warm-up", warm_up)?;
    let measure = Length::Time(some_seconds("seconds", measure)?);
    let warm_up = if warm_up.is_zero() { Length::NONE } else { Length::Time(warm_up) };
    Ok(RunSpec { warm_up, ..RunSpec::of(measure) })
}

/// Returns an upper bound of the bytes that `workload` adds in `rounds` runs of `spec`.
pub(crate) fn growth(workload: &Workload, spec: &RunSpec, threads: u32, rounds: u32) -> u64 {
    let operations = |length: Length| match length {
        Length::Operations(n) => n,
        Length::Time(time) => {
            let per_second = workload.rate_max().saturating_mul(u64::from(threads));
            (time.as_secs_f64().min(1e6) * per_second as f64) as u64
        }
    };
    let all = operations(spec.warm_up).saturating_add(operations(spec.measure));
    workload.bytes_added(all.saturating_mul(u64::from(rounds)).min(1 << 40)) + (16 << 20)
}

/// Joins the parameters of several parts into one object.
pub(crate) fn joined(parts: impl IntoIterator<Item = Json>) -> Json {
    let mut all = serde_json::Map::new();
    for part in parts {
        if let Json::Object(fields) = part {
            all.extend(fields);
        }
    }
    Json::Object(all)
}
