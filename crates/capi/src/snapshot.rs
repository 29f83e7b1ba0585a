//! Snapshots.

use std::ffi::c_void;

use millpond::Snapshot;
use millpond_handles::Cursor;

use crate::buffer::{buffer, mp_buffer};
use crate::cursor::mp_cursor;
use crate::guard::{drop_handle, guard};
use crate::pointer::{bytes, give, handle, place, set, take};
use crate::range::{key_range, mp_range};
use crate::status::mp_status;
use crate::store::mp_store;
use crate::tree::mp_tree;

/// A read-only view of the state committed at one moment. Any number of threads may use it at once.
/// A snapshot and a writer never wait for each other. The store keeps the snapshot's data until
/// the snapshot ends.
pub struct mp_snapshot {
    snapshot: Snapshot,
}

/// Begins a snapshot of the state committed now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_snapshot_begin(
    store: *const mp_store,
    out: *mut *mut mp_snapshot,
) -> mp_status {
    guard(|| {
        let out = place(out, "the place for the snapshot")?;
        // SAFETY: the crate's contract; `place` returned it.
        unsafe {
            let snapshot = handle(store, "the store")?.db.snapshot()?;
            give(out, mp_snapshot { snapshot });
        }
        Ok(mp_status::MP_OK)
    })
}

/// Ends a snapshot; its cursors continue. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_snapshot_end(snapshot: *mut mp_snapshot) {
    // SAFETY: the crate's contract.
    drop_handle(unsafe { take(snapshot) });
}

/// Copies the value of a key in a snapshot. If there is none, returns MP_NOT_FOUND and leaves the
/// buffer unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_snapshot_get(
    snapshot: *const mp_snapshot,
    tree: *const mp_tree,
    key_data: *const c_void,
    key_len: usize,
    out: *mut mp_buffer,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        let (snapshot, tree, key, out) = unsafe {
            (
                handle(snapshot, "the snapshot")?,
                handle(tree, "the tree")?,
                bytes(key_data, key_len, "the key")?,
                buffer(out, "the buffer")?,
            )
        };
        let tree = snapshot.snapshot.tree(&tree.tree);
        let there = tree.get_with(key, |value| out.set(value))?;
        Ok(if there.is_some() { mp_status::MP_OK } else { mp_status::MP_NOT_FOUND })
    })
}

/// Counts the keys of a range in a snapshot; `range` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_snapshot_count(
    snapshot: *const mp_snapshot,
    tree: *const mp_tree,
    range: *const mp_range,
    count: *mut u64,
) -> mp_status {
    guard(|| {
        let count = place(count, "the place for the count")?;
        // SAFETY: the crate's contract; `place` returned it.
        unsafe {
            let (snapshot, tree) = (handle(snapshot, "the snapshot")?, handle(tree, "the tree")?);
            set(count, snapshot.snapshot.tree(&tree.tree).count(key_range(range)?)?);
        }
        Ok(mp_status::MP_OK)
    })
}

/// Opens a cursor over the entries in a snapshot; `range` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_snapshot_cursor(
    snapshot: *const mp_snapshot,
    tree: *const mp_tree,
    range: *const mp_range,
    out: *mut *mut mp_cursor,
) -> mp_status {
    guard(|| {
        let out = place(out, "the place for the cursor")?;
        // SAFETY: the crate's contract; `place` returned it.
        unsafe {
            let (snapshot, tree) = (handle(snapshot, "the snapshot")?, handle(tree, "the tree")?);
            let range = key_range(range)?;
            let cursor = Cursor::in_snapshot(&snapshot.snapshot, &tree.tree, range);
            give(out, mp_cursor { cursor });
        }
        Ok(mp_status::MP_OK)
    })
}
