//! The progress of a recovery.

/// A part of recovery.
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Which part.
    pub phase: Phase,
    /// What is done of it.
    pub done: u64,
    /// What there is to do.
    pub total: u64,
}
