//! Undo, the last part of recovery: losers are undone, and orphans are freed. All pages have their
//! state at the end of the log by now. So both are ordinary operations, logged like any other, and
//! a crash during them costs only time.

use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use millpond_base::{Lsn, Mark, PageId};
use millpond_device::AlignedBuffer;

use super::analysis::Loser;
use super::error::UndoError;
use super::progress::{Phase, Progress};
use crate::btree::{BTree, Undo};
use crate::hash_index::HashIndex;
use crate::heap::Heap;
use crate::io::PageStore;
use crate::lock::is_interrupted;
use crate::log::{Log, Record};
use crate::page::record_body::{OrphanRoot, Section, sections};
use crate::page::{PAGE_HEADER, PageHeader, PageType};
use crate::pool::mini_transaction::kind;
use crate::pool::{
    ANCHOR_SWIP, Actor, Pages, Pool, PoolError, PoolStrategy, Read, Reserved, Storage, Swip,
};
use crate::txn::{Structure, TxnError, undo_one};

/// Holds a structure open.
pub(crate) trait HoldsStructure {
    /// Returns the structure, or `None` if no transaction can have changed it.
    fn as_structure(&self) -> Option<&dyn Structure>;
}

/// Opens the structure with the given owner id, held open by a `T`.
pub(crate) type StructureOf<'f, T, E> = dyn FnMut(u32) -> Result<Option<T>, E> + 'f;

/// Result of undo.
pub(crate) struct Undone {
    /// Number of records undone.
    pub records: u64,
    /// Stamps of large values that were undone but could not be freed. They remain orphans, below
    /// anchors of this pool: a second anchor would be a second parent.
    pub kept: HashSet<u64>,
}

/// Undoes the losers, newest record first; `E` is the error of the caller's catalog.
pub(crate) fn undo<T, E>(
    log: &Log,
    losers: &[Loser],
    structure_of: &mut StructureOf<'_, T, E>,
    progress: &dyn Fn(Progress),
) -> Result<Undone, E>
where
    T: HoldsStructure,
    E: From<UndoError>,
{
    let _reserved = Reserved::begin();
    let (mut done, total) = (0, losers.len() as u64);
    let mut last: HashMap<u64, Lsn> = losers.iter().map(|l| (l.tx, l.last_record)).collect();
    let mut next: BinaryHeap<(Lsn, u64)> = losers.iter().map(|l| (l.last, l.tx)).collect();
    let mut undone = Undone { records: 0, kept: HashSet::new() };
    let (mut body, mut bytes) = (Vec::new(), Vec::new());
    progress(Progress { phase: Phase::Undo, done, total });
    while let Some((at, tx)) = next.pop() {
        if is_interrupted() {
            return Err(UndoError::Pool(PoolError::Interrupted).into());
        }
        let prev = last.get(&tx).copied().unwrap_or_default();
        if at == Lsn(0) {
            log.append(&Record { kind: kind::ABORT, tx, prev, parts: &[] });
            done += 1;
            progress(Progress { phase: Phase::Undo, done, total });
            continue;
        }
        let header = log.read_at(at, &mut body).map_err(UndoError::Log)?;
        bytes.clear();
        let behind = sections(&body).flatten().find_map(|section| match section {
            Section::Undo { head, tail } => {
                bytes.extend_from_slice(head);
                bytes.extend_from_slice(tail);
                Some(header.prev)
            }
            Section::UndoNext { lsn } => Some(lsn),
            _ => None,
        });
        let behind = behind.ok_or(UndoError::NoUndo { at, tx })?;
        let undo = match bytes.is_empty() {
            true => None,
            false => Some(Undo::read(&bytes).ok_or(UndoError::NoUndo { at, tx })?),
        };
        if let Some(undo) = undo {
            let missing = || UndoError::Txn(TxnError::NoTree { tx, owner: undo.owner });
            let held = structure_of(undo.owner)?.ok_or_else(missing)?;
            let structure = held.as_structure().ok_or_else(missing)?;
            let actor = Actor::Undo { tx, prev, next: behind };
            let done = undo_and_free(structure, actor, &undo, &mut undone.kept)?;
            debug_assert!(done == Lsn(0) || done > at, "a CLR is logged behind what it undoes");
            last.insert(tx, if done == Lsn(0) { prev } else { done });
            undone.records += 1;
        }
        debug_assert!(behind < at, "undo follows the chain of a transaction backwards");
        next.push((behind, tx));
    }
    Ok(undone)
}

fn undo_and_free(
    structure: &dyn Structure,
    actor: Actor,
    undo: &Undo<'_>,
    kept: &mut HashSet<u64>,
) -> Result<Lsn, UndoError> {
    let outcome = undo_one(structure, actor, undo, None)?;
    // The undo itself is done. A value that cannot be freed stays an orphan, and blocks no
    // transaction.
    if let Some(gone) = outcome.gone
        && let Some(tree) = structure.large_values()
    {
        let stamp = gone.stamp();
        match tree.free_detached(gone) {
            Err(error) if error.is_about_a_page() => {
                tracing::warn!(%error, "a large value that was undone could not be freed");
                kept.insert(stamp);
            }
            done => done?,
        }
    }
    Ok(outcome.at)
}

/// Frees all orphans except the values with the stamps `kept`; returns the number of roots freed.
/// The pages were written to `store` by redo, or when it was closed, and have not changed since.
///
/// An orphan's page that cannot be read costs no reachable entry. A warning names it, and its root
/// stays an orphan, which the next opening tries to free again.
pub(crate) fn free_orphan<M: PoolStrategy>(
    pool: &Arc<Pool<M>>,
    store: &PageStore,
    kept: &HashSet<u64>,
) -> Result<u64, UndoError> {
    let _reserved = Reserved::begin();
    let mut orphans = pool.redo_log().space_at_tail(|_, space| space.orphans().clone());
    orphans.retain(|_, what| !kept.contains(&what.stamp));
    let (mut bytes, mut freed) = (AlignedBuffer::new(store.page_size().bytes()), 0);
    for (root, what) in &orphans {
        match free_one(pool, store, *root, *what, &mut bytes) {
            Ok(()) => freed += 1,
            Err(UndoError::Pool(error)) if error.is_about_a_page() => {
                tracing::warn!(%root, %error, "pages that nothing refers to could not be freed");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(freed)
}

fn free_one<M: PoolStrategy>(
    pool: &Arc<Pool<M>>,
    store: &PageStore,
    root: PageId,
    what: OrphanRoot,
    bytes: &mut AlignedBuffer,
) -> Result<(), UndoError> {
    Storage::read(store, root, bytes)?;
    let owner = PageHeader::read(bytes).owner;
    // An older page may have no stamp either, but has content; a bare page has neither.
    if what.stamp == 0 && bytes.iter().skip(PAGE_HEADER).all(|byte| *byte == 0) {
        return Ok(free_bare(pool, root)?);
    }
    free_root(pool, root, what, owner)
}

fn free_bare<M: PoolStrategy>(pool: &Arc<Pool<M>>, root: PageId) -> Result<(), PoolError> {
    let anchor = pool.anchor(root)?;
    pool.run(|mtr| {
        let mut anchor = Read::anchor(mtr, anchor)?.upgrade()?;
        let page = anchor.child_exclusive(ANCHOR_SWIP, Mark::WRITE)?;
        if let Some(place) = anchor.page_mut().get_mut(ANCHOR_SWIP..ANCHOR_SWIP + 8) {
            place.copy_from_slice(&Swip::NULL.0.to_le_bytes());
        }
        page.free();
        Ok(())
    })?;
    pool.release_anchor(anchor);
    Ok(())
}

fn free_root<M: PoolStrategy>(
    pool: &Arc<Pool<M>>,
    root: PageId,
    what: OrphanRoot,
    owner: u32,
) -> Result<(), UndoError> {
    match PageType(what.kind) {
        PageType::OVERFLOW => BTree::free_orphan(pool.clone(), owner, root, what.stamp)?,
        PageType::BTREE_LEAF | PageType::BTREE_INNER => {
            BTree::open(pool.clone(), owner, root)?.destroy()?;
        }
        PageType::HASH_ROOT if !M::TREES_ONLY => {
            HashIndex::open(pool.clone(), owner, root)?.destroy()?;
        }
        PageType::HEAP_DIRECTORY if !M::TREES_ONLY => {
            Heap::open(pool.clone(), owner, root)?.destroy()?;
        }
        other => {
            let what = format!("it is an orphan root of type {}, which cannot be freed", other.0);
            return Err(PoolError::Corrupt { page: root, what }.into());
        }
    }
    Ok(())
}
