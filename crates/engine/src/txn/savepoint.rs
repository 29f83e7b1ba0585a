//! Savepoints, and the rollback to a savepoint or of the whole transaction.

use millpond_base::Lsn;

use crate::pool::{Actor, Reserved};
use crate::txn::active::add_record;
use crate::txn::error::TxnError;
use crate::txn::structure::{Structure, free};
use crate::txn::transaction::{State, Transaction};
use crate::txn::trees::StructureOf;
use crate::txn::undo::undo_one;
use crate::txn::undo_list::Newest;

/// A point in a transaction that it can roll back to.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let ponds = db.tree::<String, u32>("ponds")?;
/// let mut tx = db.begin()?;
/// let savepoint = tx.savepoint()?;
/// for n in 0..3 {
///     tx.tree(&ponds).put("mill", &n)?;
///     tx.rollback_to(&savepoint)?; // it remains
/// }
/// assert!(tx.tree(&ponds).is_empty()?);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint {
    tx: u64,
    changes: usize,
    /// Rollbacks so far: a rollback to an earlier savepoint invalidates this one.
    epoch: u64,
}

impl Transaction {
    /// Returns a savepoint at the present state of the transaction.
    pub fn savepoint(&self) -> Savepoint {
        let epoch = self.scratch.rollbacks.count();
        Savepoint { tx: self.tx, changes: self.changes_len(), epoch }
    }

    /// Undoes the changes since `savepoint`. Locks stay.
    ///
    /// # Errors
    /// [`TxnError::NoSavepoint`], or a change could not be undone: then the transaction can only be
    /// aborted.
    pub fn rollback_to(
        &mut self,
        savepoint: &Savepoint,
        structure_of: &StructureOf<'_, '_>,
    ) -> Result<(), TxnError> {
        self.running()?;
        let lowest = self.scratch.rollbacks.lowest_since(savepoint.epoch);
        let is_gone = lowest.is_some_and(|changes| changes < savepoint.changes);
        if savepoint.tx != self.tx || savepoint.changes > self.changes_len() || is_gone {
            return Err(TxnError::NoSavepoint);
        }
        let undone = self.undo_to(savepoint.changes, structure_of);
        self.scratch.rollbacks.push(savepoint.changes);
        if undone.is_err() {
            self.state = State::Failed;
        }
        undone
    }

    /// Undoes the last change, made to `structure`, if it has `led` to an error, and returns that
    /// error.
    #[inline]
    pub(super) fn undo_last_if(
        &mut self,
        structure: &dyn Structure,
        led: Result<(), TxnError>,
    ) -> Result<(), TxnError> {
        led.map_err(|error| self.undo_last(structure, error))
    }

    #[cold]
    fn undo_last(&mut self, structure: &dyn Structure, error: TxnError) -> TxnError {
        let structure_of = |owner| Some(structure).filter(|known| known.owner() == owner);
        let changes = self.changes_len().saturating_sub(1);
        if let Err(error) = self.undo_to(changes, &structure_of) {
            self.state = State::Failed;
            return error;
        }
        self.scratch.rollbacks.push(changes);
        error
    }

    /// Undoes changes, the newest first, until `changes` of them are left.
    pub(super) fn undo_to(
        &mut self,
        changes: usize,
        structure_of: &StructureOf<'_, '_>,
    ) -> Result<(), TxnError> {
        let _reserved = Reserved::begin();
        while self.changes_len() > changes {
            let Some(active) = &self.scratch.active else { break };
            let mut buffer = active.undo();
            let Some(Newest { prev, large, undo }) = buffer.undo.newest()? else { break };
            let no_tree = TxnError::NoTree { tx: self.tx, owner: undo.owner };
            let structure = structure_of(undo.owner).ok_or(no_tree)?;
            let actor = Actor::Undo { tx: self.tx, prev: self.last, next: prev };
            let applied = active.step(|| {
                let applied = undo_one(structure, actor, &undo, large);
                let at = applied.as_ref().map_or(Lsn(0), |applied| applied.at);
                (applied, at)
            });
            // A change that could not be undone stays in the list, and is tried again.
            let applied = applied?;
            buffer.undo.pop();
            buffer.rows.count(structure.owner(), applied.rows);
            add_record(&mut self.last, applied.at);
            if let Some(gone) = applied.gone {
                free(structure, gone);
            }
        }
        Ok(())
    }

    /// Leaves the transaction as it is, for good, because it could not be undone (rule 4). The log
    /// keeps the records that a recovery needs to undo it.
    pub fn strand(&mut self) {
        if let Some(owner) = self.scratch.owner.take() {
            owner.strand();
        }
    }

    /// Takes the transaction away from its holder, for a later abort by any thread. The holder
    /// keeps one that is over.
    pub fn hand_over(&mut self) -> Transaction {
        self.leave_thread();
        Transaction {
            manager: self.manager.clone(),
            options: self.options,
            tx: self.tx,
            last: self.last,
            state: std::mem::replace(&mut self.state, State::Over),
            is_entered: std::mem::take(&mut self.is_entered),
            scratch: std::mem::take(&mut self.scratch),
        }
    }
}
