//! Reads and writes of entries: in a transaction, or with NULL on their own.

use std::ffi::c_void;

use crate::buffer::{buffer, mp_buffer};
use crate::guard::guard;
use crate::pointer::{bytes, handle, place, set};
use crate::range::{key_range, mp_range};
use crate::status::{Failure, mp_status};
use crate::tree::mp_tree;
use crate::txn::{at, mp_txn};

/// Returns MP_OK or MP_NOT_FOUND.
fn found(is_there: bool) -> mp_status {
    if is_there { mp_status::MP_OK } else { mp_status::MP_NOT_FOUND }
}

/// # Safety
/// Same as [`bytes`].
unsafe fn key<'a>(key: *const c_void, len: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller's promise.
    unsafe { bytes(key, len, "the key") }
}

/// # Safety
/// Same as [`bytes`].
unsafe fn value<'a>(value: *const c_void, len: usize) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller's promise.
    unsafe { bytes(value, len, "the value") }
}

/// Copies the value of a key. If there is none, returns MP_NOT_FOUND and leaves the buffer
/// unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_get(
    tree: *const mp_tree,
    txn: *const mp_txn,
    key_data: *const c_void,
    key_len: usize,
    out: *mut mp_buffer,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe {
            let (out, key) = (buffer(out, "the buffer")?, key(key_data, key_len)?);
            let out = std::cell::RefCell::new(out);
            let keep = |value: &[u8]| out.borrow_mut().set(value);
            let there = at(tree, txn, |t| t.get_with(key, keep), |t| t.get_with(key, keep))?;
            Ok(found(there.is_some()))
        }
    })
}

/// Like mp_get within a transaction, for a key to be written: locks it for writing at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_get_for_update(
    tree: *const mp_tree,
    txn: *const mp_txn,
    key_data: *const c_void,
    key_len: usize,
    out: *mut mp_buffer,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe {
            let (out, key) = (buffer(out, "the buffer")?, key(key_data, key_len)?);
            let (tree, txn) = (handle(tree, "the tree")?, handle(txn, "the transaction")?);
            let there = txn.tx.call(|txn| txn.tree(&tree.tree).get_for_update(key))?;
            if let Some(value) = &there {
                out.set(value);
            }
            Ok(found(there.is_some()))
        }
    })
}

/// Returns MP_OK if the key exists, otherwise MP_NOT_FOUND.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_contains(
    tree: *const mp_tree,
    txn: *const mp_txn,
    key_data: *const c_void,
    key_len: usize,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe {
            let key = key(key_data, key_len)?;
            Ok(found(at(tree, txn, |tree| tree.contains(key), |tree| tree.contains(key))?))
        }
    })
}

/// Sets the value of a key, whether it exists or not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_put(
    tree: *const mp_tree,
    txn: *const mp_txn,
    key_data: *const c_void,
    key_len: usize,
    value_data: *const c_void,
    value_len: usize,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe {
            let (key, value) = (key(key_data, key_len)?, value(value_data, value_len)?);
            at(tree, txn, |tree| tree.put(key, value), |tree| tree.put(key, value))?;
        }
        Ok(mp_status::MP_OK)
    })
}

/// Sets the value of a key if it does not exist. `done` receives true if it did so, and may be
/// NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_insert_if_absent(
    tree: *const mp_tree,
    txn: *const mp_txn,
    key_data: *const c_void,
    key_len: usize,
    value_data: *const c_void,
    value_len: usize,
    done: *mut bool,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe {
            let (key, value) = (key(key_data, key_len)?, value(value_data, value_len)?);
            let is_done = at(
                tree,
                txn,
                |tree| tree.insert_if_absent(key, value),
                |tree| tree.insert_if_absent(key, value),
            )?;
            if !done.is_null() {
                set(done, is_done);
            }
        }
        Ok(mp_status::MP_OK)
    })
}

/// Replaces the value of a key if it exists. `done` receives true if it did so, and may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_replace(
    tree: *const mp_tree,
    txn: *const mp_txn,
    key_data: *const c_void,
    key_len: usize,
    value_data: *const c_void,
    value_len: usize,
    done: *mut bool,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe {
            let (key, value) = (key(key_data, key_len)?, value(value_data, value_len)?);
            let is_done =
                at(tree, txn, |tree| tree.replace(key, value), |tree| tree.replace(key, value))?;
            if !done.is_null() {
                set(done, is_done);
            }
        }
        Ok(mp_status::MP_OK)
    })
}

/// Bytes. A NULL pointer to a slice means no value.
#[repr(C)]
pub struct mp_slice {
    /// The first byte.
    pub data: *const c_void,
    /// Number of bytes.
    pub len: usize,
}

/// # Safety
/// `slice` is null, or points to a slice whose bytes may be read.
unsafe fn optional<'a>(slice: *const mp_slice, what: &str) -> Result<Option<&'a [u8]>, Failure> {
    // SAFETY: the caller's promise.
    match unsafe { slice.as_ref() } {
        None => Ok(None),
        // SAFETY: the caller's promise.
        Some(slice) => unsafe { bytes(slice.data, slice.len, what) }.map(Some),
    }
}

/// Sets the value of a key to `new_value` if it is `expected`, where NULL means no entry. `done`
/// receives true if it did so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_compare_and_swap(
    tree: *const mp_tree,
    txn: *const mp_txn,
    key_data: *const c_void,
    key_len: usize,
    expected: *const mp_slice,
    new_value: *const mp_slice,
    done: *mut bool,
) -> mp_status {
    guard(|| {
        let done = place(done, "the place for the outcome")?;
        // SAFETY: the crate's contract.
        unsafe {
            let key = key(key_data, key_len)?;
            let old = optional(expected, "the expected value")?;
            let new = optional(new_value, "the new value")?;
            let swapped = at(
                tree,
                txn,
                |tree| tree.compare_and_swap(key, old, new),
                |tree| tree.compare_and_swap(key, old, new),
            )?;
            set(done, swapped);
        }
        Ok(mp_status::MP_OK)
    })
}

/// Removes a key: MP_OK, or MP_NOT_FOUND if there was none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_delete(
    tree: *const mp_tree,
    txn: *const mp_txn,
    key_data: *const c_void,
    key_len: usize,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe {
            let key = key(key_data, key_len)?;
            Ok(found(at(tree, txn, |tree| tree.delete(key), |tree| tree.delete(key))?))
        }
    })
}

/// Removes the keys of a range. `count` receives their number, and may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_delete_range(
    tree: *const mp_tree,
    txn: *const mp_txn,
    range: *const mp_range,
    count: *mut u64,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe {
            let range = key_range(range)?;
            let removed = at(
                tree,
                txn,
                |tree| tree.remove_range(range.clone()),
                |tree| tree.remove_range(range.clone()),
            )?;
            if !count.is_null() {
                set(count, removed);
            }
        }
        Ok(mp_status::MP_OK)
    })
}

/// Counts the keys of a range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_count(
    tree: *const mp_tree,
    txn: *const mp_txn,
    range: *const mp_range,
    count: *mut u64,
) -> mp_status {
    guard(|| {
        let count = place(count, "the place for the count")?;
        // SAFETY: the crate's contract.
        unsafe {
            let range = key_range(range)?;
            let counted =
                at(tree, txn, |tree| tree.count(range.clone()), |tree| tree.count(range.clone()))?;
            set(count, counted);
        }
        Ok(mp_status::MP_OK)
    })
}

/// # Safety
/// See the functions that use it.
unsafe fn pop(
    tree: *const mp_tree,
    txn: *const mp_txn,
    first: bool,
    key_out: *mut mp_buffer,
    value_out: *mut mp_buffer,
) -> mp_status {
    guard(|| {
        if key_out == value_out {
            return Err(Failure::Misuse("key and value need a buffer each".to_string()));
        }
        // SAFETY: the crate's contract.
        unsafe {
            let key_out = buffer(key_out, "the buffer for the key")?;
            let value_out = buffer(value_out, "the buffer for the value")?;
            let popped = match first {
                true => at(tree, txn, |tree| tree.pop_first(), |tree| tree.pop_first()),
                false => at(tree, txn, |tree| tree.pop_last(), |tree| tree.pop_last()),
            }?;
            if let Some((key, value)) = &popped {
                key_out.set(key);
                value_out.set(value);
            }
            Ok(found(popped.is_some()))
        }
    })
}

/// Removes and returns the first entry, or returns MP_NOT_FOUND in an empty tree.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_pop_first(
    tree: *const mp_tree,
    txn: *const mp_txn,
    key_out: *mut mp_buffer,
    value_out: *mut mp_buffer,
) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { pop(tree, txn, true, key_out, value_out) }
}

/// Removes and returns the last entry, or returns MP_NOT_FOUND in an empty tree.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_pop_last(
    tree: *const mp_tree,
    txn: *const mp_txn,
    key_out: *mut mp_buffer,
    value_out: *mut mp_buffer,
) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { pop(tree, txn, false, key_out, value_out) }
}
