//! Kinds of the log records that the pool and transactions write.

/// Changes of pages that are never undone: a whole operation, or a change of structure.
pub const PAGES: u8 = 1;
/// A change by a transaction, with its undo.
pub const UPDATE: u8 = 2;
/// A compensation: a change that undoes another one.
pub const COMPENSATION: u8 = 3;
/// A transaction committed.
pub const COMMIT: u8 = 4;
/// A transaction was rolled back completely.
pub const ABORT: u8 = 5;
/// A checkpoint.
pub const CHECKPOINT: u8 = 6;
/// A part of a checkpoint that is too long for one record.
pub const CHECKPOINT_PART: u8 = 7;
/// The superblock of a generation is durable.
pub const SUPERBLOCK: u8 = 8;
