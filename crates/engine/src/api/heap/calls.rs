//! The byte-level calls of a heap. They are not generic, so that they are compiled in this crate.

use crate::api::context::Inside;
use crate::api::strategy::*;
use crate::btree::{Lookup, WriteCondition};
use crate::heap::RecordId;
use crate::page::Scratch;
use crate::store::counted::{DELETE, GET, PUT};
use crate::store::error::Error;

/// Looks up a record. In a transaction or a snapshot the record is returned, otherwise it is copied
/// to `scratch`.
pub(super) fn find(
    inside: Option<Inside<'_>>,
    heap: &DbHeap,
    id: RecordId,
    scratch: &mut Scratch,
) -> Result<Lookup<Vec<u8>>, Error> {
    if let Some(inside) = inside {
        let found = inside.get(heap, &id.to_key())?;
        return Ok(found.map_or(Lookup::Missing, Lookup::Overflow));
    }
    let is_there = heap.read_record(GET, id, |heap| heap.get_scratch(id, scratch))?;
    Ok(if is_there { Lookup::Inline } else { Lookup::Missing })
}

/// Returns `true` if the record exists.
pub(super) fn contains(
    inside: Option<Inside<'_>>,
    heap: &DbHeap,
    id: RecordId,
) -> Result<bool, Error> {
    match inside {
        Some(inside) => inside.look(heap, &id.to_key(), &mut |_| ()),
        None => heap.read_record(GET, id, |heap| heap.contains(id)),
    }
}

/// Appends a record; returns its id.
pub(super) fn append(
    inside: Option<Inside<'_>>,
    heap: &DbHeap,
    record: &[u8],
) -> Result<RecordId, Error> {
    match inside {
        Some(inside) => inside.append(heap, record),
        None => heap.append(PUT, record),
    }
}

/// Replaces a record; returns `true` if it existed.
pub(super) fn update(
    inside: Option<Inside<'_>>,
    heap: &DbHeap,
    id: RecordId,
    record: &[u8],
) -> Result<bool, Error> {
    let Some(inside) = inside else {
        return heap.write_record(PUT, id, |heap| heap.update(id, record));
    };
    Ok(inside.write(heap, &id.to_key(), Some(record), WriteCondition::Present)?.applied)
}

/// Lets `f` change the bytes of a record; returns `true` if the record exists.
pub(super) fn update_in_place(
    inside: Option<Inside<'_>>,
    heap: &DbHeap,
    id: RecordId,
    f: &mut dyn FnMut(&mut [u8]),
) -> Result<bool, Error> {
    match inside {
        Some(inside) => inside.update(heap, &id.to_key(), f),
        None => heap
            .write_record(PUT, id, |heap| heap.update_in_place(id, f).map(|done| done.is_some())),
    }
}

/// Removes a record and returns it.
pub(super) fn remove(
    inside: Option<Inside<'_>>,
    heap: &DbHeap,
    id: RecordId,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(inside) = inside else {
        return heap.write_record(DELETE, id, |heap| heap.remove_returning(id));
    };
    let old = inside.peek_to_write(heap, &id.to_key())?;
    if old.is_some() {
        inside.write(heap, &id.to_key(), None, WriteCondition::Present)?;
    }
    Ok(old)
}

/// Returns the number of committed records, or `None` if that needs a walk.
pub(super) fn count(heap: &DbHeap) -> Result<Option<u64>, Error> {
    heap.count_quietly(|heap| heap.len())
}

/// Removes all records at one moment and frees their pages.
pub(super) fn clear(heap: &DbHeap) -> Result<(), Error> {
    heap.clear_with(DELETE, |heap| heap.clear())
}
