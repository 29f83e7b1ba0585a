//! Runs analysis and redo; afterwards only the undo of losers is left.

use super::analysis::Analysis;
use super::checkpoint::Checkpoint;
use super::error::RecoveryError;
use super::generation;
use super::progress::Progress;
use super::rebuild::ApplyRedoNote;
use super::redo::RedoOptions;
use super::redo::Redone;
use super::redo::redo;
use crate::io::PageStore;
use crate::log::Log;

/// Findings and results of recovery.
#[derive(Debug)]
pub struct Recovered {
    /// The checkpoint that recovery began with.
    pub checkpoint: Checkpoint,
    /// Analysis of the log; the losers are yet to be undone.
    pub analysis: Analysis,
    /// Result of redo.
    pub redone: Redone,
}

/// Brings the pages of `store`, which was opened for recovery, and its map of pages in use to the
/// end of `log`.
///
/// # Errors
/// If the log cannot be read or decoded, or the store cannot be written. Recovery may then restart
/// (rule 12).
pub fn recover(
    store: &PageStore,
    log: &Log,
    note: ApplyRedoNote,
    options: &RedoOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Recovered, RecoveryError> {
    let checkpoint = Checkpoint::read(log, store.log_position())?;
    let analysis = Analysis::of(log, &checkpoint, store.placement(), progress)?;
    generation::settle(store, log, analysis.noted)?;
    let redone = redo(store, log, &analysis, note, options, progress)?;
    store.restore_map(analysis.space.taken());
    Ok(Recovered { checkpoint, analysis, redone })
}
