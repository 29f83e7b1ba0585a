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

/// Opens the store at `path`, or creates one there; one that was not closed is recovered.
/// `options` may be NULL. One process at a time has a store open: MP_IN_USE otherwise.
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

/// Makes a store in memory, which is lost when it is closed. `options` may be NULL.
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

/// Closes a store: everything is durable then, and the store can be opened again at once, here or
/// in another process. The handle is gone whatever is returned. Of other handles that are left
/// (trees, transactions, cursors, snapshots), calls return MP_CLOSED. A transaction that is left
/// has not committed: the next opening undoes it, as after a crash. NULL is no error. In the child
/// of a fork nothing is done, and MP_IN_USE returned.
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

/// Writes a checkpoint: a recovery has to read only what comes after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_checkpoint(store: *const mp_store) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe { handle(store, "the store") }?.db.checkpoint()?;
        Ok(mp_status::MP_OK)
    })
}
