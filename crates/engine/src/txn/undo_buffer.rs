//! The undo buffer of a transaction: its changes so far, to be undone, and to be put as versions
//! for snapshots.
//!
//! A transaction learns of a snapshot epoch (`versions/version_store.rs`) at its next call. From
//! then on it puts the before image of an entry before its first change of that entry. The before
//! images of its earlier changes are put by the thread that began the epoch, or by the transaction
//! itself when it ends, whichever comes first. Both hold the one latch that each of the
//! transaction's calls takes.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::btree::{Before, Detached};
use crate::pool::PoolError;
use crate::pool::mini_transaction::RowCounts;
use crate::txn::before_image::BeforeImage;
use crate::txn::commit_stamp::CommitStamp;
use crate::txn::error::TxnError;
use crate::txn::structure::{Keyed, LargeValues, Structure};
use crate::txn::trees::{StructureOf, Trees, TreesBy};
use crate::txn::undo_list::UndoList;
use crate::txn::undo_list::room::UndoRoom;
use crate::txn::versions::{Image, VersionStore};

/// Minimum bytes of keys and values that one pass over an undo list covers.
const AT_ONCE: usize = 1 << 20;
/// Bytes of memory for each key, besides the key.
const KNOWN_BYTES: usize = 64;

/// Net number of entries that a transaction added to each tree, by the owner ids of the trees;
/// there are few.
#[derive(Default)]
pub(super) struct RowChanges(Vec<(u32, i64)>);

impl RowChanges {
    /// Adds `rows` to the number of entries of the tree `owner`.
    #[inline]
    pub(super) fn count(&mut self, owner: u32, rows: i8) {
        if rows != 0 {
            self.add(owner, rows.into());
        }
    }

    fn add(&mut self, owner: u32, rows: i64) {
        // The last one first: sequences of writes go to one tree.
        match self.0.iter_mut().rfind(|(tree, _)| *tree == owner) {
            Some((_, sum)) => *sum += rows,
            None => self.0.push((owner, rows)),
        }
    }

    /// Returns all trees with their changes.
    pub(super) fn all(&self) -> &[(u32, i64)] {
        &self.0
    }

    /// Clears the changes.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The undo buffer of one transaction.
#[derive(Default)]
pub(super) struct UndoBuffer {
    pub(super) undo: UndoList,
    /// Net number of entries added by the changes that are not undone.
    pub(super) rows: RowChanges,
    /// Set if it removed records whose slots are kept until its end.
    pub(super) has_removed: bool,
    /// The commit stamp of its versions.
    stamp: Option<Arc<CommitStamp>>,
    /// The last snapshot epoch for which the versions of all its changes were put.
    snapshot_epoch: u64,
    is_over: bool,
}

/// A read value, or the reason why it is unreadable.
type MaybeRead<T> = Result<T, Arc<PoolError>>;

/// Turns the error of an unreadable page into a result that is stored with the version, so that
/// only reading that entry fails.
fn kept<T>(read: Result<T, TxnError>) -> Result<MaybeRead<T>, TxnError> {
    match read {
        Err(TxnError::Pool(error)) if error.is_about_a_page() => Ok(Err(Arc::new(error))),
        other => other.map(Ok),
    }
}

/// Undoes a change in a copy of its entry.
fn apply(
    entry: &mut MaybeRead<Option<Vec<u8>>>,
    before: &Before<'_>,
    large: Option<MaybeRead<Vec<u8>>>,
) {
    match before {
        Before::Absent => *entry = Ok(None),
        Before::Value(value) => *entry = Ok(Some(value.to_vec())),
        Before::Large(_) => *entry = large.transpose(),
        Before::Part { offset, bytes } => {
            let end = offset.saturating_add(bytes.len());
            let value = entry.as_mut().ok().and_then(Option::as_mut);
            if let Some(place) = value.and_then(|value| value.get_mut(*offset..end)) {
                place.copy_from_slice(bytes);
            }
        }
    }
}

/// Puts a version of `key`.
fn put(
    versions: &VersionStore,
    stamp: &Arc<CommitStamp>,
    owner: u32,
    key: &[u8],
    entry: &MaybeRead<Option<Vec<u8>>>,
) {
    match entry {
        Ok(entry) => versions.put(owner, key, stamp, entry.as_deref().map(Image::Bytes)),
        Err(error) => {
            let unreadable = BeforeImage::unreadable(error.clone());
            versions.put(owner, key, stamp, Some(Image::Apart(&unreadable)));
        }
    }
}

/// Returns the before image of a detached large value: in the spill file, if there is one.
fn detached(
    versions: &VersionStore,
    trees: &mut dyn Trees,
    owner: u32,
    large: &Detached,
) -> Result<Option<BeforeImage>, TxnError> {
    if let Some(file) = versions.file()
        && let Some(before_image) =
            BeforeImage::spilled(file, large.len(), &mut DetachedReader::new(trees, owner, large))
    {
        return Ok(Some(before_image));
    }
    Ok(Some(BeforeImage::Here(trees.large(owner, large)?.into())))
}

/// Bytes of a detached value per read.
const CHUNK: usize = 64 << 10;

/// Reads a detached large value.
struct DetachedReader<'t> {
    trees: &'t mut dyn Trees,
    owner: u32,
    value: &'t Detached,
    at: u64,
    chunk: Vec<u8>,
    used: usize,
}

impl<'t> DetachedReader<'t> {
    fn new(trees: &'t mut dyn Trees, owner: u32, value: &'t Detached) -> DetachedReader<'t> {
        DetachedReader { trees, owner, value, at: 0, chunk: Vec::new(), used: 0 }
    }
}

impl io::Read for DetachedReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.used == self.chunk.len() {
            let left = self.value.len().saturating_sub(self.at);
            let max = left.min(CHUNK as u64) as usize;
            if max == 0 {
                return Ok(0);
            }
            let read = self.trees.large_from(self.owner, self.value, self.at, max, &mut self.chunk);
            self.used = 0;
            if let Err(error) = read {
                self.chunk.clear();
                return Err(io::Error::other(error));
            }
            self.at += self.chunk.len() as u64;
        }
        let bytes = self.chunk.get(self.used..).unwrap_or_default().read(out)?;
        self.used += bytes;
        Ok(bytes)
    }
}

/// Puts versions for the changes from number `from` on, until that takes much memory. Returns the
/// number of the first change that is left.
///
/// The version of an entry is its before image in the first change. A change that replaced a whole
/// value has that image. A change that replaced a part of a value has only that part; the rest
/// comes from undoing all later changes in a copy of the present value. So with updates in place,
/// this takes a pass over the rest of the list for each such share of memory.
fn put_some(
    undo: &UndoList,
    from: usize,
    versions: &VersionStore,
    stamp: &Arc<CommitStamp>,
    trees: &mut dyn Trees,
) -> Result<usize, TxnError> {
    let (mut to, mut bytes, at_once) = (from, 0, AT_ONCE.max(versions.limit() / 4));
    let (mut known, mut parts) = (HashSet::new(), HashMap::<Vec<u8>, MaybeRead<_>>::new());
    let mut name = Vec::new();
    undo.each(from, true, |(owner, key, before, large)| {
        to += 1;
        name_entry(&mut name, owner, key);
        if known.contains(&name) {
            return Ok(ControlFlow::Continue(()));
        }
        known.insert(name.clone());
        bytes += KNOWN_BYTES + key.len();
        match before {
            Before::Absent => versions.put(owner, key, stamp, None),
            Before::Value(value) => versions.put(owner, key, stamp, Some(Image::Bytes(value))),
            Before::Large(_) => {
                let before_image = match large {
                    Some(large) => kept(detached(versions, trees, owner, large))?,
                    None => Ok(None),
                };
                let before_image =
                    before_image.unwrap_or_else(|error| Some(BeforeImage::unreadable(error)));
                versions.put(owner, key, stamp, before_image.as_ref().map(Image::Apart));
            }
            Before::Part { .. } => {
                let now = kept(trees.value(owner, key))?;
                let value = now.as_ref().ok().and_then(Option::as_ref);
                bytes += KNOWN_BYTES + value.map_or(0, Vec::len);
                parts.insert(name.clone(), now);
            }
        }
        Ok(if bytes > at_once { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if !parts.is_empty() {
        undo.each(from, false, |(owner, key, before, large)| {
            name_entry(&mut name, owner, key);
            if let Some(entry) = parts.get_mut(&name) {
                let large = large.map(|large| kept(trees.large(owner, large))).transpose()?;
                apply(entry, &before, large);
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
    for (name, entry) in &parts {
        if let Some((owner, key)) = name.split_first_chunk() {
            put(versions, stamp, u32::from_le_bytes(*owner), key, entry);
        }
    }
    Ok(to)
}

/// Encodes a tree's owner id and a key.
fn name_entry(name: &mut Vec<u8>, owner: u32, key: &[u8]) {
    name.clear();
    name.extend_from_slice(&owner.to_le_bytes());
    name.extend_from_slice(key);
}

impl UndoBuffer {
    /// Prepares it for the next transaction.
    pub(super) fn clear(&mut self) {
        self.undo.clear();
        self.rows.clear();
        (self.stamp, self.snapshot_epoch) = (None, 0);
        (self.has_removed, self.is_over) = (false, false);
    }

    /// Reserves room for the undo record of a change of `key`'s entry, and puts its version if
    /// there are snapshots.
    ///
    /// # Errors
    /// There is no room, or the memory behind the tree failed.
    #[inline]
    pub(super) fn before_write<K: Keyed + ?Sized>(
        &mut self,
        versions: &VersionStore,
        room: &Arc<UndoRoom>,
        structure: &K,
        key: &[u8],
    ) -> Result<(), TxnError> {
        self.undo.make_room(room)?;
        match versions.snapshot_epoch() {
            None => Ok(()),
            Some(snapshot_epoch) => {
                self.put_one(versions, snapshot_epoch, structure.structure(), key)
            }
        }
    }

    #[cold]
    fn put_one(
        &mut self,
        versions: &VersionStore,
        snapshot_epoch: u64,
        structure: &dyn Structure,
        key: &[u8],
    ) -> Result<(), TxnError> {
        let owner = structure.owner();
        let stamp = self.stamp.get_or_insert_with(CommitStamp::new);
        if !versions.wants(owner, key, stamp) {
            return Ok(());
        }
        if self.undo.is_empty() {
            self.snapshot_epoch = snapshot_epoch;
        }
        if self.snapshot_epoch == snapshot_epoch {
            let look = &mut |is_whole| structure.find(key, is_whole);
            return Ok(versions.put_found(owner, key, stamp, look)?);
        }
        let mut entry = Ok(structure.value(key)?);
        // The transaction may have changed it before the epoch.
        self.undo.each(0, false, |(of, changed, before, large)| {
            if (of, changed) == (owner, key) {
                let read = |(large, trees): (_, &dyn LargeValues)| {
                    kept(trees.read_detached(large).map_err(TxnError::from))
                };
                let large = large.zip(structure.large_values()).map(read).transpose()?;
                apply(&mut entry, &before, large);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        put(versions, stamp, owner, key, &entry);
        Ok(())
    }

    /// Puts versions of all entries that the transaction has changed, unless that was done in
    /// `snapshot_epoch`.
    ///
    /// # Errors
    /// Before images cannot be read.
    pub(super) fn put_versions(
        &mut self,
        versions: &VersionStore,
        snapshot_epoch: u64,
        trees: &mut dyn Trees,
    ) -> Result<(), TxnError> {
        if self.is_over || self.snapshot_epoch == snapshot_epoch {
            return Ok(());
        }
        let stamp = self.stamp.get_or_insert_with(CommitStamp::new);
        let mut from = 0;
        while from < self.undo.len() {
            let next = put_some(&self.undo, from, versions, stamp, trees)?;
            assert!(next > from, "each pass puts a version");
            from = next;
        }
        self.snapshot_epoch = snapshot_epoch;
        Ok(())
    }

    /// Ends the transaction with `end`, which appends its last record. Later snapshots see its
    /// changes, if they stay.
    pub(super) fn end<R>(
        &mut self,
        versions: &VersionStore,
        rows: &RowCounts,
        structure_of: &StructureOf<'_, '_>,
        end: impl FnOnce() -> R,
    ) -> R {
        if let Some(snapshot_epoch) = versions.snapshot_epoch()
            && let Err(error) =
                self.put_versions(versions, snapshot_epoch, &mut TreesBy(structure_of))
        {
            let cause = &error as &dyn std::error::Error;
            tracing::warn!(error = cause, "snapshots are lost: versions cannot be put");
            versions.lose_epoch(snapshot_epoch, error);
        }
        debug_assert!(!self.is_over, "a transaction ends once");
        let done = end();
        self.is_over = true;
        rows.commit(self.rows.all());
        self.end_writer(versions);
        done
    }

    /// Frees the places of the records that the committed transaction `tx` removed. Places that
    /// cannot be freed now are left to later appends.
    #[cold]
    pub(super) fn release_removed(&self, tx: u64, structure_of: &StructureOf<'_, '_>) {
        let released = self.undo.each(0, true, |(owner, key, before, _)| {
            if matches!(before, Before::Value(_))
                && let Some(structure) = structure_of(owner)
            {
                structure.release(key, tx)?;
            }
            Ok(ControlFlow::Continue(()))
        });
        if let Err(error) = released {
            tracing::warn!(%error, "the places of removed records could not be freed");
        }
    }

    /// Gives its versions their commit timestamp.
    pub(super) fn end_writer(&self, versions: &VersionStore) {
        if let Some(stamp) = &self.stamp {
            versions.end_writer(stamp);
        }
    }
}
