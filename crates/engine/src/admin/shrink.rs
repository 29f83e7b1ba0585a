//! Shrinking a store: pages in use move to where the front of the file is free, and the end that
//! comes free is cut off.
//!
//! # How
//! There is a *bound*: where the store would end if it had no free page before its end. As many
//! pages before it are free as pages from it on are in use, so all of these can move before it. How
//! one page moves, and what a crash leaves of that, is in `pool/moving.rs`; here it is decided
//! which.
//! 1. Ids from the bound on that come free are not used again meanwhile, and the store does not
//!    grow ahead of need.
//! 2. The pages from the bound on are read as they lie in the file: who they belong to says which
//!    structures have to be walked, and whether leaves of trees have to be read for the large
//!    values below them. A page that is not sound, or was not written yet, says nothing; if a round
//!    moves nothing, another one walks everything.
//! 3. Each structure is walked from its root and its pages move, one by one, the root first. After
//!    a number of pages there is a checkpoint, as the log shall not grow beyond what
//!    [`Options::log_gap`](crate::Options#structfield.log_gap) says, the file is
//!    cut, and the caller is asked whether to go on.
//! 4. Others may have taken pages before the bound, or split and merged where a walk had been: the
//!    next round begins with a new bound. It is over when nothing is left, or a round that walked
//!    everything moved nothing.
//!
//! # Beside others
//! Nothing is held between two steps. During one, no structure is dropped, and the background merge
//! rests (`gate`); readers and writers go on. One thread moves pages at a time; what another one
//! that shrinks does meanwhile is to cut the file.
//!
//! A backup copies a file that others write to, and a page that moves is for it a page that was
//! written, and another that was freed, all of which is in the log that it copies. But it keeps all
//! of the log from its beginning on, so nothing moves as soon as one is under way, and the file is
//! not cut, since the pages that it copies lie there. For the same reason nothing moves any more if
//! a transaction has been under way for so long that the log is several times what was asked for.
//!
//! # Out of place
//! the file ends where the last page lies, whatever its id. So pages keep their ids, nothing is
//! logged, and no structure is walked: pages are copied from the end of the file to free places
//! before it, and the next durable page map frees the places where they were. Ids move, as above
//! and before that, only where they are sparse, as the page map takes memory for each.
//!
//! # Without a log
//! the pages that moved are written before the file is cut. As ever, the store is whole again when
//! it is closed.

use std::collections::HashMap;
use std::ops::ControlFlow;

use millpond_base::{Lsn, PageId};
use millpond_device::AlignedBuffer;

use crate::io::{PageRead, PageStore};
use crate::page::superblock::Placement;
use crate::page::{PageHeader, PageType};
use crate::pool::{Anchor, Moved, Pool, PoolStrategy, Walk};
use crate::recovery::CheckpointError;
use crate::store::error::Error;
use crate::store::error::lab::LabError;
use crate::store::opened::Opened;
use crate::store::store::Store;

/// Bytes of pages that move between two checkpoints, at most.
const CHUNK_BYTES: u64 = 4 << 20;
/// Part of the log's gap that they may take: a page that moves is in the log, as may be its parent.
const GAP_PART: u64 = 8;
/// Pages that move between two checkpoints, at least.
const CHUNK_LEAST: u64 = 16;
/// Steps of a walk between two looks at what others want, for each page that may move.
const STEPS_PER_PAGE: u64 = 2;
/// Rounds, at most: beside many writers it would never be over.
const ROUNDS_MAX: u32 = 16;
/// Rounds of pages that keep their ids, at most.
const PACK_ROUNDS_MAX: u32 = 4;
/// Pages read at a time to see whose they are.
const READ_PAGES: usize = 64;

/// Result of shrinking.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let shrunk = db.shrink()?;
/// println!("{} bytes given back, {} pages left", shrunk.data_bytes, shrunk.pages_left);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Shrunk {
    /// Bytes of the data file given back.
    pub data_bytes: u64,
    /// Bytes of the log given back.
    pub log_bytes: u64,
    /// Pages that moved towards the front of the file.
    pub pages_moved: u64,
    /// Pages in use that lie behind where the file could end: what was not moved, or came since.
    pub pages_left: u64,
}

/// Progress of shrinking.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// use std::ops::ControlFlow;
/// db.shrink_with(&mut |progress| match progress.moved {
///     0..1000 => ControlFlow::Continue(()),
///     _ => ControlFlow::Break(()),
/// })?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ShrinkProgress {
    /// Pages that moved.
    pub moved: u64,
    /// Pages that are to move still.
    pub left: u64,
    /// Bytes of the data file given back.
    pub data_bytes: u64,
}

/// Looks at the progress of shrinking; `Break` ends it: what was done so far is done.
pub type ShrinkWatch<'w> = dyn FnMut(ShrinkProgress) -> ControlFlow<()> + 'w;

/// Owners of the pages behind the bound, each with a mark if large values are among them.
#[derive(Default)]
struct Tail {
    owners: HashMap<u32, bool>,
}

/// Keeps new pages before the bound until it is dropped.
struct BelowBound<'p, M: PoolStrategy>(&'p Pool<M>);

impl<M: PoolStrategy> Drop for BelowBound<'_, M> {
    fn drop(&mut self) {
        self.0.ids().set_ceiling(None);
    }
}

/// Why a walk stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    /// The walk is over, or the structure is gone.
    End,
    /// The walk made as many steps as it may at a time.
    Steps,
    /// The chunk is full.
    Chunk,
    /// There is no free page before the bound.
    Full,
}

/// Goal of the walk through a structure.
struct Target<'n> {
    /// `None`: the catalog.
    name: Option<&'n str>,
    owner: u32,
}

/// Anchor of a structure's root, and the guard that holds it open; the catalog needs no guard.
type Held<M> = (Anchor, Option<Opened<M>>);

/// State of a shrink under way.
struct Shrinking<'s, 'w, M: PoolStrategy> {
    store: &'s Store<M>,
    watch: &'w mut ShrinkWatch<'w>,
    done: Shrunk,
    /// Pages that may move before the next checkpoint.
    chunk: u64,
}

impl Tail {
    /// Looks at the pages in use from `bound` on.
    fn of(pages: &PageStore, bound: PageId) -> Tail {
        let (size, mut tail) = (pages.page_size().bytes(), Tail::default());
        let (mut buffer, mut from) = (AlignedBuffer::new(READ_PAGES * size), bound);
        loop {
            let ids = pages.used_from(from, READ_PAGES);
            let places = buffer.chunks_mut(size);
            let mut reads: Vec<PageRead<'_>> =
                ids.iter().zip(places).map(|(id, bytes)| PageRead::new(*id, bytes)).collect();
            pages.read_batch(&mut reads);
            for read in reads.iter().filter(|read| read.result.is_ok()) {
                let header = PageHeader::read(read.bytes);
                let values = tail.owners.entry(header.owner).or_default();
                *values |= header.kind == PageType::OVERFLOW;
            }
            match ids.last() {
                Some(last) if ids.len() == READ_PAGES => from = PageId(last.0 + 1),
                _ => return tail,
            }
        }
    }
}

impl<M: PoolStrategy> Store<M> {
    /// See [`Db::shrink_with`](crate::Db::shrink_with).
    ///
    /// # Errors
    /// As there.
    pub fn shrink(&self, watch: &mut ShrinkWatch<'_>) -> Result<Shrunk, Error> {
        let _span = tracing::info_span!("shrink", store = %self.pages().path().display()).entered();
        self.may_write()?;
        let mut watch = |progress| watch(progress);
        let mut shrinking =
            Shrinking { store: self, watch: &mut watch, done: Shrunk::default(), chunk: 0 };
        shrinking.cut()?;
        if let Ok(_one) = self.shrinking.try_lock() {
            let in_place = self.pages().placement() == Placement::InPlace;
            let moved = match in_place || self.pages().has_sparse_ids() {
                // The places of pages that went are free behind a checkpoint.
                true => shrinking.rounds().and_then(|()| shrinking.cut()),
                false => Ok(()),
            };
            let moved = moved.and_then(|()| shrinking.pack());
            // What came free is given back, whatever went wrong.
            moved.and(shrinking.cut())?;
        }
        let mut done = shrinking.done;
        done.pages_left = match self.pages().placement() {
            Placement::InPlace => self.pages().count_from(self.pages().packed_end()),
            Placement::OutOfPlace => self.pages().count_far(),
        };
        if let Some(checkpointer) = self.checkpointer() {
            done.log_bytes = checkpointer.give_log_back()?;
        }
        Ok(done)
    }
}

impl<M: PoolStrategy> Shrinking<'_, '_, M> {
    /// Gives the free end of the data file back.
    fn cut(&mut self) -> Result<(), Error> {
        self.store.pool().finish_frees();
        self.store.pool().ids().return_all()?;
        self.done.data_bytes += match self.store.checkpointer() {
            Some(checkpointer) => checkpointer.cut()?,
            None => {
                self.store.flush()?;
                let pages = self.store.pages();
                pages.forget_tail()?;
                // A process that finds the store not closed must not take it for one that was cut
                // off.
                pages.set_log_position(Lsn(0), pages.catalog_root(), None)?;
                pages.cut_off()?
            }
        };
        Ok(())
    }

    /// Moves pages from the end of the file to free places, where they are written out of place.
    fn pack(&mut self) -> Result<(), Error> {
        let pages = self.store.pages().clone();
        for _ in 0..PACK_ROUNDS_MAX {
            let mut left = pages.count_far();
            let Some(mut packing) = pages.begin_packing() else { break };
            let before = self.done.pages_moved;
            loop {
                let Shrunk { pages_moved: moved, data_bytes, .. } = self.done;
                if (self.watch)(ShrinkProgress { moved, left, data_bytes }).is_break() {
                    return Ok(());
                }
                let packed = pages.pack_some(&mut packing).map_err(CheckpointError::from)?;
                self.done.pages_moved += packed.moved;
                left = left.saturating_sub(packed.moved);
                if packed.is_over {
                    break;
                }
            }
            self.cut()?;
            // Others may have taken places meanwhile.
            if self.done.pages_moved == before || pages.count_far() == 0 {
                break;
            }
        }
        // What pages left is not free before the map is durable that has them elsewhere: its own
        // nodes may have found places at the end only.
        if pages.move_far_nodes() {
            self.cut()?;
        }
        Ok(())
    }

    /// Moves what can be moved to lower ids.
    fn rounds(&mut self) -> Result<(), Error> {
        let (pool, pages) = (self.store.pool().clone(), self.store.pages().clone());
        let _below = BelowBound(&pool);
        let mut everything = false;
        for _ in 0..ROUNDS_MAX {
            let bound = pages.packed_end();
            pool.ids().set_ceiling(Some(bound));
            pool.finish_frees();
            pool.ids().return_all()?;
            if pages.count_from(bound) == 0 || self.is_stopped(bound) {
                return Ok(());
            }
            let before = self.done.pages_moved;
            let tail = if everything { None } else { Some(Tail::of(&pages, bound)) };
            if self.round(bound, tail.as_ref())?.is_break() {
                return Ok(());
            }
            let moved_none = self.done.pages_moved == before;
            if moved_none && everything {
                return Ok(());
            }
            everything = moved_none;
        }
        Ok(())
    }

    /// Asks whether to go on.
    fn is_stopped(&mut self, bound: PageId) -> bool {
        let left = self.store.pages().count_from(bound);
        let Shrunk { pages_moved: moved, data_bytes, .. } = self.done;
        let is_kept =
            self.store.checkpointer().is_some_and(|checkpointer| checkpointer.keeps_much());
        (self.watch)(ShrinkProgress { moved, left, data_bytes }).is_break() || is_kept
    }

    /// Walks the structures that `tail` says, or all; `Break`: no more rounds.
    fn round(&mut self, bound: PageId, tail: Option<&Tail>) -> Result<ControlFlow<()>, Error> {
        let mut all = vec![(None, crate::store::catalog::CATALOG_OWNER)];
        all.extend(self.store.catalog()?.into_iter().map(|(name, e)| (Some(name), e.owner)));
        for (name, owner) in &all {
            let values = match tail {
                None => true,
                Some(tail) => match tail.owners.get(owner) {
                    Some(values) => *values,
                    None => continue,
                },
            };
            let target = Target { name: name.as_deref(), owner: *owner };
            let mut walk = Walk::new(bound, values);
            let mut is_new = true;
            loop {
                match self.walk_some(&target, &mut walk, std::mem::take(&mut is_new))? {
                    Stop::End => break,
                    Stop::Steps if self.is_stopped(bound) => return Ok(ControlFlow::Break(())),
                    Stop::Steps => {}
                    // The next round has another bound.
                    Stop::Full => return Ok(ControlFlow::Continue(())),
                    Stop::Chunk => {
                        self.chunk = 0;
                        self.cut()?;
                        if self.is_stopped(bound) {
                            return Ok(ControlFlow::Break(()));
                        }
                        if self.store.pages().count_from(bound) == 0 {
                            return Ok(ControlFlow::Continue(()));
                        }
                    }
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Goes on with a walk, for some steps; `is_new`: it is to begin, with the root.
    fn walk_some(
        &mut self,
        target: &Target<'_>,
        walk: &mut Walk,
        is_new: bool,
    ) -> Result<Stop, Error> {
        let store = self.store;
        let most = self.chunk_pages();
        let _gate = store.keep_from_merging()?;
        let Some((anchor, _open)) = self.open(target, walk.bound(), is_new)? else {
            return Ok(Stop::End);
        };
        for _ in 0..most * STEPS_PER_PAGE {
            if self.chunk >= most {
                return Ok(Stop::Chunk);
            }
            store.transactions().await_room();
            match store.pool().move_on(anchor, walk)? {
                Moved::Page => self.count(),
                Moved::Nothing | Moved::Busy => {}
                Moved::Full => return Ok(Stop::Full),
                Moved::End => return Ok(Stop::End),
            }
        }
        Ok(Stop::Steps)
    }

    /// Pages that may move between two checkpoints.
    fn chunk_pages(&self) -> u64 {
        let bytes = self
            .store
            .checkpointer()
            .map_or(CHUNK_BYTES, |checkpointer| CHUNK_BYTES.min(checkpointer.gap_bytes / GAP_PART));
        (bytes / self.store.pages().page_size().bytes_u64()).max(CHUNK_LEAST)
    }

    fn count(&mut self) {
        self.done.pages_moved += 1;
        self.chunk += 1;
    }

    /// Opens a structure, under the gate, and moves its root if its walk `is_new`. `None`: it is
    /// gone, cannot be opened by this combination, or shall not change in the background now.
    fn open(
        &mut self,
        target: &Target<'_>,
        bound: PageId,
        is_new: bool,
    ) -> Result<Option<Held<M>>, Error> {
        let mut named = self.store.named();
        let Some(name) = target.name else {
            return Ok(named.catalog().map(|catalog| (catalog.anchor(), None)));
        };
        let (opened, entry) = match named.open_to_move(self.store.pool(), name) {
            Ok(Some(found)) => found,
            Ok(None) | Err(Error::Lab(LabError::TreesOnly { .. })) => return Ok(None),
            Err(error) => return Err(error),
        };
        if entry.owner != target.owner || opened.is_resting() {
            return Ok(None);
        }
        let anchor = opened.anchor();
        if is_new
            && entry.root >= bound
            && let Some(catalog) = named.catalog()
            && let (Moved::Page, Some(root)) = catalog.move_root(name, anchor, bound)?
        {
            opened.set_root(root);
            self.count();
        }
        Ok(Some((anchor, Some(opened))))
    }
}
