//! Cursors.

use std::ffi::c_void;

use millpond_handles::{Cursor, Fault};

use crate::guard::{drop_handle, guard};
use crate::pointer::{bytes, exclusive, give, handle, place, set, take};
use crate::range::{key_range, mp_range};
use crate::status::mp_status;
use crate::tree::mp_tree;
use crate::txn::mp_txn;

/// A position among the entries of a tree within a range, which seeks and moves both ways. One
/// thread at a time may use it.
pub struct mp_cursor {
    pub(crate) cursor: Cursor,
}

/// Opens a cursor over the entries that a transaction sees, or, with NULL instead, over the
/// committed ones. `range` may be NULL for all keys. The cursor is on no entry yet. Close it with
/// mp_cursor_close, before or after the transaction's end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_cursor_open(
    tree: *const mp_tree,
    txn: *const mp_txn,
    range: *const mp_range,
    out: *mut *mut mp_cursor,
) -> mp_status {
    guard(|| {
        let out = place(out, "the place for the cursor")?;
        // SAFETY: the crate's contract; `place` returned it.
        unsafe {
            let (tree, range) = (handle(tree, "the tree")?, key_range(range)?);
            let cursor = match txn.as_ref() {
                None => Cursor::alone(&tree.tree, range),
                Some(txn) => txn.tx.cursor(&tree.tree, range)?,
            };
            give(out, mp_cursor { cursor });
        }
        Ok(mp_status::MP_OK)
    })
}

/// Closes a cursor. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_cursor_close(cursor: *mut mp_cursor) {
    // SAFETY: the crate's contract.
    drop_handle(unsafe { take(cursor) });
}

/// # Safety
/// Same as [`exclusive`].
unsafe fn move_by(
    cursor: *mut mp_cursor,
    how: impl FnOnce(&mut Cursor) -> Result<bool, Fault>,
) -> mp_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let cursor = unsafe { exclusive(cursor, "the cursor") }?;
        let is_on = how(&mut cursor.cursor)?;
        Ok(if is_on { mp_status::MP_OK } else { mp_status::MP_NOT_FOUND })
    })
}

/// Moves to the first entry: MP_OK or MP_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_cursor_first(cursor: *mut mp_cursor) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { move_by(cursor, Cursor::first) }
}

/// Moves to the last entry: MP_OK or MP_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_cursor_last(cursor: *mut mp_cursor) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { move_by(cursor, Cursor::last) }
}

/// Moves to the entry behind the current or last one; a new cursor moves to the first one. On
/// MP_NOT_FOUND the cursor keeps its position, and a later call may find more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_cursor_next(cursor: *mut mp_cursor) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { move_by(cursor, Cursor::next) }
}

/// Moves to the entry before the current or last one; a new cursor moves to the last one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_cursor_prev(cursor: *mut mp_cursor) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { move_by(cursor, Cursor::prev) }
}

/// Moves to the first entry at or above a key: MP_OK or MP_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_cursor_seek(
    cursor: *mut mp_cursor,
    key_data: *const c_void,
    key_len: usize,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        let key = unsafe { bytes(key_data, key_len, "the key") }?;
        // SAFETY: the crate's contract.
        Ok(unsafe { move_by(cursor, |cursor| cursor.seek(key)) })
    })
}

/// Moves to the last entry at or below a key: MP_OK or MP_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_cursor_seek_back(
    cursor: *mut mp_cursor,
    key_data: *const c_void,
    key_len: usize,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        let key = unsafe { bytes(key_data, key_len, "the key") }?;
        // SAFETY: the crate's contract.
        Ok(unsafe { move_by(cursor, |cursor| cursor.seek_back(key)) })
    })
}

/// Returns the cursor's current entry. Its bytes stay valid until the cursor's next call. Any of
/// the places may be NULL. If there is no current entry, returns MP_NOT_FOUND and leaves the places
/// unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_cursor_entry(
    cursor: *const mp_cursor,
    key_data: *mut *const c_void,
    key_len: *mut usize,
    value_data: *mut *const c_void,
    value_len: *mut usize,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        let cursor = unsafe { handle(cursor, "the cursor") }?;
        let Some((key, value)) = cursor.cursor.entry() else {
            return Ok(mp_status::MP_NOT_FOUND);
        };
        let parts = [(key, key_data, key_len), (value, value_data, value_len)];
        for (bytes, data, len) in parts {
            // SAFETY: the crate's contract: not null, it may be written.
            unsafe {
                if !data.is_null() {
                    set(data, bytes.as_ptr().cast());
                }
                if !len.is_null() {
                    set(len, bytes.len());
                }
            }
        }
        Ok(mp_status::MP_OK)
    })
}
