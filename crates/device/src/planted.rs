//! Bugs that a test plants, to see whether the campaigns catch them: of crashes, and of reads that
//! go wrong.
//!
//! A campaign that finds nothing is worth as much as what it would have found. So each rule on
//! which recovery rests, and each check of a read, has a bug here that breaks it. With the feature
//! `planted`, a test chooses one of them with `plant`, for the whole process. In the engine,
//! `planted!(X, …)` and `unless_planted!(X, …)` mark where bug `X` departs from the correct code.
//! Without the feature, which only `cargo xtask crash --planted` turns on, both leave the correct
//! code and nothing else in the program.

/// A deliberate bug.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Bug {
    /// A synchronous commit returns before it is durable.
    CommitDoesNotWait = 1,
    /// The log counts its writes as durable without a sync.
    LogNotSynced,
    /// Whole records behind the log's end are left, and become valid when new ones reach them.
    LogTailNotCleared,
    /// The header of a log slot that is reused is written together with the first records in it, so
    /// that a crash may leave records in a slot that recovery does not find.
    SlotNotNamedFirst,
    /// The records that an opened log found are not written again.
    LogTailNotWrittenAgain,
    /// A page is written before the log records that changed it.
    PageBeforeLog,
    /// The page LSN is not set.
    PageLsnNotSet,
    /// The first record about a page that was clean holds the change only, not the full image.
    NoFullImage,
    /// A CLR has no undo-next LSN.
    NoUndoNext,
    /// An undo is logged as a change outside transactions instead of a CLR.
    UndoLoggedAsOther,
    /// A checkpoint looks for the oldest dirty page after it synced the data.
    RedoBoundAfterSync,
    /// A checkpoint takes a page that is being written for clean.
    WritingCountsAsClean,
    /// The dirty flag and the flag of a write are read one after the other.
    FlagsReadApart,
    /// A change takes a page for one that is being written and marks it dirty even if that write is
    /// over by then.
    DirtyNotAtomic,
    /// A checkpoint does not sync the data.
    DataNotSynced,
    /// A checkpoint that syncs ranges leaves out one of them.
    RangeForgotten,
    /// A page enters the sync list when its write is over already.
    ListedLate,
    /// The superblock names a checkpoint that is not durable.
    CheckpointNotDurable,
    /// The superblock that names a checkpoint is not synced before the log drops the records that
    /// the checkpoint before needs.
    SuperblockNotSynced,
    /// The log drops records that the undo of an active transaction needs.
    LogForgottenEarly,
    /// A checkpoint does not wait for a record that is being appended.
    StepNotAwaited,
    /// A checkpoint has no table of active transactions.
    ActiveNotRecorded,
    /// A page that is freed can be used again before the record that frees it.
    FreedBeforeRecord,
    /// Recovery takes the map of pages in use from the checkpoint.
    MapNotReplayed,
    /// Recovery forgets the orphan roots.
    OrphansNotRestored,
    /// Recovery takes how many entries trees have from the checkpoint.
    RowsNotReplayed,
    /// A checkpoint counts entries later than at its place in the log.
    RowsCountedLate,
    /// Recovery undoes nothing.
    LosersNotUndone,
    /// A swip in a full image is logged as the pointer that it is.
    SwipLoggedAsPointer,
    /// A swip whose bytes were there before, as part of something else, is not logged.
    StaleSwipNotLogged,
    /// A call outside a transaction reads the before image of an entry after it changed it.
    VersionAfterChange,
    /// The first snapshot of an epoch does not capture the versions of one active transaction.
    WriterNotCaptured,
    /// A version is dropped that a snapshot other than the newest needs.
    VersionDroppedEarly,
    /// The versions of a transaction that rolled back never get a commit timestamp.
    AbortNotStamped,
    /// A commit gets its commit timestamp after it released its locks.
    StampAfterLocks,
    /// The undo of a change to a hash index is in the transaction's memory, and not in the log.
    HashUndoNotLogged,
    /// A transaction that removes a heap's record frees its slot before it has committed.
    RemovedSlotFreed,
    /// While a backup copies pages, the log drops records that the copy needs.
    BackupLogNotKept,
    /// A backup copies the log before the pages.
    BackupLogFirst,
    /// A place that the last durable page map needs is written to.
    PlaceNotAwaited,
    /// A checkpoint frees the places that its page map supersedes before the superblock names that
    /// map.
    PlacesFreedEarly,
    /// The nodes of a page map are not synced before the superblock names them.
    MapNotSynced,
    /// A checkpoint looks for the oldest dirty page after it copied the page map.
    RedoBoundAfterMap,
    /// The log does not say that a superblock is durable.
    SuperblockNotNoted,
    /// A place is written to that a backup is to read.
    PlaceReusedDuringBackup,
    /// The page map is read with as many page ids as the file's length seems to allow.
    IdsBoundedByLength,
    /// A place becomes free as soon as one of the pages in it does.
    PlaceFreedWithPart,
    /// A logged difference leaves out bytes that equal those of the gap in memory.
    GapCountsAsUnchanged,
    /// Redo applies records to a page that it has seen already.
    PageLsnNotCompared,
    /// A page that is not the version that the map means is accepted.
    StalePageAccepted,
    /// The results of a batch of reads are those of other pages of the batch.
    ReadsOutOfOrder,
    /// The fences of a tree node are not compared with those in its parent.
    FencesNotCompared,
    /// A page whose read ahead failed is used as it is.
    ReadAheadErrorSwallowed,
    /// A page with a valid checksum is accepted for any other page.
    OtherPageAccepted,
    /// A second tier keeps its copy of a page that is written.
    TierKeepsOutdated,
    /// A second tier uses a cache that was closed above the store as it was at another time.
    TierOfAnotherTime,
    /// A copy in a second tier is used without a check of its checksum.
    TierUnproven,
    /// A second tier keeps copies of bytes that turned out to be misread.
    TierKeepsMisread,
    /// The journal of a tier that writes back is durable before the copies that it names.
    BackCopiesNotSynced,
    /// A place leaves the directory of a tier that writes back before storage has it durably.
    BackStorageNotSynced,
    /// A sync of a tier that writes back does not wait for its journal.
    BackJournalNotSynced,
    /// A slot that the directory names is written to.
    BackSlotReusedEarly,
    /// Bytes that the last durable page map needs are discarded.
    BackDiscardsEarly,
    /// Bytes that only a tier's cache has are used without a check of their checksum.
    BackUnproven,
    /// If bytes that only a tier's cache has cannot be read, storage is read instead.
    BackFallsBack,
    /// Bytes read from the cache are written to storage without a check of their checksum.
    BackDestagesUnproven,
    /// The thread that destages misses a ring of its bell that came while it was at work.
    BackRingForgotten,
    /// The thread that destages is not woken when it is to end.
    BackThreadNotEnded,
    /// A version that came while an older one was destaged is taken for that one.
    BackNewerDropped,
    /// A write that is no page goes to storage while an older version is destaged there.
    BackWritesMeet,
    /// A store whose superblock is zeros is created again.
    LostStoreRecreated,
    /// A writer does not look for ranges around its key.
    RangeNotSeen,
    /// An owner that is about to wait does not look once more whether those in its way are there.
    WaiterLooksOnce,
    /// An owner gives locks on keys back before it says that it has locked their tree instead.
    KeysBeforeTree,
    /// A reader takes a part of the lock table for quiet in which keys are locked in X.
    HeldPartIsQuiet,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 75] = [
        Bug::CommitDoesNotWait,
        Bug::LogNotSynced,
        Bug::LogTailNotCleared,
        Bug::SlotNotNamedFirst,
        Bug::LogTailNotWrittenAgain,
        Bug::PageBeforeLog,
        Bug::PageLsnNotSet,
        Bug::NoFullImage,
        Bug::NoUndoNext,
        Bug::UndoLoggedAsOther,
        Bug::RedoBoundAfterSync,
        Bug::WritingCountsAsClean,
        Bug::FlagsReadApart,
        Bug::DirtyNotAtomic,
        Bug::DataNotSynced,
        Bug::RangeForgotten,
        Bug::ListedLate,
        Bug::CheckpointNotDurable,
        Bug::SuperblockNotSynced,
        Bug::LogForgottenEarly,
        Bug::StepNotAwaited,
        Bug::ActiveNotRecorded,
        Bug::FreedBeforeRecord,
        Bug::MapNotReplayed,
        Bug::OrphansNotRestored,
        Bug::RowsNotReplayed,
        Bug::RowsCountedLate,
        Bug::LosersNotUndone,
        Bug::SwipLoggedAsPointer,
        Bug::StaleSwipNotLogged,
        Bug::VersionAfterChange,
        Bug::WriterNotCaptured,
        Bug::VersionDroppedEarly,
        Bug::AbortNotStamped,
        Bug::StampAfterLocks,
        Bug::HashUndoNotLogged,
        Bug::RemovedSlotFreed,
        Bug::BackupLogNotKept,
        Bug::BackupLogFirst,
        Bug::PlaceNotAwaited,
        Bug::PlacesFreedEarly,
        Bug::MapNotSynced,
        Bug::RedoBoundAfterMap,
        Bug::SuperblockNotNoted,
        Bug::PlaceReusedDuringBackup,
        Bug::IdsBoundedByLength,
        Bug::PlaceFreedWithPart,
        Bug::GapCountsAsUnchanged,
        Bug::PageLsnNotCompared,
        Bug::StalePageAccepted,
        Bug::ReadsOutOfOrder,
        Bug::FencesNotCompared,
        Bug::ReadAheadErrorSwallowed,
        Bug::OtherPageAccepted,
        Bug::TierKeepsOutdated,
        Bug::TierOfAnotherTime,
        Bug::TierUnproven,
        Bug::TierKeepsMisread,
        Bug::BackCopiesNotSynced,
        Bug::BackStorageNotSynced,
        Bug::BackJournalNotSynced,
        Bug::BackSlotReusedEarly,
        Bug::BackDiscardsEarly,
        Bug::BackUnproven,
        Bug::BackFallsBack,
        Bug::BackDestagesUnproven,
        Bug::BackRingForgotten,
        Bug::BackThreadNotEnded,
        Bug::BackNewerDropped,
        Bug::BackWritesMeet,
        Bug::LostStoreRecreated,
        Bug::RangeNotSeen,
        Bug::WaiterLooksOnce,
        Bug::KeysBeforeTree,
        Bug::HeldPartIsQuiet,
    ];

    /// Bugs of the lock manager: `tests/shuttle_models/lock.rs` catches them.
    pub const OF_LOCKS: [Bug; 4] =
        [Bug::RangeNotSeen, Bug::WaiterLooksOnce, Bug::KeysBeforeTree, Bug::HeldPartIsQuiet];

    /// Bugs of the destaging thread: `tests/shuttle_models/tier.rs` catches them.
    pub const OF_DESTAGING: [Bug; 4] = [
        Bug::BackRingForgotten,
        Bug::BackThreadNotEnded,
        Bug::BackNewerDropped,
        Bug::BackWritesMeet,
    ];

    /// Bugs of the read path: they show when reads go wrong, and not after a crash.
    pub const OF_READS: [Bug; 12] = [
        Bug::SuperblockNotNoted,
        Bug::StalePageAccepted,
        Bug::ReadsOutOfOrder,
        Bug::FencesNotCompared,
        Bug::ReadAheadErrorSwallowed,
        Bug::OtherPageAccepted,
        Bug::TierUnproven,
        Bug::TierKeepsMisread,
        Bug::BackUnproven,
        Bug::BackFallsBack,
        Bug::BackDestagesUnproven,
        Bug::LostStoreRecreated,
    ];
}

/// Tests for a planted bug, or runs code if it is planted.
///
/// `planted!(X)` is the condition, the constant `false` without the feature `planted`.
/// `planted!(X, work)` does `work` if bug `X` is planted, and is nothing without the feature.
/// `planted!(X, dawdle)` widens the race in which the bug shows.
#[macro_export]
#[doc(hidden)]
macro_rules! planted {
    ($bug:ident) => {
        $crate::planted::is_planted($crate::planted::Bug::$bug)
    };
    ($bug:ident, dawdle) => {
        #[cfg(feature = "planted")]
        $crate::planted::dawdle($crate::planted::Bug::$bug);
    };
    ($bug:ident, $work:expr) => {
        #[cfg(feature = "planted")]
        if $crate::planted!($bug) {
            $work;
        }
    };
}

/// Does `work` unless a bug is planted that leaves it out: `unless_planted!(X, work)` is `work;`
/// without the feature `planted`.
#[macro_export]
#[doc(hidden)]
macro_rules! unless_planted {
    ($bug:ident, $work:expr) => {
        #[cfg(feature = "planted")]
        if !$crate::planted!($bug) {
            $work;
        }
        #[cfg(not(feature = "planted"))]
        $work;
    };
}

#[cfg(feature = "planted")]
static PLANTED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Returns `true` if `bug` is planted.
#[cfg(feature = "planted")]
pub fn is_planted(bug: Bug) -> bool {
    PLANTED.load(std::sync::atomic::Ordering::Relaxed) == bug as u8
}

/// Returns `false`: without the feature `planted` no bug is.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn is_planted(_: Bug) -> bool {
    false
}

/// Widens the race in which `bug` shows, if it is planted: threads seldom meet there.
#[cfg(feature = "planted")]
pub fn dawdle(bug: Bug) {
    if is_planted(bug) {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
}

/// Plants `bug`, and no other, in all stores of the process; `None` plants nothing.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(0, |bug| bug as u8), std::sync::atomic::Ordering::Relaxed);
}
