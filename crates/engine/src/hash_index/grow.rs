//! Splits a full bucket, or first gives it a directory of its own.

use millpond_base::AccessKind;

use crate::hash_index::bucket::{Bucket, BucketMut, parts};
use crate::hash_index::change::sound;
use crate::hash_index::descend::mark;
use crate::hash_index::directory::{DIRECTORY_FLAG, SEED, Slot, init, prefix_of, run_of};
use crate::hash_index::index::HashIndex;
use crate::page::edit::put_u64;
use crate::page::{Directory, PageBuffer};
use crate::pool::{MiniTransaction, Pages, PoolError, Swip, Try, Write};

enum Grown {
    /// There is room, or the bucket was split.
    Yes,
    /// A directory was inserted above the bucket: the split comes next.
    Again,
    /// The hash has no more bits.
    Never,
}

/// Sets the depth of all slots of a run.
pub(crate) fn set_depth(page: &mut [u8], form: Directory, index: usize, depth: u8) {
    debug_assert!(index.is_multiple_of(run_of(form, depth)), "a run is aligned to its length");
    debug_assert!(u32::from(depth) <= form.bits());
    let at = form.byte_at(index);
    if let Some(bytes) = page.get_mut(at..at + run_of(form, depth)) {
        bytes.fill(depth);
    }
}

impl<P: Pages> HashIndex<P> {
    /// Makes room for `bytes` more in the bucket of `hash`, or splits it once. Returns `false` if
    /// it cannot be split.
    #[cold]
    pub(crate) fn grow(&self, hash: u64, bytes: usize) -> Result<bool, PoolError> {
        loop {
            match self.pages.run(|mtr| self.attempt_grow(mtr, hash, bytes))? {
                Grown::Yes => return Ok(true),
                Grown::Again => {}
                Grown::Never => return Ok(false),
            }
        }
    }

    fn attempt_grow<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        hash: u64,
        bytes: usize,
    ) -> Try<Grown> {
        let place = self.descend::<false>(mtr, hash)?;
        let (slot, depth) = (place.slot, place.depth);
        if place.is_empty() {
            place.directory.validate()?;
            return Ok(Grown::Yes);
        }
        let mut directory = place.directory.upgrade()?;
        let bucket =
            sound(directory.child_exclusive(slot.at, mark(AccessKind::Write, depth + 1))?)?;
        if Bucket(bucket.view()).free() >= bytes {
            return Ok(Grown::Yes);
        }
        if u32::from(slot.depth) < self.form.bits() {
            self.split(mtr, directory, bucket, slot, hash)?;
            return Ok(Grown::Yes);
        }
        let used = slot.used + self.form.bits();
        if used + self.form.bits() > self.bits_max {
            return Ok(Grown::Never);
        }
        let mut lower = mtr.allocate(self.new_directory(depth + 1))?;
        let word = Swip(directory.view().u64(slot.at));
        let seed = directory.view().u64(SEED);
        init(lower.page_mut(), used, prefix_of(hash, used), seed);
        put_u64(lower.page_mut(), self.form.swip_at(0), word.0);
        mtr.adopt(word, &lower);
        let swip = lower.swip();
        let byte = self.form.byte_at(slot.index);
        let page = directory.page_mut();
        put_u64(page, slot.at, swip.0);
        if let Some(byte) = page.get_mut(byte) {
            *byte |= DIRECTORY_FLAG;
        }
        mtr.adopt(swip, &directory);
        Ok(Grown::Again)
    }

    /// Splits a bucket by the next bit of its hashes.
    fn split<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        mut directory: Write<'o, P>,
        mut bucket: Write<'o, P>,
        slot: Slot,
        hash: u64,
    ) -> Try<()> {
        let mut upper = mtr.allocate(self.new_bucket())?;
        let old = PageBuffer::copy_of(bucket.page());
        let view = Bucket(old.view());
        let (bits, prefix) = (slot.bits() + 1, prefix_of(hash, slot.bits()));
        let bit = 1 << (64 - bits.clamp(1, 64));
        let (mut low, mut high) = (BucketMut(bucket.page_mut()), BucketMut(upper.page_mut()));
        low.init(bits, prefix);
        high.init(bits, prefix | bit);
        for i in 0..view.count() {
            let (key, value) = parts(old.bytes(), view.entry(i));
            let target = if self.hash(key) & bit == 0 { &mut low } else { &mut high };
            target.push(view.word(i), key, value);
        }
        debug_assert!(u32::from(slot.depth) < self.form.bits());
        let depth = slot.depth + 1;
        let middle = slot.index + run_of(self.form, depth);
        let swip = upper.swip();
        let page = directory.page_mut();
        set_depth(page, self.form, slot.index, depth);
        set_depth(page, self.form, middle, depth);
        put_u64(page, self.form.swip_at(middle), swip.0);
        mtr.adopt(swip, &directory);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::hash_index::{HashIndex, WriteError};
    use crate::pool::{Optimistic, Twin};

    #[test]
    fn keys_that_collide_in_all_bits_are_refused_and_the_others_stay() {
        let twin = Arc::new(Twin::<Optimistic>::new(512).unwrap());
        let mut index = HashIndex::create(twin, 1, 1).unwrap();
        // Hashes seem to have no more bits than the root uses.
        index.bits_max = index.form.bits();
        let mut inserted = Vec::new();
        let mut refused = 0;
        for n in 0..2000u32 {
            match index.insert(&n.to_be_bytes(), &[n as u8; 20]) {
                Ok(new) => {
                    assert!(new);
                    inserted.push(n);
                }
                Err(WriteError::Collisions { bits: 5 }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(refused > 1000, "32 buckets do not hold 1000 entries");
        assert_eq!(index.check().unwrap().violations, []);
        assert_eq!(index.len().unwrap(), inserted.len() as u64);
        assert!(inserted.iter().all(|n| index.contains(&n.to_be_bytes()).unwrap()));
    }
}
