//! Trees, and the list of a store's trees.

use std::ffi::{c_char, c_void};

use millpond::{RawTree, Structure};

use crate::guard::{drop_handle, guard};
use crate::pointer::{give, handle, place, string, take};
use crate::status::{Failure, mp_status};
use crate::store::mp_store;

/// Opens the tree, and creates it if it does not exist.
pub const MP_OPEN_OR_CREATE: i32 = 0;
/// Opens the tree: MP_NO_SUCH if it does not exist.
pub const MP_OPEN: i32 = 1;
/// Creates the tree: MP_EXISTS if it exists.
pub const MP_CREATE: i32 = 2;

/// A tree: an ordered map of byte strings. Any number of threads may use it at once. It keeps the
/// store open.
pub struct mp_tree {
    pub(crate) tree: RawTree,
}

/// Opens the tree called `name`; `how` is MP_OPEN_OR_CREATE, MP_OPEN or MP_CREATE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_tree_open(
    store: *const mp_store,
    name: *const c_char,
    how: i32,
    out: *mut *mut mp_tree,
) -> mp_status {
    guard(|| {
        let out = place(out, "the place for the tree")?;
        // SAFETY: the crate's contract.
        let (store, name) = unsafe { (handle(store, "the store")?, string(name, "the name")?) };
        let tree = match how {
            MP_OPEN_OR_CREATE => store.db.raw_tree(name)?,
            MP_OPEN => store.db.open_tree(name)?,
            MP_CREATE => store.db.create_tree(name)?,
            other => return Err(Failure::Misuse(format!("{other} is no way to open a tree"))),
        };
        // SAFETY: `place` returned it.
        unsafe { give(out, mp_tree { tree }) };
        Ok(mp_status::MP_OK)
    })
}

/// Closes a tree. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_tree_close(tree: *mut mp_tree) {
    // SAFETY: the crate's contract.
    drop_handle(unsafe { take(tree) });
}

/// Removes the tree called `name` with all its entries. Returns MP_IN_USE if handles of it are
/// open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_tree_drop(store: *const mp_store, name: *const c_char) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        let (store, name) = unsafe { (handle(store, "the store")?, string(name, "the name")?) };
        store.db.drop_tree(name)?;
        Ok(mp_status::MP_OK)
    })
}

/// Calls `visit` with the name of each tree. The name is not zero-terminated, and valid during the
/// call only. If `visit` returns anything but 0, the call stops and returns MP_CANCELLED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_tree_names(
    store: *const mp_store,
    visit: Option<unsafe extern "C" fn(name: *const c_char, len: usize, user: *mut c_void) -> i32>,
    user: *mut c_void,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        let store = unsafe { handle(store, "the store") }?;
        let visit = visit.ok_or_else(|| Failure::Misuse("the callback is NULL".to_string()))?;
        for (name, entry) in store.db.trees()? {
            if entry.structure != Structure::Tree {
                continue;
            }
            // SAFETY: the caller's function, with the caller's pointer.
            if unsafe { visit(name.as_ptr().cast(), name.len(), user) } != 0 {
                return Ok(mp_status::MP_CANCELLED);
            }
        }
        Ok(mp_status::MP_OK)
    })
}
