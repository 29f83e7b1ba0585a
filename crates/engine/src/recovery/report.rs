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
    /// Position of the damage in the log; the store is as it was there.
    pub at: Lsn,
    /// Records behind that could have been read; nothing of them is in the store.
    pub lost: LostRecords,
    /// Pages that were read to see that none is newer.
    pub pages_read: u64,
    /// The store had been closed and was whole without its log, which is a new one now. Nothing
    /// was lost.
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
    /// Records read.
    pub records: u64,
    /// Bytes of the log read.
    pub log_bytes: u64,
    /// Bytes behind the last whole record that were cut off: never acknowledged as durable.
    pub cut_bytes: u64,
    /// Pages made anew.
    pub pages: u64,
    /// Transactions that had not ended.
    pub losers: u64,
    /// Their changes that were undone.
    pub undone: u64,
    /// Large values and structures that nothing referred to, freed.
    pub freed: u64,
    /// Time of it all.
    pub elapsed: Duration,
    /// The losses, if the log was damaged.
    pub salvaged: Option<Salvaged>,
}
