//! Categories of errors: a few, for programs and for other languages.
//!
//! The matches have no wildcards, so that each new error needs a category here.

use std::error::Error as StdError;

use millpond_device::{DeviceError, OpenFileError};
use millpond_tier::TierError;

use crate::btree::{BulkError, StreamError, WriteError};
use crate::hash_index::WriteError as HashWriteError;
use crate::heap::WriteError as HeapWriteError;
use crate::io::{
    AllocateError, CloseError, CreateError, MapError, OpenError, ReadError, SpillError, SyncError,
    WriteError as PageWriteError,
};
use crate::lock::LockError;
use crate::log::LogError;
use crate::page::superblock::SuperblockError;
use crate::pool::{PoolError, StorageError};
use crate::recovery::RecoveryError;
use crate::store::error::{BackupError, Error};
use crate::store::options::OptionsError;
use crate::txn::TxnError;

/// Category of an [`Error`]. The bindings of other languages expose the categories as codes and
/// exceptions.
///
/// ```
/// # use millpond::{Db, Error, ErrorKind, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let refused = db.open_tree("ponds").map_err(|error| error.kind());
/// assert!(matches!(refused, Err(ErrorKind::NotFound)));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An option, a policy, a name or an argument is invalid.
    Invalid,
    /// The store, tree, hash index or heap does not exist, and was not to be created.
    NotFound,
    /// The store, structure or file exists already.
    Exists,
    /// The structure has another type or another kind, or belongs to another store.
    OtherType,
    /// A key, a value or a log record is too long.
    TooLong,
    /// Another process or another handle uses it.
    InUse,
    /// The store is open for reading only.
    ReadOnly,
    /// The transaction lost in a deadlock: it may succeed if it is restarted.
    Deadlock,
    /// A wait for a lock was too long: the transaction may succeed if it is restarted.
    Timeout,
    /// A call outside the transaction needs keys that the thread's own transaction has locked.
    OwnTransaction,
    /// The transaction, savepoint or snapshot cannot continue.
    TransactionFailed,
    /// Memory is not enough for the request.
    Memory,
    /// The device is full. Stored data is intact.
    DiskFull,
    /// The device or the operating system failed.
    Io,
    /// Stored data differs from the data that was written.
    Damaged,
    /// A part of the store, such as its log, is missing, or the store must be recovered first.
    Incomplete,
    /// This version does not know the format.
    Version,
    /// The caller cancelled the call.
    Cancelled,
    /// The store was closed.
    Closed,
}

impl Error {
    /// Returns the category of the error.
    ///
    /// ```
    /// # use millpond::{Db, Error, ErrorKind, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let ponds = db.tree::<String, u32>("ponds")?;
    /// let too_long = ponds.put(&"x".repeat(100_000), &1);
    /// assert!(too_long.is_err_and(|error| error.kind() == ErrorKind::TooLong));
    /// # Ok(()) }
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Options(error) => of_options(error),
            Error::Lab(_) | Error::PolicyFit(_) | Error::Name { .. } | Error::Encode { .. } => {
                ErrorKind::Invalid
            }
            Error::Create(error) => of_create(error),
            Error::Open(error) => of_open(error),
            Error::Tier(error) => of_tier(error),
            Error::NoStore { .. } | Error::NoTree { .. } | Error::NoStructure { .. } => {
                ErrorKind::NotFound
            }
            Error::Close(error) => of_close(error),
            Error::Unfinished { .. }
            | Error::MustRecover { .. }
            | Error::Remains { .. }
            | Error::Displaced { .. } => ErrorKind::Incomplete,
            Error::InUse { .. } | Error::TreeInUse { .. } | Error::Forked => ErrorKind::InUse,
            Error::Sync(error) => of_sync(error),
            Error::Pool(error) => of_pool(error),
            Error::Write(error) => of_write(error),
            Error::HashWrite(error) => of_hash_write(error),
            Error::HeapWrite(error) => of_heap_write(error),
            Error::Stream(error) => of_stream(error),
            Error::Bulk(error) => of_bulk(error),
            Error::Decode { .. }
            | Error::OtherKind { .. }
            | Error::OtherType { .. }
            | Error::OtherStore { .. } => ErrorKind::OtherType,
            Error::Exists { .. } => ErrorKind::Exists,
            Error::Txn(error) => of_txn(error),
            Error::Recovery(error) => of_recovery(error),
            Error::LogDamaged(_) | Error::NoUndo { .. } | Error::Catalog { .. } => {
                ErrorKind::Damaged
            }
            Error::LogMissing { .. } | Error::NoLog { .. } | Error::NoLogFile { .. } => {
                ErrorKind::Incomplete
            }
            Error::Length(error) => of_allocate(error),
            Error::Backup(error) => of_backup(error),
            Error::OldLog { .. } => ErrorKind::Io,
            Error::ReadOnly => ErrorKind::ReadOnly,
            Error::Closed => ErrorKind::Closed,
        }
    }
}

fn of_options(error: &OptionsError) -> ErrorKind {
    match error {
        OptionsError::Tier(error) => of_tier(error),
        OptionsError::Budget(_) => ErrorKind::Memory,
        OptionsError::PageSize { .. }
        | OptionsError::Policy(_)
        | OptionsError::TierPolicy(_)
        | OptionsError::OutOfRange { .. }
        | OptionsError::NotAlone { .. }
        | OptionsError::NoCleaners { .. }
        | OptionsError::NoNeighbours { .. }
        | OptionsError::NotInPlace { .. }
        | OptionsError::NoDirectIo
        | OptionsError::NoReader
        | OptionsError::NoUring => ErrorKind::Invalid,
    }
}

fn of_device(error: &DeviceError) -> ErrorKind {
    match error {
        DeviceError::DiskFull { .. } | DeviceError::TooLong { .. } => ErrorKind::DiskFull,
        DeviceError::PastEnd { .. } | DeviceError::Damaged { .. } => ErrorKind::Damaged,
        DeviceError::ReadOnly { .. } => ErrorKind::ReadOnly,
        DeviceError::Forked { .. } => ErrorKind::InUse,
        DeviceError::Closed { .. } => ErrorKind::Closed,
        // `Io`, `Folder`, `Misaligned`, and later ones.
        _ => ErrorKind::Io,
    }
}

fn of_file(error: &OpenFileError) -> ErrorKind {
    match error {
        OpenFileError::Locked { .. } => ErrorKind::InUse,
        OpenFileError::NotAFile { .. } => ErrorKind::Invalid,
        OpenFileError::Exists { .. } => ErrorKind::Exists,
        // `Io`, and later ones.
        _ => ErrorKind::Io,
    }
}

fn of_create(error: &CreateError) -> ErrorKind {
    match error {
        CreateError::File(error) => of_file(error),
        CreateError::PageSize(_) | CreateError::Unit { .. } => ErrorKind::Invalid,
        CreateError::Device(error) => of_device(error),
        CreateError::NotEmpty { .. } => ErrorKind::Exists,
    }
}

fn of_open(error: &OpenError) -> ErrorKind {
    match error {
        OpenError::File(error) => of_file(error),
        OpenError::Device(error) => of_device(error),
        OpenError::Superblock { error, .. } => match error {
            SuperblockError::Magic { .. } | SuperblockError::Short { .. } => ErrorKind::OtherType,
            SuperblockError::Version { .. } => ErrorKind::Version,
            SuperblockError::PageSize { .. } | SuperblockError::Checksum { .. } => {
                ErrorKind::Damaged
            }
        },
        OpenError::InSecondTier { .. }
        | OpenError::NotClean { .. }
        | OpenError::NeedsRecovery { .. } => ErrorKind::Incomplete,
        OpenError::PageSizeDiffers { .. } | OpenError::NothingToRecover { .. } => {
            ErrorKind::Invalid
        }
        OpenError::Truncated { .. } | OpenError::NothingToSalvage { .. } => ErrorKind::Damaged,
        OpenError::FreeMap(error) => of_read(error),
        OpenError::PageMap(_) => ErrorKind::Damaged,
    }
}

fn of_tier(error: &TierError) -> ErrorKind {
    match error {
        TierError::File(error) => of_file(error),
        TierError::Device(error) => of_device(error),
        TierError::NotATier { .. } | TierError::NotItsStore { .. } => ErrorKind::OtherType,
        TierError::CacheMissing { .. } => ErrorKind::Incomplete,
        TierError::Damaged { .. } => ErrorKind::Damaged,
        TierError::Version { .. } => ErrorKind::Version,
        TierError::TooLarge { .. } => ErrorKind::Memory,
        // `OtherSize`, `TooSmall`, and later ones.
        _ => ErrorKind::Invalid,
    }
}

fn of_read(error: &ReadError) -> ErrorKind {
    match error {
        ReadError::Device { error, .. } => of_device(error),
        ReadError::Checksum { .. }
        | ReadError::Misplaced { .. }
        | ReadError::Stale { .. }
        | ReadError::Nowhere { .. }
        | ReadError::OutOfRange { .. } => ErrorKind::Damaged,
        ReadError::BufferSize { .. } => ErrorKind::Invalid,
        ReadError::Closed => ErrorKind::Closed,
    }
}

fn of_page_write(error: &PageWriteError) -> ErrorKind {
    match error {
        PageWriteError::Device { error, .. }
        | PageWriteError::NoPlace(error)
        | PageWriteError::Map(error) => of_device(error),
        PageWriteError::NotSynced { .. } => ErrorKind::Io,
        PageWriteError::Closed => ErrorKind::Closed,
        PageWriteError::OutOfRange { .. }
        | PageWriteError::Reserved { .. }
        | PageWriteError::WrongPage { .. }
        | PageWriteError::BufferSize { .. }
        | PageWriteError::Twice { .. } => ErrorKind::Invalid,
        PageWriteError::ReadOnly => ErrorKind::ReadOnly,
    }
}

fn of_allocate(error: &AllocateError) -> ErrorKind {
    match error {
        AllocateError::Grow(error) => of_device(error),
        AllocateError::ReadOnly => ErrorKind::ReadOnly,
        AllocateError::Closed => ErrorKind::Closed,
    }
}

fn of_sync(error: &SyncError) -> ErrorKind {
    match error {
        SyncError::Device(error) => of_device(error),
        SyncError::FailedBefore { .. } => ErrorKind::Io,
        SyncError::Closed => ErrorKind::Closed,
        SyncError::ReadOnly => ErrorKind::ReadOnly,
    }
}

fn of_close(error: &CloseError) -> ErrorKind {
    match error {
        CloseError::Map(error) => of_page_write(error),
        CloseError::Device(error) => of_device(error),
        CloseError::Sync(error) => of_sync(error),
        CloseError::CatalogRoot { .. } => ErrorKind::Damaged,
    }
}

fn of_log(error: &LogError) -> ErrorKind {
    match error {
        LogError::BadOption { .. } => ErrorKind::Invalid,
        LogError::Exists { .. } => ErrorKind::Exists,
        LogError::NotALog { .. } | LogError::OtherStore { .. } => ErrorKind::OtherType,
        LogError::Version { .. } => ErrorKind::Version,
        LogError::Missing { .. }
        | LogError::Damaged { .. }
        | LogError::DamagedSegment { .. }
        | LogError::NoRecord { .. }
        | LogError::Forgotten { .. }
        | LogError::BeyondTail { .. } => ErrorKind::Damaged,
        LogError::Read(error)
        | LogError::Prepare(error)
        | LogError::Full(error)
        | LogError::NoRoom(error)
        | LogError::Failed(error) => of_device(error),
        LogError::RecordTooLong { .. } => ErrorKind::TooLong,
        LogError::NoThread { .. } => ErrorKind::Memory,
        LogError::Closed { .. } => ErrorKind::Closed,
    }
}

fn of_pool(error: &PoolError) -> ErrorKind {
    match error {
        PoolError::Memory { .. }
        | PoolError::Full { .. }
        | PoolError::Starved { .. }
        | PoolError::TooSmall { .. }
        | PoolError::NoRoom { .. }
        | PoolError::Thread { .. } => ErrorKind::Memory,
        PoolError::PageSize { .. } | PoolError::Policy { .. } | PoolError::Unregistered { .. } => {
            ErrorKind::Invalid
        }
        PoolError::Log(error) => of_log(error),
        PoolError::Busy { .. } | PoolError::Held { .. } => ErrorKind::InUse,
        PoolError::Interrupted => ErrorKind::Cancelled,
        PoolError::Storage(error) => of_storage(error),
        PoolError::Misfit { .. } | PoolError::Corrupt { .. } => ErrorKind::Damaged,
    }
}

/// Classifies the errors of storage below the pool, which may have any type.
fn of_storage(error: &StorageError) -> ErrorKind {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(&*error.0);
    while let Some(error) = cause {
        let known = error.downcast_ref().map(of_read);
        let known = known.or_else(|| error.downcast_ref().map(of_page_write));
        let known = known.or_else(|| error.downcast_ref().map(of_sync));
        let known = known.or_else(|| error.downcast_ref().map(of_allocate));
        let known = known.or_else(|| error.downcast_ref().map(of_device));
        let known = known.or_else(|| error.downcast_ref().map(|_: &MapError| ErrorKind::Damaged));
        if let Some(kind) = known {
            return kind;
        }
        cause = error.source();
    }
    ErrorKind::Io
}

fn of_write(error: &WriteError) -> ErrorKind {
    match error {
        WriteError::KeyTooLong { .. } | WriteError::ValueTooLong { .. } => ErrorKind::TooLong,
        WriteError::Pool(error) => of_pool(error),
    }
}

fn of_hash_write(error: &HashWriteError) -> ErrorKind {
    match error {
        HashWriteError::TooLong { .. } | HashWriteError::Collisions { .. } => ErrorKind::TooLong,
        HashWriteError::Pool(error) => of_pool(error),
    }
}

fn of_heap_write(error: &HeapWriteError) -> ErrorKind {
    match error {
        HeapWriteError::TooLong { .. } => ErrorKind::TooLong,
        HeapWriteError::Pool(error) => of_pool(error),
    }
}

fn of_stream(error: &StreamError) -> ErrorKind {
    match error {
        StreamError::Write(error) => of_write(error),
        StreamError::Source { .. } => ErrorKind::Io,
        StreamError::Short { .. } => ErrorKind::Invalid,
        StreamError::Changed => ErrorKind::TransactionFailed,
    }
}

fn of_bulk(error: &BulkError) -> ErrorKind {
    match error {
        BulkError::NotEmpty | BulkError::Order { .. } => ErrorKind::Invalid,
        BulkError::Write { error, .. } => of_write(error),
    }
}

fn of_lock(error: &LockError) -> ErrorKind {
    match error {
        LockError::Deadlock { .. } => ErrorKind::Deadlock,
        LockError::Timeout { .. } => ErrorKind::Timeout,
        LockError::OwnTransaction { .. } => ErrorKind::OwnTransaction,
        LockError::Stranded { .. } => ErrorKind::Incomplete,
        LockError::Memory { .. } => ErrorKind::Memory,
        LockError::Interrupted { .. } => ErrorKind::Cancelled,
        LockError::Closed { .. } => ErrorKind::Closed,
    }
}

fn of_spill(error: &SpillError) -> ErrorKind {
    match error {
        SpillError::Full { .. } => ErrorKind::Memory,
        SpillError::File { .. } => ErrorKind::Io,
        SpillError::Damaged { .. } => ErrorKind::Damaged,
        SpillError::Closed { .. } => ErrorKind::Closed,
    }
}

fn of_txn(error: &TxnError) -> ErrorKind {
    match error {
        TxnError::Lock(error) => of_lock(error),
        TxnError::Write(error) => of_write(error),
        TxnError::HashWrite(error) => of_hash_write(error),
        TxnError::HeapWrite(error) => of_heap_write(error),
        TxnError::Pool(error) => of_pool(error),
        TxnError::Log(error) => of_log(error),
        TxnError::Forked => ErrorKind::InUse,
        TxnError::Closed => ErrorKind::Closed,
        TxnError::Failed
        | TxnError::Nested
        | TxnError::NoSavepoint
        | TxnError::SnapshotLost { .. }
        | TxnError::SnapshotUnreadable { .. }
        | TxnError::TreeBulkModified { .. } => ErrorKind::TransactionFailed,
        TxnError::NoSnapshots => ErrorKind::Invalid,
        TxnError::VersionUnreadable(error) => of_pool(error),
        TxnError::SnapshotTooLarge { .. }
        | TxnError::TooManyLarge { .. }
        | TxnError::UndoTooLarge { .. } => ErrorKind::Memory,
        TxnError::UndoUnreadable(error) => of_spill(error),
        TxnError::UndoPending(error) => of_txn(error),
        TxnError::NoTree { .. } => ErrorKind::Damaged,
    }
}

/// Returns `true` if the device was full.
pub(in crate::store) fn is_disk_full(error: &TxnError) -> bool {
    of_txn(error) == ErrorKind::DiskFull
}

fn of_recovery(error: &RecoveryError) -> ErrorKind {
    match error {
        RecoveryError::Log(error) => of_log(error),
        RecoveryError::Page(error) => of_read(error),
        RecoveryError::NoCheckpoint { .. } | RecoveryError::OlderSuperblock { .. } => {
            ErrorKind::Incomplete
        }
        RecoveryError::Kind { .. } => ErrorKind::Version,
        RecoveryError::Interrupted => ErrorKind::Cancelled,
        RecoveryError::Checkpoint { .. }
        | RecoveryError::Body { .. }
        | RecoveryError::Damaged { .. } => ErrorKind::Damaged,
        RecoveryError::Grow(error) => of_allocate(error),
        RecoveryError::Write(error) => of_page_write(error),
        RecoveryError::Sync(error) => of_sync(error),
    }
}

fn of_backup(error: &BackupError) -> ErrorKind {
    match error {
        BackupError::Exists { .. } => ErrorKind::Exists,
        BackupError::Unfinished { .. } | BackupError::UnderWay => ErrorKind::InUse,
        BackupError::NoLog { .. } => ErrorKind::Incomplete,
        BackupError::Target(error) => of_device(error),
        BackupError::Source(error) => of_read(error),
        BackupError::Map(_) | BackupError::Damaged(_) => ErrorKind::Damaged,
        BackupError::Place { .. } => ErrorKind::Io,
        BackupError::GivenUp => ErrorKind::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use millpond_base::PageId;

    use super::*;

    /// Returns the kind of `error`, below the pool.
    fn stored(error: impl StdError + Send + Sync + 'static) -> ErrorKind {
        Error::Pool(PoolError::Storage(StorageError(Arc::new(error)))).kind()
    }

    #[test]
    fn errors_below_the_pool_keep_their_kind() {
        let full = || DeviceError::DiskFull { path: "/f".into(), offset: 0, needed: 1 };
        assert_eq!(stored(full()), ErrorKind::DiskFull);
        assert_eq!(stored(PageWriteError::NoPlace(full())), ErrorKind::DiskFull);
        assert_eq!(stored(SyncError::FailedBefore { path: "/f".into() }), ErrorKind::Io);
        let stale = ReadError::Stale { path: "/f".into(), page: PageId(7), offset: 4096 };
        assert_eq!(stored(stale), ErrorKind::Damaged);
        assert_eq!(stored(std::fmt::Error), ErrorKind::Io, "of no type that is known");
    }

    #[test]
    fn transactions_that_lost_are_told_apart() {
        let tree = || crate::lock::TreeName { id: 1, name: None };
        let deadlock = LockError::Deadlock { victim: 3, tree: tree(), cycle: vec![3, 4] };
        let own = LockError::OwnTransaction { holder: 3, tree: tree() };
        assert_eq!(Error::Txn(deadlock.into()).kind(), ErrorKind::Deadlock);
        assert_eq!(Error::Txn(own.into()).kind(), ErrorKind::OwnTransaction);
    }
}
