//! Flags that choose the workload.

use clap::ValueEnum;
use millpond_bench::run::client::Workload;
use millpond_workload::keys::Distribution;
use millpond_workload::tpcc::{self, Scale};
use millpond_workload::ycsb::{self, LoadOrder, Mix, ReadStyle};
use serde_json::{Value as Json, json};

use crate::error::Failure;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ShapeArg {
    /// 8-byte keys, 120-byte values, uniform reads (leanstore VI-B)
    Leanstore,
    /// The rows of leanstore, Zipf 0.9, 10 % updates (watt 6.2)
    Watt,
    /// 10-byte keys, ten fields of 100 bytes, Zipf 0.99 (gilbert 2.3.1.1)
    Gilbert,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum DistributionArg {
    /// All rows equally often
    Uniform,
    /// Zipf, exact
    Zipf,
    /// Zipf by YCSB's formula
    Ycsb,
    /// The newest rows most often
    Latest,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum LoadArg {
    /// In key order, by bulk load
    Ascending,
    /// Row by row, in random order
    Random,
}

/// A key-value workload.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Workload")]
pub(crate) struct YcsbArgs {
    /// Preset of rows, distribution and operations; the following options change it
    #[arg(long, value_enum, default_value = "leanstore")]
    shape: ShapeArg,
    /// Rows to load
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,
    /// Distribution of the chosen rows
    #[arg(long, value_enum)]
    distribution: Option<DistributionArg>,
    /// The exponent of the distribution
    #[arg(long, value_name = "THETA")]
    theta: Option<f64>,
    /// Updates, in per cent of the operations; the rest are reads
    #[arg(long, value_name = "%", value_parser = clap::value_parser!(u32).range(..=100))]
    updates: Option<u32>,
    /// Inserts, in per cent
    #[arg(long, default_value_t = 0, value_name = "%")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=100))]
    inserts: u32,
    /// Range scans, in per cent
    #[arg(long, default_value_t = 0, value_name = "%")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=100))]
    scans: u32,
    /// Rows of a scan
    #[arg(long, default_value_t = 100, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    scan_rows: u32,
    /// Order in which rows are loaded
    #[arg(long, value_enum, default_value = "random")]
    load: LoadArg,
    /// Read only the first word of a value, instead of copying it
    #[arg(long)]
    touch: bool,
    /// Check every value that is read
    #[arg(long)]
    verify: bool,
}

impl YcsbArgs {
    pub(crate) fn workload(&self, threads: u32) -> Result<Workload, Failure> {
        let mut config = match self.shape {
            ShapeArg::Leanstore => ycsb::Config::leanstore(self.rows),
            ShapeArg::Watt => ycsb::Config::watt(self.rows, 10),
            ShapeArg::Gilbert => ycsb::Config::gilbert(self.rows, 0),
        };
        let preset = config.distribution.theta();
        let theta = self.theta.unwrap_or(if preset > 0.0 { preset } else { 0.99 });
        config.distribution = match (self.distribution, self.theta) {
            (Some(DistributionArg::Uniform), _) => Distribution::Uniform,
            (Some(DistributionArg::Zipf), _) => Distribution::Zipf { theta },
            (Some(DistributionArg::Ycsb), _) => Distribution::Ycsb { theta },
            (Some(DistributionArg::Latest), _) => Distribution::Latest { theta },
            (None, Some(theta)) => Distribution::Zipf { theta },
            (None, None) => config.distribution,
        };
        let updates = self.updates.unwrap_or(config.mix.update);
        let others = updates + self.inserts + self.scans;
        let Some(read) = 100u32.checked_sub(others) else {
            let text = format!("updates, inserts and scans are {others} % together: at most 100");
            return Err(Failure::Usage(text));
        };
        config.mix =
            Mix { read, update: updates, insert: self.inserts, scan: self.scans, ..Mix::default() };
        config.scan_rows = (self.scan_rows, self.scan_rows);
        config.load_order = match self.load {
            LoadArg::Ascending => LoadOrder::Ascending,
            LoadArg::Random => LoadOrder::Random,
        };
        config.read = if self.touch { ReadStyle::FirstWord } else { ReadStyle::Copy };
        config.verify = self.verify;
        config.threads = threads;
        Ok(Workload::Ycsb(config))
    }

    pub(crate) fn params(&self) -> Json {
        let Ok(Workload::Ycsb(config)) = self.workload(1) else { return json!({}) };
        json!({
            "rows": config.rows,
            "key_bytes": config.shape.key_len(),
            "value_bytes": config.shape.value_len(),
            "distribution": format!("{:?}", config.distribution),
            "mix": format!("{:?}", config.mix),
            "scan_rows": self.scan_rows,
            "load": format!("{:?}", config.load_order),
            "read": format!("{:?}", config.read),
            "verify": self.verify,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ScaleArg {
    /// The sizes of the specification
    Full,
    /// A hundredth of the rows, for trying things out
    Tiny,
}

/// How much TPC-C data.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Workload")]
pub(crate) struct TpccScale {
    /// Warehouses
    #[arg(long, short, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    warehouses: Option<u32>,
    /// Rows of a warehouse
    #[arg(long, value_enum, default_value = "full")]
    scale: ScaleArg,
}

impl TpccScale {
    pub(crate) fn scale(&self, warehouses: u32) -> Scale {
        let warehouses = self.warehouses.unwrap_or(warehouses);
        match self.scale {
            ScaleArg::Full => Scale::full(warehouses),
            ScaleArg::Tiny => Scale::tiny(warehouses),
        }
    }

    pub(crate) fn params(&self, warehouses: u32) -> Json {
        let scale = self.scale(warehouses);
        json!({
            "warehouses": scale.warehouses,
            "items": scale.items,
            "customers": scale.customers,
        })
    }
}

/// TPC-C.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Workload")]
pub(crate) struct TpccArgs {
    #[command(flatten)]
    pub scale: TpccScale,
    /// Keep each thread to one warehouse
    #[arg(long)]
    affinity: bool,
    /// Payments by customers of another warehouse, in per cent
    #[arg(long, default_value_t = 15, value_name = "%")]
    #[arg(value_parser = clap::value_parser!(u8).range(..=100))]
    remote_payments: u8,
    /// Order lines from another warehouse, in per cent
    #[arg(long, default_value_t = 1, value_name = "%")]
    #[arg(value_parser = clap::value_parser!(u8).range(..=100))]
    remote_lines: u8,
}

impl TpccArgs {
    pub(crate) fn workload(&self, warehouses: u32, threads: u32) -> Workload {
        let standard = tpcc::Config::standard(self.scale.scale(warehouses), threads);
        Workload::Tpcc(tpcc::Config {
            has_affinity: self.affinity,
            remote_payments: self.remote_payments,
            remote_lines: self.remote_lines,
            ..standard
        })
    }

    pub(crate) fn params(&self, warehouses: u32) -> Json {
        let own = json!({
            "affinity": self.affinity,
            "remote_payments": self.remote_payments,
            "remote_lines": self.remote_lines,
        });
        super::engine::joined([self.scale.params(warehouses), own])
    }
}
