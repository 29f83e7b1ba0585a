//! Shrinking a store: pages in use move to free places at the front of the file, and the free end
//! is cut off.
//!
//! # How
//! The *bound* is the end that the store would have without free pages. As many pages before it are
//! free as pages from it on are in use, so all of these can move before it. `pool/moving.rs` has
//! the move of one page, and its state after a crash; this module chooses the pages.
//! 1. Until the end of the shrink, free ids from the bound on are not reused, and the store does
//!    not grow ahead of need.
//! 2. The pages from the bound on are read in the order of the file. Their owners show the
//!    structures to be walked, and whether leaves of trees have to be read for the large values
//!    below them. An unsound page, or one that was not written yet, shows nothing. If a round moves
//!    nothing, another one walks everything.
//! 3. Each structure is walked from its root and its pages move, one by one, the root first. After
//!    a number of pages, a checkpoint is taken, because the log must not grow beyond
//!    [`Options::log_gap`](crate::Options#structfield.log_gap). Then the file is cut, and the
//!    caller may stop the shrink.
//! 4. Others may have taken pages before the bound, or split and merged behind a walk: the next
//!    round begins with a new bound. The shrink ends when nothing is left, or when a round that
//!    walked everything moved nothing.
//!
//! # Beside others
//! Nothing is held between two steps. During a step, no structure is dropped, and the background
//! merge rests (`gate`); readers and writers continue. One thread moves pages at a time; another
//! thread that shrinks only cuts the file.
//!
//! A backup copies a file while others write to it. For a backup, a moved page is one page that was
//! written and another that was freed, and its copy of the log has both. But a backup keeps all of
//! the log from its beginning on. So nothing moves during a backup, and the file is not cut, since
//! the pages that it copies are there. For the same reason moving stops if a long transaction has
//! let the log grow to several times the requested size.
//!
//! # Out of place
//! The file ends behind its last page, whatever the page's id. So pages keep their ids, nothing is
//! logged, and no structure is walked. Pages are copied from the end of the file to free places
//! before it, and the next durable page map frees their old places. Ids move, as described above
//! and before that, only where they are sparse, since the page map takes memory for each.
//!
//! # Without a log
//! The moved pages are written before the file is cut. As always, the store is consistent again
//! once it is closed.

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

/// Maximum bytes of pages moved between two checkpoints.
const CHUNK_BYTES: u64 = 4 << 20;
/// Share of the log's gap that they may take: a moved page is in the log, and its parent may be,
/// too.
const GAP_PART: u64 = 8;
/// Minimum number of pages moved between two checkpoints.
const CHUNK_LEAST: u64 = 16;
/// Steps of a walk before it yields to others, for each page that may move.
const STEPS_PER_PAGE: u64 = 2;
/// Maximum number of rounds: beside many writers they would never end.
const ROUNDS_MAX: u32 = 16;
/// Maximum number of rounds of pages that keep their ids.
const PACK_ROUNDS_MAX: u32 = 4;
/// Pages read at a time to find their owners.
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
    /// Pages in use behind the possible end of the file: not moved, or added in the meantime.
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
    /// Pages still to be moved.
    pub left: u64,
    /// Bytes of the data file given back.
    pub data_bytes: u64,
}

/// Observes the progress of shrinking; `Break` ends it, and keeps the progress made.
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

/// Reason that a walk stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    /// The walk is complete, or the structure is gone.
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
    /// Name of the structure; `None` for the catalog.
    name: Option<&'n str>,
    owner: u32,
}

/// Anchor of a structure's root, and the guard that holds it open; the catalog needs no guard.
type Held<M> = (Anchor, Option<Opened<M>>);

/// State of a shrink in progress.
struct Shrinking<'s, 'w, M: PoolStrategy> {
    store: &'s Store<M>,
    watch: &'w mut ShrinkWatch<'w>,
    done: Shrunk,
    /// Pages that may move before the next checkpoint.
    chunk: u64,
}

impl Tail {
    /// Reads the pages in use from `bound` on.
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
    /// See there.
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
                // The old places of pages are free after a checkpoint.
                true => shrinking.rounds().and_then(|()| shrinking.cut()),
                false => Ok(()),
            };
            let moved = moved.and_then(|()| shrinking.pack());
            // The freed space is given back even after an error.
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

    /// Moves pages from the end of the file to free places, in an out-of-place store.
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
            // Others may have taken places in the meantime.
            if self.done.pages_moved == before || pages.count_far() == 0 {
                break;
            }
        }
        // The old places are not free before the page map is durable with the new ones. The map's
        // own nodes may only have found places at the end.
        if pages.move_far_nodes() {
            self.cut()?;
        }
        Ok(())
    }

    /// Moves pages to lower ids, as far as possible.
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

    /// Asks the caller whether to stop.
    fn is_stopped(&mut self, bound: PageId) -> bool {
        let left = self.store.pages().count_from(bound);
        let Shrunk { pages_moved: moved, data_bytes, .. } = self.done;
        let is_kept =
            self.store.checkpointer().is_some_and(|checkpointer| checkpointer.keeps_much());
        (self.watch)(ShrinkProgress { moved, left, data_bytes }).is_break() || is_kept
    }

    /// Walks the structures in `tail`, or all of them; `Break` if no more rounds are needed.
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

    /// Continues a walk for some steps; `is_new` if it has to start, with the root.
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

    /// Returns the number of pages that may move between two checkpoints.
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

    /// Opens a structure, under the gate, and moves its root if its walk `is_new`. Returns `None`
    /// if it is gone, cannot be opened by this combination, or must not change in the background
    /// now.
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
