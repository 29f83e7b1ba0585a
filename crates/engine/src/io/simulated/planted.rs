//! Bugs that a test plants, to see whether the campaigns catch them: of crashes, and of reads that
//! go wrong.
//!
//! A campaign that finds nothing is worth as much as what it would have found. So each rule on
//! which recovery rests, and each check of what is read, has a place here that breaks it: with the
//! feature `planted`, a test chooses one of them with `plant`, for the whole process. Without the
//! feature, which nobody but `cargo xtask crash --planted` turns on, `is_planted` is the constant
//! `false`, and nothing of this is left in the program.

/// What is done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Bug {
    /// A commit that promises to be durable returns before it is.
    CommitDoesNotWait = 1,
    /// The log counts what it wrote as durable without synchronising it.
    LogNotSynchronised,
    /// Whole records behind the log's end are left, and valid again when new ones reach up to them.
    LogTailNotCleared,
    /// A slot of the log that gets another segment is named so together with the first records in
    /// it, so that a crash may leave records in a slot that nobody finds.
    SlotNotNamedFirst,
    /// What an opened log found is not written again.
    LogTailNotWrittenAgain,
    /// A page is written before the log records that changed it.
    PageBeforeLog,
    /// A page does not say which record changed it last.
    PageLsnNotSet,
    /// The first record about a page that was clean says only what changed.
    NoFullImage,
    /// A record that undoes another one does not say what is to be undone next.
    NoUndoNext,
    /// What undoes a change is logged as a change that nobody made for a transaction.
    UndoLoggedAsOther,
    /// A checkpoint looks for the oldest dirty page after it synchronised the data.
    RedoBoundAfterSync,
    /// A checkpoint takes a page that is being written for clean.
    WritingCountsAsClean,
    /// Whether a page is dirty and whether it is being written are looked at one after the other.
    FlagsReadApart,
    /// A page gets dirty by a change that takes it for one that is being written, whether or not
    /// that write is over by then.
    DirtyNotAtomic,
    /// A checkpoint does not synchronise the data.
    DataNotSynchronised,
    /// The superblock names a checkpoint that is not durable.
    CheckpointNotDurable,
    /// The log forgets what only the checkpoint before can do without: the superblock that names
    /// the new one is not synchronised.
    SuperblockNotSynchronised,
    /// The log forgets what a transaction under way needs to be undone.
    LogForgottenEarly,
    /// A checkpoint does not wait for a record that is being appended.
    StepNotAwaited,
    /// A checkpoint knows of no transactions.
    ActiveNotNoted,
    /// A page that is freed can be used again before the record that says so.
    FreedBeforeRecord,
    /// Recovery takes the map of pages in use from the checkpoint.
    MapNotReplayed,
    /// Recovery forgets the roots that hang below nothing.
    HangingNotRestored,
    /// Recovery undoes nothing.
    LosersNotUndone,
    /// A swip in a full image is logged as the pointer that it is.
    SwipLoggedAsPointer,
    /// A swip whose bytes were there before, in something else, is not logged.
    StaleSwipNotLogged,
    /// A call outside a transaction looks what an entry was after it changed it.
    VersionAfterChange,
    /// Who begins the first snapshot forgets one of the transactions under way.
    WriterNotGathered,
    /// A version is dropped that a snapshot needs which is not the newest.
    VersionDroppedEarly,
    /// What snapshots need of a transaction that took its changes back never gets a place.
    AbortNotStamped,
    /// A commit gets its place among those of others after it gave its locks back.
    StampAfterLocks,
    /// While a backup copies pages, the log forgets what the copy needs.
    BackupLogNotKept,
    /// A backup copies the log before the pages.
    BackupLogFirst,
    /// The results of a batch of reads are those of other pages of the batch.
    ReadsOutOfOrder,
    /// A node of a tree need not cover the keys that its parent says.
    FencesNotCompared,
    /// A page that could not be read ahead is taken as it is.
    ReadAheadErrorSwallowed,
    /// A sound page is accepted for any other.
    OtherPageAccepted,
    /// A store whose superblock is zeros is made anew.
    LostStoreMadeAnew,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 38] = [
        Bug::CommitDoesNotWait,
        Bug::LogNotSynchronised,
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
        Bug::DataNotSynchronised,
        Bug::CheckpointNotDurable,
        Bug::SuperblockNotSynchronised,
        Bug::LogForgottenEarly,
        Bug::StepNotAwaited,
        Bug::ActiveNotNoted,
        Bug::FreedBeforeRecord,
        Bug::MapNotReplayed,
        Bug::HangingNotRestored,
        Bug::LosersNotUndone,
        Bug::SwipLoggedAsPointer,
        Bug::StaleSwipNotLogged,
        Bug::VersionAfterChange,
        Bug::WriterNotGathered,
        Bug::VersionDroppedEarly,
        Bug::AbortNotStamped,
        Bug::StampAfterLocks,
        Bug::BackupLogNotKept,
        Bug::BackupLogFirst,
        Bug::ReadsOutOfOrder,
        Bug::FencesNotCompared,
        Bug::ReadAheadErrorSwallowed,
        Bug::OtherPageAccepted,
        Bug::LostStoreMadeAnew,
    ];

    /// Those of the read path: they show when reads go wrong, and not after a crash.
    pub const OF_READS: [Bug; 5] = [
        Bug::ReadsOutOfOrder,
        Bug::FencesNotCompared,
        Bug::ReadAheadErrorSwallowed,
        Bug::OtherPageAccepted,
        Bug::LostStoreMadeAnew,
    ];
}

#[cfg(feature = "planted")]
static PLANTED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Whether `bug` is to be made.
#[cfg(feature = "planted")]
pub(crate) fn is_planted(bug: Bug) -> bool {
    PLANTED.load(std::sync::atomic::Ordering::Relaxed) == bug as u8
}

/// Whether `bug` is to be made: no.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub(crate) const fn is_planted(_: Bug) -> bool {
    false
}

/// If `bug` is to be made, makes the moment longer in which it shows: threads seldom meet there.
#[inline(always)]
pub(crate) fn dawdle(bug: Bug) {
    if is_planted(bug) {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
}

/// Has this bug made from now on, and no other, by all stores of the process; `None`: none.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(0, |bug| bug as u8), std::sync::atomic::Ordering::Relaxed);
}
