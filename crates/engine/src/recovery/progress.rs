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
    /// Pages are made anew and written; counted in pages.
    Redo,
    /// What did not commit is undone; counted in transactions.
    Undo,
}

/// How far recovery is with one of its parts.
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
    /// Which part.
    pub phase: Phase,
    /// What is done of it.
    pub done: u64,
    /// What there is to do.
    pub total: u64,
}
