//! List of the phases, and the amount of work in each.

use std::fmt;
use std::str::FromStr;

use millpond::Compression;
use millpond_base::Seed;

/// A phase. They run in the order of [`Phase::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// Inserts all rows in one transaction.
    Load,
    /// Inserts single rows, each durable before the next one.
    Single,
    /// Inserts batches of rows, each durable before the next one.
    Batch,
    /// Inserts single rows that become durable a moment after their commit.
    AsyncSingle,
    /// Inserts batches of rows that become durable a moment after their commit.
    AsyncBatch,
    /// Counts the rows.
    Len,
    /// Looks up random rows.
    Read,
    /// Reads ranges of rows with random starts.
    Range,
    /// Removes the older half of the rows in one transaction.
    Remove,
    /// Packs leaves, moves pages to the front, and truncates the file behind them.
    Shrink,
    /// Closes and opens the store, and reads all rows in key order.
    Scan,
    /// Inserts the same number of rows into another tree, in key order, in one transaction.
    Sorted,
    /// Pops a tenth of the sorted rows from the front and the back in turns, one call each, in
    /// one transaction.
    Pop,
    /// Removes about half of the remaining sorted rows by `extract_if`, in one transaction.
    ExtractIf,
    /// Removes about half of the rest by `retain`, in one transaction.
    Retain,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Phase; 15] = [
        Phase::Load,
        Phase::Single,
        Phase::Batch,
        Phase::AsyncSingle,
        Phase::AsyncBatch,
        Phase::Len,
        Phase::Read,
        Phase::Range,
        Phase::Remove,
        Phase::Shrink,
        Phase::Scan,
        Phase::Sorted,
        Phase::Pop,
        Phase::ExtractIf,
        Phase::Retain,
    ];

    /// Returns `true` for a phase about the tree of sorted rows.
    pub fn is_of_sorted(self) -> bool {
        matches!(self, Phase::Sorted | Phase::Pop | Phase::ExtractIf | Phase::Retain)
    }

    /// Returns the phase's name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Load => "load",
            Phase::Single => "single",
            Phase::Batch => "batch",
            Phase::AsyncSingle => "async-single",
            Phase::AsyncBatch => "async-batch",
            Phase::Len => "len",
            Phase::Read => "read",
            Phase::Range => "range",
            Phase::Remove => "remove",
            Phase::Shrink => "shrink",
            Phase::Scan => "scan",
            Phase::Sorted => "sorted",
            Phase::Pop => "pop",
            Phase::ExtractIf => "extract-if",
            Phase::Retain => "retain",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Name of a phase that does not exist.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no phase '{name}'; there are: {}", Phase::ALL.map(Phase::name).join(", "))]
pub struct NoPhase {
    /// The unknown name.
    pub name: String,
}

impl FromStr for Phase {
    type Err = NoPhase;

    fn from_str(text: &str) -> Result<Phase, NoPhase> {
        let found = Phase::ALL.into_iter().find(|phase| phase.name() == text);
        found.ok_or_else(|| NoPhase { name: text.to_string() })
    }
}

/// Size of each phase. Counts are per round, over all threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Phases to run. Without [`Phase::Load`] the rows are inserted in transactions of a
    /// thousand, which is not measured.
    pub phases: Vec<Phase>,
    /// Number of loaded rows, and of rows inserted in key order.
    pub rows: u64,
    /// Transactions of [`Phase::Single`].
    pub singles: u64,
    /// Transactions of [`Phase::Batch`] and of [`Phase::AsyncBatch`].
    pub batches: u64,
    /// Rows per batch.
    pub batch_rows: u64,
    /// Transactions of [`Phase::AsyncSingle`].
    pub async_singles: u64,
    /// Rows that [`Phase::Read`] looks up.
    pub reads: u64,
    /// Ranges of [`Phase::Range`].
    pub ranges: u64,
    /// Rows per range.
    pub range_rows: u64,
    /// Numbers of reading threads, each measured separately.
    pub threads: Vec<u32>,
    /// Rounds of the repeatable phases: all except load, removal, shrinking, scan, and the
    /// phases of the sorted rows.
    pub rounds: u32,
    /// Memory of the store in bytes; `None` for the engine's default.
    pub memory: Option<u64>,
    /// Compression of pages.
    pub compression: Compression,
    /// Approximate bytes of log that a recovery may have to read; `None` for the engine's
    /// default.
    pub log_gap: Option<u64>,
    /// Seed of the rows, and of the reads.
    pub seed: Seed,
}

impl Plan {
    /// Returns the numbers of redb's benchmark, with three rounds.
    pub fn published() -> Plan {
        Plan {
            phases: Phase::ALL.to_vec(),
            rows: 5_000_000,
            singles: 1_000,
            batches: 100,
            batch_rows: 1_000,
            async_singles: 50_000,
            reads: 1_000_000,
            ranges: 500_000,
            range_rows: 10,
            threads: vec![1, 4, 8, 16, 32],
            rounds: 3,
            memory: None,
            compression: Compression::None,
            log_gap: None,
            seed: Seed(1),
        }
    }

    /// Returns `true` if a phase runs.
    pub fn has(&self, phase: Phase) -> bool {
        self.phases.contains(&phase)
    }
}
