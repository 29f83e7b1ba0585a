//! The progress of a recovery.

/// A part of recovery.
///
/// ```
/// use millpond::{Db, Options, report::Phase};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let options = Options::new().memory(16 << 20).watch_recovery(|progress| {
///     if progress.phase == Phase::Undo {
///         println!("{} transactions are left to undo", progress.total - progress.done);
///     }
/// });
/// let db = Db::open(folder.path().join("pond.mp"), options)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// The log is read; counted in bytes.
    Analysis,
    /// Pages are rebuilt and written; counted in pages.
    Redo,
    /// Uncommitted transactions are undone; counted in transactions.
    Undo,
}

/// Progress of recovery in one of its phases.
///
/// ```
/// use millpond::{Db, Options};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let options = Options::new().memory(16 << 20).watch_recovery(|progress| {
///     println!("{:?}: {} of {}", progress.phase, progress.done, progress.total);
/// });
/// let db = Db::open(folder.path().join("pond.mp"), options)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Current phase.
    pub phase: Phase,
    /// Work done in the phase.
    pub done: u64,
    /// All the work of the phase.
    pub total: u64,
}
