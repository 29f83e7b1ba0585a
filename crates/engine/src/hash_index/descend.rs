//! Directory pages, and the way from a hash to its bucket.
//!
//! ```text
//! offset size
//!      0   32  the common page header, type HASH_ROOT, level = 15 − directories above
//!     32    1  hash bits used actor the directories above
//!     33    7  reserved, 0
//!     40    8  seed of the hash function
//!     48    8  the leading hash bits that all keys below share, in their place
//!     56    8  reserved, 0
//!     64       one byte per slot: bits 0–5 local depth, bit 7: a directory, not a bucket
//!      …       swips, see `page::directory`
//! ```

use millpond_base::{AccessKind, Mark, PageId, PageKind};

use crate::hash_index::bucket::PREFIX;
use crate::hash_index::index::HashIndex;
use crate::page::edit::{put_u16, put_u64};
use crate::page::{Directory, PageHeader, PageType, View};
use crate::pool::{Jump, MiniTransaction, Pages, PoolError, Read, Swip, Try};

/// Where a directory says how many hash bits the directories above it use.
pub(crate) const USED: usize = 32;
/// Where it says the seed.
pub(crate) const SEED: usize = 40;
/// Set in a slot's byte if it refers to a directory.
pub(crate) const DIRECTORY_FLAG: u8 = 0x80;

/// How many slots share a child of local depth `depth`.
#[inline(always)]
pub(crate) fn run_of(form: Directory, depth: u8) -> usize {
    1 << form.bits().saturating_sub(u32::from(depth))
}

/// The slot that leads on, and what it says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// The canonical slot: the first of those that share the child.
    pub(crate) index: usize,
    /// Its local depth: how many bits of this directory's all keys below share.
    pub(crate) depth: u8,
    /// Where its swip is.
    pub(crate) at: usize,
    /// Whether the child is a directory.
    pub(crate) is_directory: bool,
    /// Hash bits used above this directory.
    pub(crate) used: u32,
}

impl Slot {
    /// Leading hash bits that all keys of the child share.
    pub(crate) fn bits(self) -> u32 {
        self.used + u32::from(self.depth)
    }
}

/// The leading `bits` bits of a hash, in their place.
pub(crate) fn prefix_of(hash: u64, bits: u32) -> u64 {
    if bits == 0 { 0 } else { hash & (u64::MAX << (64 - bits.min(64))) }
}

/// The first hash that does not begin with the leading `bits` bits of `hash`, above it.
pub(crate) fn next_of(hash: u64, bits: u32) -> Option<u64> {
    if bits == 0 { None } else { prefix_of(hash, bits).checked_add(1 << (64 - bits.min(64))) }
}

/// The slot of `hash` in the directory that `view` shows.
#[inline(always)]
pub(crate) fn slot_in(form: Directory, view: View<'_>, hash: u64, used: u32) -> Slot {
    let i = ((hash << used) >> (64 - form.bits())) as usize;
    let byte = view.u8(form.byte_at(i));
    // More than there are bits would be damage; a scan must not take it for tiny steps.
    let depth = (byte & !DIRECTORY_FLAG).min(form.bits() as u8);
    let index = i & !(run_of(form, depth) - 1);
    let at = form.swip_at(index);
    Slot { index, depth, at, is_directory: byte & DIRECTORY_FLAG != 0, used }
}

/// Makes a page that is zero-filled behind its header a directory without children.
pub(crate) fn init(page: &mut [u8], used: u32, prefix: u64, seed: u64) {
    put_u16(page, USED, used as u16);
    put_u64(page, SEED, seed);
    put_u64(page, PREFIX, prefix);
}

/// What a reference to a page says of itself.
#[inline(always)]
pub(crate) fn mark(mtr: AccessKind, depth: u8) -> Mark {
    Mark::of(mtr).with_kind(PageKind::OTHER, depth)
}

/// The attempt fails: the store is damaged.
#[cold]
pub(crate) fn corrupt(page: PageId, what: &str) -> Jump {
    Jump::failed(PoolError::Corrupt { page, what: what.to_string() })
}

/// A page that is not what its parent says; if it was read in peace.
#[cold]
pub(crate) fn wrong<P: Pages, T>(page: &Read<'_, P>) -> Try<T> {
    let id = page.header().page().unwrap_or_default();
    page.validate()?;
    Err(corrupt(id, "not the page of a hash index that its parent expects"))
}

/// The lowest directory on the way of a hash, and the one above it if that was wanted.
pub(crate) struct Place<'o, P: Pages> {
    pub(crate) parent: Option<(Read<'o, P>, Slot)>,
    pub(crate) directory: Read<'o, P>,
    pub(crate) slot: Slot,
    /// Directories above.
    pub(crate) depth: u8,
}

impl<P: Pages> Place<'_, P> {
    /// Whether there is no bucket; counts after validation.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.directory.swip(self.slot.at) == Swip::NULL
    }
}

impl<P: Pages> HashIndex<P> {
    /// The lowest directory on the way of `hash`; `KEEP` keeps the one above it, too.
    #[inline(never)]
    pub(crate) fn descend<'o, const KEEP: bool>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        hash: u64,
    ) -> Try<Place<'o, P>> {
        self.descend_here::<KEEP>(mtr, hash)
    }

    /// The same, compiled where it is called: for lookups and changes of one entry.
    #[inline(always)]
    pub(crate) fn descend_here<'o, const KEEP: bool>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        hash: u64,
    ) -> Try<Place<'o, P>> {
        let mut directory = Read::root(mtr, self.anchor, mark(AccessKind::Read, 0))?;
        let mut parent = None;
        let (mut used, mut depth) = (0, 0);
        loop {
            let view = directory.view();
            if PageHeader::type_in(view) != PageType::HASH_ROOT {
                return wrong(&directory);
            }
            let slot = slot_in(self.form, view, hash, used);
            if !slot.is_directory {
                return Ok(Place { parent, directory, slot, depth });
            }
            used += self.form.bits();
            depth += 1;
            if used + self.form.bits() > 64 || directory.swip(slot.at) == Swip::NULL {
                return wrong(&directory);
            }
            let child = directory.child(slot.at, mark(AccessKind::Read, depth))?;
            if KEEP {
                parent = Some((directory, slot));
            }
            directory = child;
        }
    }
}
