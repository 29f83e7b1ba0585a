//! Descents from the root to the directory of a hash.

use millpond_base::{AccessKind, Mark, PageKind};

use crate::hash_index::directory::{Slot, slot_in};
use crate::hash_index::error::corrupt;
use crate::hash_index::index::HashIndex;
use crate::page::{PageHeader, PageType};
use crate::pool::{MiniTransaction, Pages, Read, Swip, Try};

/// Returns the mark of a reference to a page.
#[inline(always)]
pub(crate) fn mark(access: AccessKind, depth: u8) -> Mark {
    Mark::of(access).with_kind(PageKind::OTHER, depth)
}

/// Ends the attempt: the page does not match its parent's description, unless it has changed since.
#[cold]
pub(crate) fn wrong<P: Pages, T>(page: &Read<'_, P>) -> Try<T> {
    let id = page.header().page().unwrap_or_default();
    page.validate()?;
    Err(corrupt(id, "not the page of a hash index that its parent expects"))
}

/// The lowest directory on the path of a hash and, if requested, the one above it.
pub(crate) struct BucketSlot<'o, P: Pages> {
    pub(crate) parent: Option<(Read<'o, P>, Slot)>,
    pub(crate) directory: Read<'o, P>,
    pub(crate) slot: Slot,
    /// Number of directories above.
    pub(crate) depth: u8,
}

impl<P: Pages> BucketSlot<'_, P> {
    /// Returns whether there is no bucket; valid once the directory was validated.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.directory.swip(self.slot.at) == Swip::NULL
    }
}

impl<P: Pages> HashIndex<P> {
    /// Returns the lowest directory on the path of `hash`; with `KEEP`, also the one above it.
    #[inline(never)]
    pub(crate) fn descend<'o, const KEEP: bool>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        hash: u64,
    ) -> Try<BucketSlot<'o, P>> {
        self.descend_here::<KEEP>(mtr, hash)
    }

    /// Like [`HashIndex::descend`], inlined: for look-ups and writes of one entry.
    #[inline(always)]
    pub(crate) fn descend_here<'o, const KEEP: bool>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        hash: u64,
    ) -> Try<BucketSlot<'o, P>> {
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
                return Ok(BucketSlot { parent, directory, slot, depth });
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
