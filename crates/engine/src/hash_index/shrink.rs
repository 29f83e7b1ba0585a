//! Merges neighbouring buckets, and directories with one child; removes all entries.

use std::cmp::Ordering;

use millpond_base::{AccessKind, Mark};

use crate::hash_index::bucket::{Bucket, BucketMut, parts};
use crate::hash_index::change::sound;
use crate::hash_index::descend::{BucketSlot, mark};
use crate::hash_index::directory::{DIRECTORY_FLAG, Slot, next_of, prefix_of, run_of, slot_in};
use crate::hash_index::grow::set_depth;
use crate::hash_index::index::HashIndex;
use crate::page::edit::put_u64;
use crate::page::{PageBuffer, View};
use crate::pool::{ANCHOR_SWIP, MiniTransaction, Pages, PoolError, Read, Swip, Try, Write};

/// Two neighbours are merged if they fill at most this many tenths of a bucket together.
const MERGED_TENTHS: usize = 7;

/// A bucket that was freed.
struct Dropped {
    entries: u64,
    /// The hash at which the next bucket begins; `None` at the end.
    next: Option<u64>,
}

impl<P: Pages> HashIndex<P> {
    /// Merges the bucket of `hash` with its neighbour as long as the two fit into one. Replaces a
    /// directory that is left with one child by the child.
    #[cold]
    pub(crate) fn shrink(&self, hash: u64) -> Result<(), PoolError> {
        loop {
            match self.pages.run(|mtr| self.attempt_shrink(mtr, hash)) {
                Ok(true) => {}
                // The write that caused this merge is applied, and must not be reported as failed.
                Ok(false) | Err(PoolError::Held { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Merges once; returns `false` if there is nothing to merge.
    fn attempt_shrink<'o>(&self, mtr: &'o MiniTransaction<'o, P>, hash: u64) -> Try<bool> {
        let place = self.descend::<true>(mtr, hash)?;
        if place.slot.depth == 0 {
            return self.pull_up(mtr, place);
        }
        let BucketSlot { directory, slot, depth, .. } = place;
        let run = run_of(self.form, slot.depth);
        let (left, right) = (slot.index & !run, slot.index | run);
        let view = directory.view();
        let bytes = [left, right].map(|i| view.u8(self.form.byte_at(i)));
        if bytes != [slot.depth; 2] {
            directory.validate()?;
            return Ok(false);
        }
        let directory = directory.upgrade()?;
        self.merge(mtr, directory, [left, right], slot, depth)
    }

    /// Merges the buckets of two runs, either of which may be missing.
    fn merge<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        mut directory: Write<'o, P>,
        pair: [usize; 2],
        slot: Slot,
        depth: u8,
    ) -> Try<bool> {
        let [left_at, right_at] = pair.map(|i| self.form.swip_at(i));
        let load = |at| -> Try<Option<Write<'o, P>>> {
            if directory.view().u64(at) == Swip::NULL.0 {
                return Ok(None);
            }
            sound(directory.child_exclusive(at, mark(AccessKind::Write, depth + 1))?).map(Some)
        };
        let (left, right) = (load(left_at)?, load(right_at)?);
        let used = |page: &Option<Write<'o, P>>| {
            page.as_ref().map_or(0, |page| Bucket(page.view()).used())
        };
        if (used(&left) + used(&right)) * 10 > self.pages.page_size() * MERGED_TENTHS {
            return Ok(false);
        }
        debug_assert!(slot.depth > 0, "the caller pulls up a bucket of depth 0");
        debug_assert!(pair[0] < pair[1]);
        let bits = slot.bits() - 1;
        let (mut kept, gone) = match (left, right) {
            (Some(left), right) => (Some(left), right),
            (None, right) => (right, None),
        };
        if let (Some(kept), Some(gone)) = (&mut kept, &gone) {
            join(BucketMut(kept.page_mut()), gone.view());
        }
        if let Some(kept) = &mut kept {
            let prefix = prefix_of(Bucket(kept.view()).prefix(), bits);
            BucketMut(kept.page_mut()).set_range(bits, prefix);
        }
        let kept_at =
            if directory.view().u64(left_at) == Swip::NULL.0 { right_at } else { left_at };
        let word = Swip(directory.view().u64(kept_at));
        let page = directory.page_mut();
        put_u64(page, right_at, Swip::NULL.0);
        put_u64(page, left_at, word.0);
        set_depth(page, self.form, pair[0], slot.depth - 1);
        if word != Swip::NULL {
            mtr.adopt(word, &directory);
        }
        if let Some(gone) = gone {
            gone.free();
        }
        Ok(true)
    }

    /// Replaces a directory whose only child has depth 0 by that child.
    fn pull_up<'o>(&self, mtr: &'o MiniTransaction<'o, P>, place: BucketSlot<'o, P>) -> Try<bool> {
        let Some((parent, above)) = place.parent else {
            place.directory.validate()?;
            return Ok(false);
        };
        place.directory.validate()?;
        drop(place.directory);
        let mut parent = parent.upgrade()?;
        let directory = parent.child_exclusive(above.at, mark(AccessKind::Write, place.depth))?;
        let now = slot_in(self.form, directory.view(), 0, place.slot.used);
        if now.depth != 0 || now.is_directory {
            return Ok(false);
        }
        let word = Swip(directory.view().u64(now.at));
        let byte = self.form.byte_at(above.index);
        let page = parent.page_mut();
        put_u64(page, above.at, word.0);
        if let Some(byte) = page.get_mut(byte) {
            *byte &= !DIRECTORY_FLAG;
        }
        if word != Swip::NULL {
            mtr.adopt(word, &parent);
        }
        directory.free();
        Ok(true)
    }

    /// Removes every entry and frees every page except the root; returns the number of entries. The
    /// index is empty afterwards, if no other thread writes to it in the meantime.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn clear(&self) -> Result<u64, PoolError> {
        let (mut position, mut removed) = (0, 0);
        loop {
            self.pages.make_log_room(2 * self.pages.page_size())?;
            let Dropped { entries, next } =
                self.pages.run(|mtr| self.attempt_drop(mtr, position))?;
            removed += entries;
            self.shrink(position)?;
            match next {
                Some(next) => position = next,
                None => return Ok(removed),
            }
        }
    }

    /// Frees the bucket of `hash`.
    fn attempt_drop<'o>(&self, mtr: &'o MiniTransaction<'o, P>, hash: u64) -> Try<Dropped> {
        let place = self.descend::<false>(mtr, hash)?;
        let (slot, next) = (place.slot, next_of(hash, place.slot.bits()));
        if place.is_empty() {
            place.directory.validate()?;
            return Ok(Dropped { entries: 0, next });
        }
        let mut directory = place.directory.upgrade()?;
        let page = directory.child_exclusive(slot.at, mark(AccessKind::Write, place.depth + 1))?;
        let page = sound(page)?;
        let entries = Bucket(page.view()).count() as u64;
        put_u64(directory.page_mut(), slot.at, Swip::NULL.0);
        page.free();
        Ok(Dropped { entries, next })
    }

    /// Frees all pages, and the anchor with them.
    ///
    /// # Errors
    /// The memory behind the index failed.
    pub fn destroy(self) -> Result<(), PoolError> {
        self.clear()?;
        self.pages.run(|mtr| {
            let mut anchor = Read::anchor(mtr, self.anchor)?.upgrade()?;
            let root = anchor.child_exclusive(ANCHOR_SWIP, Mark::WRITE)?;
            put_u64(anchor.page_mut(), ANCHOR_SWIP, Swip::NULL.0);
            root.free();
            Ok(())
        })?;
        self.pages.release_anchor(self.anchor);
        Ok(())
    }
}

/// Merges the entries of `other` into `bucket`, which has room for them.
fn join(mut bucket: BucketMut<'_>, other: View<'_>) {
    let (a, b) = (PageBuffer::copy_of(bucket.0), PageBuffer::of_view(other));
    let (left, right) = (Bucket(a.view()), Bucket(b.view()));
    bucket.init(left.bits(), left.prefix());
    let (mut i, mut j) = (0, 0);
    while i < left.count() || j < right.count() {
        let from_left = match (i < left.count(), j < right.count()) {
            (true, true) => left.word(i).cmp(&right.word(j)) != Ordering::Greater,
            (from_left, _) => from_left,
        };
        let (page, view, at) = if from_left { (&a, left, &mut i) } else { (&b, right, &mut j) };
        let (key, value) = parts(page.bytes(), view.entry(*at));
        bucket.push(view.word(*at), key, value);
        *at += 1;
    }
}
