//! Transactions.

use std::ffi::c_void;
use std::sync::Arc;

use millpond::{Error, RawTree, TransactOptions, Txn};
use millpond_handles::{Transaction, transact};

use crate::guard::guard;
use crate::options::{mp_txn_options, txn_options};
use crate::pointer::{give, handle, place, set, take};
use crate::status::{Failure, forget_reported, mp_status};
use crate::store::mp_store;
use crate::tree::mp_tree;

/// A transaction. Threads may share it: their calls wait for each other.
pub struct mp_txn {
    pub(crate) tx: Arc<Transaction>,
    /// True if mp_transact frees it.
    is_lent: bool,
}

/// Makes a call of `tree`: in a transaction, or on its own if `txn` is null.
///
/// # Safety
/// Same as [`handle`].
pub(crate) unsafe fn at<R>(
    tree: *const mp_tree,
    txn: *const mp_txn,
    alone: impl FnOnce(&RawTree) -> Result<R, Error>,
    within: impl FnOnce(&RawTree<&Txn>) -> Result<R, Error>,
) -> Result<R, Failure> {
    // SAFETY: the caller's promise.
    let (tree, txn) = unsafe { (handle(tree, "the tree")?, txn.as_ref()) };
    match txn {
        None => Ok(alone(&tree.tree)?),
        Some(txn) => Ok(txn.tx.call(|txn| within(&txn.tree(&tree.tree)))?),
    }
}

/// Begins a transaction; `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_txn_begin(
    store: *const mp_store,
    options: *const mp_txn_options,
    out: *mut *mut mp_txn,
) -> mp_status {
    guard(|| {
        let out = place(out, "the place for the transaction")?;
        // SAFETY: the crate's contract; `place` returned it.
        unsafe {
            let store = handle(store, "the store")?;
            let options = txn_options(options, store.db.durability())?;
            let tx = Arc::new(Transaction::begin(&store.db, Some(options))?);
            give(out, mp_txn { tx, is_lent: false });
        }
        Ok(mp_status::MP_OK)
    })
}

/// Ends a transaction, and frees it unless mp_transact does.
///
/// # Safety
/// Same as [`take`].
unsafe fn end(
    txn: *mut mp_txn,
    how: impl FnOnce(&Transaction) -> Result<(), millpond_handles::Fault>,
) -> mp_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let (is_lent, tx) = unsafe {
            let txn = handle(txn, "the transaction")?;
            (txn.is_lent, txn.tx.clone())
        };
        if !is_lent {
            // SAFETY: the caller's promise; the reference above is not used any more.
            drop(unsafe { take(txn) });
        }
        how(&tx)?;
        Ok(mp_status::MP_OK)
    })
}

/// Commits a transaction. It ends, its handle is gone, and its cursors can only be closed, whatever
/// is returned. MP_OK: it is committed, and durable according to its durability. If the log failed,
/// the next opening of the store shows whether it is durable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_txn_commit(txn: *mut mp_txn) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { end(txn, Transaction::commit) }
}

/// Rolls a transaction back. It ends, and its handle is gone. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_txn_abort(txn: *mut mp_txn) -> mp_status {
    if txn.is_null() {
        return mp_status::MP_OK;
    }
    // SAFETY: the crate's contract.
    unsafe { end(txn, Transaction::abort) }
}

/// Creates a savepoint; `number` receives its number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_txn_savepoint(txn: *const mp_txn, number: *mut usize) -> mp_status {
    guard(|| {
        let number = place(number, "the place for the number")?;
        // SAFETY: the crate's contract; `place` returned it.
        unsafe { set(number, handle(txn, "the transaction")?.tx.savepoint()?) };
        Ok(mp_status::MP_OK)
    })
}

/// Rolls back to a savepoint, which stays. Later savepoints, and all cursors of the transaction,
/// end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_txn_rollback_to(txn: *const mp_txn, number: usize) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe { handle(txn, "the transaction") }?.tx.rollback_to(number)?;
        Ok(mp_status::MP_OK)
    })
}

/// Runs `work` in a transaction and commits it if `work` returns MP_OK. If the transaction loses in
/// a deadlock, it is aborted, and `work` runs again, for up to ten seconds: so `work` must have no
/// other effects. If `work` returns anything else, the transaction is aborted and that status is
/// returned; a number that is not a status becomes MP_CANCELLED. The message is that of the last
/// call within `work` that failed with this status, if one did. `work` may end the transaction
/// itself, and must neither throw nor jump out of the call. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_transact(
    store: *const mp_store,
    options: *const mp_txn_options,
    work: Option<unsafe extern "C" fn(txn: *mut mp_txn, user: *mut c_void) -> i32>,
    user: *mut c_void,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        let store = unsafe { handle(store, "the store") }?;
        let work = work.ok_or_else(|| Failure::Misuse("the callback is NULL".to_string()))?;
        let mut transact_options = TransactOptions::default();
        // SAFETY: the crate's contract.
        transact_options.txn = Some(unsafe { txn_options(options, store.db.durability()) }?);
        transact(&store.db, transact_options, |tx| {
            let mut lent = mp_txn { tx: tx.clone(), is_lent: true };
            forget_reported();
            // SAFETY: the caller's function, with the caller's pointer, and a transaction that
            // stays where it is during the call.
            match unsafe { work(&mut lent, user) } {
                0 => Ok(mp_status::MP_OK),
                other => {
                    let status = mp_status::of_number(other).unwrap_or(mp_status::MP_CANCELLED);
                    Err(Failure::Callback(status))
                }
            }
        })
    })
}
