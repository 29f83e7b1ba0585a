//! What is measured.

use crate::engine::Commits;
use millpond_workload::keys::{Distribution, Scramble};
use millpond_workload::ycsb::{Config, LoadOrder, Mix, ReadStyle, Shape, UpdateStyle};

/// A workload of the comparison.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, clap::ValueEnum)]
pub enum Workload {
    /// Rows inserted in a random order, 1000 to a transaction.
    LoadRandom,
    /// Rows loaded in the order of their keys, by the engine's bulk loader if it has one.
    LoadAscending,
    /// Point lookups, all rows alike.
    Uniform,
    /// Point lookups, Zipf 0.99.
    Zipf,
    /// Scans of 100 rows from a uniform start.
    #[value(name = "scan-100")]
    Scan100,
    /// Scans of the whole table; rows per second.
    FullScan,
    /// 90 % lookups and 10 % updates, Zipf 0.99, no sync per commit.
    #[value(name = "update-10")]
    Update10,
    /// Point lookups, Zipf 0.99, in a memory of a fifth of the data.
    Larger,
    /// TPC-C in its standard mix; transactions per second.
    Tpcc,
    /// 90 % lookups and 10 % updates, all rows alike, each update a logged transaction, no sync per
    /// commit.
    Updates,
    /// One row put per transaction, all rows alike, each commit durable when it returns.
    Commits,
}

impl Workload {
    /// All of them, in the order in which they are run.
    pub const ALL: [Workload; 11] = [
        Workload::LoadRandom,
        Workload::LoadAscending,
        Workload::Uniform,
        Workload::Zipf,
        Workload::Scan100,
        Workload::FullScan,
        Workload::Update10,
        Workload::Larger,
        Workload::Tpcc,
        Workload::Updates,
        Workload::Commits,
    ];

    /// Returns the workload's name in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Workload::LoadRandom => "load-random",
            Workload::LoadAscending => "load-ascending",
            Workload::Uniform => "uniform",
            Workload::Zipf => "zipf",
            Workload::Scan100 => "scan-100",
            Workload::FullScan => "full-scan",
            Workload::Update10 => "update-10",
            Workload::Larger => "larger",
            Workload::Tpcc => "tpcc",
            Workload::Updates => "updates",
            Workload::Commits => "commits",
        }
    }

    /// Returns `true` if the workload runs on the rows in memory that were loaded before.
    pub fn is_in_memory(self) -> bool {
        use Workload::{FullScan, Scan100, Uniform, Update10, Zipf};
        matches!(self, Uniform | Zipf | Scan100 | FullScan | Update10)
    }

    /// What the engines' commits promise, if it runs on rows of its own in engines with logs.
    pub fn logged(self) -> Option<Commits> {
        match self {
            Workload::Updates => Some(Commits::Async),
            Workload::Commits => Some(Commits::Sync),
            _ => None,
        }
    }
}

/// The rows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Data {
    /// Number of rows.
    pub rows: u64,
    /// Keys and values.
    pub shape: Shape,
    /// How updates reach the stores.
    pub update: UpdateStyle,
}

impl Data {
    /// Bytes of all keys and values.
    pub fn raw_bytes(&self) -> u64 {
        self.rows * (self.shape.key_len() + self.shape.value_len()) as u64
    }

    /// The drivers' configuration of a workload over these rows.
    pub fn config(&self, workload: Workload, threads: u32) -> Config {
        const ZIPF: Distribution = Distribution::Zipf { theta: 0.99 };
        let (mix, distribution) = match workload {
            Workload::Zipf | Workload::Larger => (Mix::READ, ZIPF),
            Workload::Scan100 => (Mix::SCAN, Distribution::Uniform),
            Workload::Update10 => (Mix::updates(10), ZIPF),
            Workload::Updates => (Mix::updates(10), Distribution::Uniform),
            Workload::Commits => (Mix::updates(100), Distribution::Uniform),
            _ => (Mix::READ, Distribution::Uniform),
        };
        let load_order = match workload {
            Workload::LoadAscending | Workload::Updates | Workload::Commits => LoadOrder::Ascending,
            _ => LoadOrder::Random,
        };
        Config {
            shape: self.shape,
            rows: self.rows,
            load_order,
            mix,
            distribution,
            scramble: Scramble::Permute,
            update: self.update,
            read: ReadStyle::Copy,
            scan_rows: (100, 100),
            verify: false,
            threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn names_are_those_of_the_command_line() {
        for workload in Workload::ALL {
            let value = workload.to_possible_value().unwrap();
            assert_eq!(value.get_name(), workload.name());
        }
        assert_eq!(Workload::value_variants(), Workload::ALL);
    }
}
