//! What the comparison asks of an engine beside the drivers' own trait.

use std::path::Path;

use millpond_workload::live::Store;

/// Durability that a commit promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Commits {
    /// What costs the engine least: transactions and a log only where it cannot do without.
    Bare,
    /// Each change is a transaction, logged; a crash of the machine may lose the last ones.
    Async,
    /// Each commit is on the drive when it returns.
    Sync,
}

/// How an engine is to be opened: the same for all.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// Bytes for its cache.
    pub cache: u64,
    /// Threads that will use it.
    pub threads: u32,
    /// Most bytes that its files may ever have; for engines that map them.
    pub disk_max: u64,
    /// The data is larger than the cache.
    pub is_tight: bool,
    /// Durability that the engine's commits promise.
    pub commits: Commits,
    /// A transaction has many calls (TPC-C), and not one. For engines whose single calls are
    /// transactions, too.
    pub many_calls: bool,
}

/// An engine that can be compared: a store that opens in a folder.
pub trait Engine: Store + Sized + 'static {
    /// Name of the engine in results.
    const NAME: &'static str;

    /// Set if the engine's data outlives [`Engine::close`].
    const PERSISTS: bool = true;

    /// Opens the store in `folder`, which exists; creates it if the folder is empty.
    ///
    /// # Errors
    /// The engine's.
    fn open(folder: &Path, settings: &Settings) -> anyhow::Result<Self>;

    /// Brings all that was written to its place, as far as the engine can be asked to: memtables
    /// to tables, logs to trees. For measuring the space after a load.
    ///
    /// # Errors
    /// The engine's.
    fn settle(&self) -> anyhow::Result<()>;

    /// Bytes that the data takes, where that is not what the files say.
    fn bytes(&self) -> Option<u64> {
        None
    }

    /// Closes the store.
    ///
    /// # Errors
    /// The engine's.
    fn close(self) -> anyhow::Result<()>;
}
