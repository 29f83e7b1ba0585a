//! The report of a recovery, for users.

use std::time::Duration;

use millpond_base::Lsn;

use crate::recovery::LostRecords;

/// The losses that [`Db::open_salvaging`](crate::Db::open_salvaging) accepted.
///
/// ```
/// use millpond::{Db, Options};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("pond.mp");
/// let db = Db::open_salvaging(&path, Options::new().memory(16 << 20))?;
/// if let Some(salvaged) = db.recovery().and_then(|recovery| recovery.salvaged) {
///     println!("damaged at {}, {} records lost", salvaged.at.0, salvaged.lost.records);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Salvaged {
    /// Position of the damage in the log. The store has the state that it had there.
    pub at: Lsn,
    /// Readable records behind the damage; the store has none of their changes.
    pub lost: LostRecords,
    /// Number of pages that were read to check that none is newer.
    pub pages_read: u64,
    /// True if the store had been closed, and was whole without its log. It has a new log now, and
    /// nothing was lost.
    pub is_new_log: bool,
}

/// Report of a recovery.
///
/// ```
/// use millpond::{Db, Options};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("pond.mp");
/// let db = Db::open(&path, Options::new().memory(16 << 20))?;
/// match db.recovery() {
///     Some(recovery) => println!("{} losers, {:?}", recovery.losers, recovery.elapsed),
///     None => println!("it had been closed"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// Number of log records read.
    pub records: u64,
    /// Number of bytes of the log read.
    pub log_bytes: u64,
    /// Number of bytes cut off behind the last whole record, which were never acknowledged as
    /// durable.
    pub cut_bytes: u64,
    /// Number of pages rebuilt.
    pub pages: u64,
    /// Number of transactions that had not ended.
    pub losers: u64,
    /// Number of changes of those transactions that were undone.
    pub undone: u64,
    /// Number of large values and structures freed because nothing referred to them.
    pub freed: u64,
    /// Duration of the recovery.
    pub elapsed: Duration,
    /// The losses, if the log was damaged.
    pub salvaged: Option<Salvaged>,
}
