//! The context in which a tree is used: by itself, in a transaction, in a snapshot.

use std::sync::Arc;

use millpond::{KeyRange, RawTree, Snapshot};
use millpond_base::PastPoison;
use millpond_handles::{Cursor, Fault, Transaction};

use crate::core::Handle;
use crate::error::Failure;
use crate::value::Types;

/// A tree, where it is used.
#[derive(Clone)]
pub(crate) struct TreeInContext {
    pub(crate) tree: Handle<RawTree>,
    pub(crate) types: Arc<Types>,
    pub(crate) within: Within,
}

/// The context of a tree's calls.
#[derive(Clone)]
pub(crate) enum Within {
    Alone,
    Txn(Handle<Transaction>),
    Snapshot(Handle<Snapshot>),
}

/// Makes a reading call of a tree, wherever it is.
macro_rules! read {
    ($place:expr, |$tree:ident| $call:expr) => {{
        let place = $place;
        place.tree.with(|raw| match &place.within {
            $crate::place::Within::Alone => {
                let $tree = raw;
                Ok($call?)
            }
            $crate::place::Within::Txn(tx) => tx.with(|tx| {
                Ok(tx.call(|txn| {
                    let $tree = &txn.tree(raw);
                    $call
                })?)
            }),
            $crate::place::Within::Snapshot(snapshot) => snapshot.with(|snapshot| {
                let $tree = &snapshot.tree(raw);
                Ok($call?)
            }),
        })
    }};
}

/// Makes a writing call of a tree, which a snapshot refuses.
macro_rules! write {
    ($place:expr, |$tree:ident| $call:expr) => {{
        let place = $place;
        place.tree.with(|raw| match &place.within {
            $crate::place::Within::Alone => {
                let $tree = raw;
                Ok($call?)
            }
            $crate::place::Within::Txn(tx) => tx.with(|tx| {
                Ok(tx.call(|txn| {
                    let $tree = &txn.tree(raw);
                    $call
                })?)
            }),
            $crate::place::Within::Snapshot(_) => Err(millpond::Error::ReadOnly.into()),
        })
    }};
}

pub(crate) use {read, write};

impl TreeInContext {
    /// A cursor of what is here within a range.
    pub(crate) fn cursor(&self, range: KeyRange) -> Result<Cursor, Failure> {
        self.tree.with(|raw| match &self.within {
            Within::Alone => Ok(Cursor::alone(raw, range)),
            Within::Txn(tx) => tx.with(|tx| Ok(tx.cursor(raw, range)?)),
            Within::Snapshot(snapshot) => {
                snapshot.with(|snapshot| Ok(Cursor::in_snapshot(snapshot, raw, range)))
            }
        })
    }

    /// What a call is made of that only transactions have.
    pub(crate) fn get_for_update(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.tree.with(|raw| match &self.within {
            Within::Txn(tx) => tx.with(|tx| Ok(tx.call(|txn| txn.tree(raw).get_for_update(key))?)),
            _ => Err(Failure::NoTransaction),
        })
    }

    /// The first entry, or the last one.
    pub(crate) fn end(&self, first: bool) -> Result<Option<Entry>, Failure> {
        // One call: the store must not be closed while the cursor lives.
        self.tree.with(|_| {
            let mut cursor = self.cursor(KeyRange::ALL)?;
            let found = if first { cursor.first()? } else { cursor.last()? };
            Ok(cursor.entry().filter(|_| found).map(|(key, value)| (key.to_vec(), value.to_vec())))
        })
    }
}

/// A key and its value.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// A cursor belongs to a store by the tree that it reads: its calls are the store's.
pub(crate) fn cursor_of(
    place: &TreeInContext,
    range: KeyRange,
) -> Result<Handle<Reading>, Failure> {
    Handle::make(place.tree.core(), "cursor", |_| {
        Ok(Reading(std::sync::Mutex::new(place.cursor(range)?)))
    })
}

/// A cursor that several threads may call, one after the other.
pub(crate) struct Reading(std::sync::Mutex<Cursor>);

impl Reading {
    /// Forgets what the engine has read ahead.
    pub(crate) fn forget_ahead(&self) {
        self.0.lock().past_poison().forget_ahead();
    }

    /// Makes a call of the cursor; `move_on` says whether it is on an entry then, which is
    /// returned.
    pub(crate) fn entry(
        &self,
        move_on: impl FnOnce(&mut Cursor) -> Result<bool, Fault>,
    ) -> Result<Option<Entry>, Failure> {
        let mut cursor = self.0.lock().past_poison();
        let found = move_on(&mut cursor)?;
        Ok(cursor.entry().filter(|_| found).map(|(key, value)| (key.to_vec(), value.to_vec())))
    }
}
