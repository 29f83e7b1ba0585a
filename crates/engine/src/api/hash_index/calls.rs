//! The byte-level calls of a hash index. They are not generic, so that they are compiled in this
//! crate.

use crate::api::context::Inside;
use crate::api::strategy::*;
use crate::btree::{Lookup, WriteCondition};
use crate::page::Scratch;
use crate::pool::Shared;
use crate::store::counted::{DELETE, GET, PUT};
use crate::store::error::Error;

/// A change of one entry.
#[derive(Clone, Copy)]
pub(super) enum Change<'a> {
    Put(&'a [u8]),
    InsertIfAbsent(&'a [u8]),
    Replace(&'a [u8]),
    Swap(Option<&'a [u8]>, Option<&'a [u8]>),
    Remove,
}

/// Returns the name by which transactions and snapshots know an entry.
pub(super) fn name_of(index: &DbHashIndex, key: &[u8]) -> Vec<u8> {
    let mut name = Vec::new();
    index.structure().name_entry(key, &mut name);
    name
}

/// Looks up `key`. In a transaction or a snapshot the value is returned, otherwise it is copied to
/// `scratch`.
pub(super) fn find(
    inside: Option<Inside<'_>>,
    index: &DbHashIndex,
    key: &[u8],
    scratch: &mut Scratch,
) -> Result<Lookup<Vec<u8>>, Error> {
    if let Some(inside) = inside {
        let found = inside.get(index, &name_of(index, key))?;
        return Ok(found.map_or(Lookup::Missing, Lookup::Overflow));
    }
    let is_there = index.read_key(GET, key, |index| index.find(key, Some(scratch)))?;
    Ok(if is_there { Lookup::Inline } else { Lookup::Missing })
}

/// Returns `true` if the key exists.
pub(super) fn contains(
    inside: Option<Inside<'_>>,
    index: &DbHashIndex,
    key: &[u8],
) -> Result<bool, Error> {
    match inside {
        Some(inside) => inside.look(index, &name_of(index, key), &mut |_| ()),
        None => index.read_key(GET, key, |index| index.find(key, None)),
    }
}

/// Returns the value of `key` in place, in its page.
pub(super) fn hold<'t>(index: &'t DbHashIndex, key: &[u8]) -> Result<Option<Shared<'t>>, Error> {
    index.read_key(GET, key, |index| index.hold(key))
}

/// Changes the entry of `key`; the previous value goes to `old`. Returns `true` if there was an
/// entry, or if the condition of the change held.
pub(super) fn change(
    inside: Option<Inside<'_>>,
    index: &DbHashIndex,
    key: &[u8],
    change: Change<'_>,
    old: Option<&mut Vec<u8>>,
) -> Result<bool, Error> {
    if let Some(inside) = inside {
        return change_inside(inside, index, key, change, old);
    }
    let meters = if matches!(change, Change::Remove) { DELETE } else { PUT };
    index.write_key(meters, key, |index| match change {
        Change::Put(value) => index.upsert_into(key, value, old),
        Change::InsertIfAbsent(value) => index.insert(key, value),
        Change::Replace(value) => index.replace(key, value),
        Change::Swap(expected, new) => index.compare_and_swap(key, expected, new),
        Change::Remove => Ok(index.remove_into(key, old)?),
    })
}

fn change_inside(
    inside: Inside<'_>,
    index: &DbHashIndex,
    key: &[u8],
    change: Change<'_>,
    old: Option<&mut Vec<u8>>,
) -> Result<bool, Error> {
    let name = name_of(index, key);
    if let Some(old) = old
        && let Some(value) = inside.peek_to_write(index, &name)?
    {
        *old = value;
    }
    let write = |value, condition| inside.write(index, &name, value, condition);
    match change {
        Change::Put(value) => Ok(write(Some(value), WriteCondition::Always)?.existed),
        Change::InsertIfAbsent(value) => Ok(write(Some(value), WriteCondition::Absent)?.applied),
        Change::Replace(value) => Ok(write(Some(value), WriteCondition::Present)?.applied),
        Change::Remove => Ok(write(None, WriteCondition::Present)?.applied),
        Change::Swap(None, None) => Ok(inside.peek_to_write(index, &name)?.is_none()),
        Change::Swap(None, new) => Ok(write(new, WriteCondition::Absent)?.applied),
        Change::Swap(Some(old), new) => Ok(write(new, WriteCondition::Equals(old))?.applied),
    }
}

/// Lets `f` change the bytes of a value; returns `true` if the key exists.
pub(super) fn update_in_place(
    inside: Option<Inside<'_>>,
    index: &DbHashIndex,
    key: &[u8],
    f: &mut dyn FnMut(&mut [u8]),
) -> Result<bool, Error> {
    match inside {
        Some(inside) => inside.update(index, &name_of(index, key), f),
        None => index
            .write_key(PUT, key, |index| index.update_in_place(key, f).map(|done| done.is_some())),
    }
}

/// Returns the number of committed entries, or `None` if that needs a walk.
pub(super) fn count(index: &DbHashIndex) -> Result<Option<u64>, Error> {
    index.count_quietly(|index| index.len())
}

/// Removes all entries at one moment and frees their pages; returns the number of entries.
pub(super) fn clear(index: &DbHashIndex) -> Result<u64, Error> {
    index.clear_with(DELETE, |index| index.clear())
}
