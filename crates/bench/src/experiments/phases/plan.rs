//! List of the phases, and the amount of work in each.

use std::fmt;
use std::str::FromStr;

use millpond::Compression;
use millpond_base::Seed;

/// A phase. They run in the order of [`Phase::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// All rows, in one transaction.
    Load,
    /// Rows by themselves, each durable before the next one.
    Single,
    /// Batches of rows, each durable before the next one.
    Batch,
    /// Rows by themselves, durable a moment after they were committed.
    AsyncSingle,
    /// Batches of rows, durable a moment after they were committed.
    AsyncBatch,
    /// The number of rows.
    Len,
    /// Rows, looked up at random.
    Read,
    /// Ranges of rows that begin at random.
    Range,
    /// The older half of the rows removed, in one transaction.
    Remove,
    /// Leaves packed, pages moved to the front, the file cut off behind them.
    Shrink,
    /// The store closed and opened, and all rows read in the order of their keys.
    Scan,
    /// Inserts as many rows again, in another tree, in the order of their keys, in one transaction.
    Sorted,
    /// A tenth of those removed from the front and the back in turns, a call each, in one
    /// transaction.
    Pop,
    /// About half of the rest removed by `extract_if`, in one transaction.
    ExtractIf,
    /// About half of the rest removed by `retain`, in one transaction.
    Retain,
}

impl Phase {
    /// All of them, in their order.
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

    /// Returns `true` for a phase about the tree whose rows come in the order of their keys.
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

/// A phase that there is not.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no phase '{name}'; there are: {}", Phase::ALL.map(Phase::name).join(", "))]
pub struct NoPhase {
    /// Name that was asked for.
    pub name: String,
}

impl FromStr for Phase {
    type Err = NoPhase;

    fn from_str(text: &str) -> Result<Phase, NoPhase> {
        let found = Phase::ALL.into_iter().find(|phase| phase.name() == text);
        found.ok_or_else(|| NoPhase { name: text.to_string() })
    }
}

/// Size of each phase. Counts are per round, of all threads together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The phases that run. Without [`Phase::Load`] the rows are inserted in transactions of a
    /// thousand, and that is not measured.
    pub phases: Vec<Phase>,
    /// Rows that are loaded, and rows that are inserted in the order of their keys.
    pub rows: u64,
    /// Transactions of [`Phase::Single`].
    pub singles: u64,
    /// Transactions of [`Phase::Batch`] and of [`Phase::AsyncBatch`].
    pub batches: u64,
    /// Rows of each of them.
    pub batch_rows: u64,
    /// Transactions of [`Phase::AsyncSingle`].
    pub async_singles: u64,
    /// Rows that [`Phase::Read`] looks up.
    pub reads: u64,
    /// Ranges of [`Phase::Range`].
    pub ranges: u64,
    /// Rows of each of them.
    pub range_rows: u64,
    /// Numbers of threads that read, each measured by itself.
    pub threads: Vec<u32>,
    /// Rounds of the phases that can be repeated: all but load, removal, shrinking,
    /// scan, and those of the sorted rows.
    pub rounds: u32,
    /// Memory of the store in bytes; `None`: the engine's default.
    pub memory: Option<u64>,
    /// Compression of pages.
    pub compression: Compression,
    /// Bytes of log that a recovery may have to read, about; `None`: the engine's default.
    pub log_gap: Option<u64>,
    /// Seed of the rows, and of those that are read.
    pub seed: Seed,
}

impl Plan {
    /// The numbers of redb's benchmark, three rounds of them.
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
