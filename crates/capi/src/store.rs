//! Stores.

use std::ffi::c_char;

use millpond::{Db, Options};

use crate::guard::guard;
use crate::options::mp_options;
use crate::pointer::{give, handle, path, place, take};
use crate::status::{Failure, mp_status};

/// An open store. Any number of threads may use it at once.
pub struct mp_store {
    pub(crate) db: Db,
}

/// # Safety
/// `options` is null, or points to options; [`place`] returned `out`.
unsafe fn open(
    options: *const mp_options,
    out: *mut *mut mp_store,
    how: impl FnOnce(Options) -> Result<Db, millpond::Error>,
) -> Result<mp_status, Failure> {
    // SAFETY: the caller's promise.
    let options = unsafe { options.as_ref() };
    let db = how(options.map(|options| options.options.clone()).unwrap_or_default())?;
    // SAFETY: the caller's promise.
    unsafe { give(out, mp_store { db }) };
    Ok(mp_status::MP_OK)
}

/// Opens the store at `path`, or creates one there. A store that was not closed is recovered.
/// `options` may be NULL. Only one process at a time can have a store open; others get MP_IN_USE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_open(
    path_of_store: *const c_char,
    options: *const mp_options,
    out: *mut *mut mp_store,
) -> mp_status {
    guard(|| {
        let out = place(out, "the place for the store")?;
        // SAFETY: the crate's contract.
        unsafe {
            let file = path(path_of_store, "the path of the store")?;
            open(options, out, |options| Db::open(file, options))
        }
    })
}

/// Creates a store in memory, which is lost when it is closed. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_open_memory(
    options: *const mp_options,
    out: *mut *mut mp_store,
) -> mp_status {
    guard(|| {
        let out = place(out, "the place for the store")?;
        // SAFETY: the crate's contract.
        unsafe { open(options, out, Db::in_memory) }
    })
}

/// Closes a store. Everything is durable then, and the store can be opened again at once, here or
/// in another process. The handle is gone whatever is returned. Calls on remaining handles (trees,
/// transactions, cursors, snapshots) return MP_CLOSED. A transaction that is still open has not
/// committed: the next opening undoes it, as after a crash. NULL is allowed. In the child of a
/// fork the call does nothing, and returns MP_IN_USE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_close(store: *mut mp_store) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        if let Some(store) = unsafe { take(store) } {
            store.db.close()?;
        }
        Ok(mp_status::MP_OK)
    })
}

/// Makes everything durable that is committed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_flush(store: *const mp_store) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe { handle(store, "the store") }?.db.flush()?;
        Ok(mp_status::MP_OK)
    })
}

/// Takes a checkpoint: a recovery only reads the log from there on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_checkpoint(store: *const mp_store) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe { handle(store, "the store") }?.db.checkpoint()?;
        Ok(mp_status::MP_OK)
    })
}
