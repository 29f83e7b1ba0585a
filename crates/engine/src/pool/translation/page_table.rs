//! Translation by hash table: page id to frame (leanstore fig. 2a), for comparison with swips.
//!
//! The table is an array of buckets. Each has its own latch and the head of a chain that runs
//! through the frames' headers. Readers latch a bucket as the store latches pages: optimistically,
//! shared, or not at all.
//!
//! # Invariants
//! 1. A chain changes only under its bucket's exclusive latch.
//! 2. A page is in the chain of its hash, at most once; its frame's `next` belongs to that chain.

use std::marker::PhantomData;

use millpond_base::sync::atomic::{AtomicU32, Ordering};
use millpond_base::{FrameId, PageId};

use crate::pool::latch::{Latch, Latching};
use crate::pool::memory::region::FrameMemory;

struct Bucket {
    latch: Latch,
    head: AtomicU32,
}

const END: u32 = u32::MAX;

/// The frame of each page in memory.
pub struct PageTable<L: Latching> {
    buckets: Box<[Bucket]>,
    shift: u32,
    _latching: PhantomData<L>,
}

/// The bucket's latch was unavailable, or its version changed: look again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy;

impl<L: Latching> PageTable<L> {
    /// Returns a table for `frames` frames: one bucket per frame, rounded up to a power of two.
    pub fn new(frames: u32) -> PageTable<L> {
        let buckets = (frames.max(2) as usize).next_power_of_two();
        let bucket = |_| Bucket { latch: Latch::default(), head: AtomicU32::new(END) };
        PageTable {
            buckets: (0..buckets).map(bucket).collect(),
            shift: 64 - buckets.trailing_zeros(),
            _latching: PhantomData,
        }
    }

    /// Returns the bytes of the table of `frames` frames.
    pub fn bytes(frames: u32) -> u64 {
        (frames.max(2) as usize).next_power_of_two() as u64 * size_of::<Bucket>() as u64
    }

    #[inline(always)]
    fn bucket(&self, page: PageId) -> &Bucket {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the id.
        let hash = page.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        &self.buckets[hash as usize & (self.buckets.len() - 1)]
    }

    /// Returns the frame that holds `page`, if it is in memory. The frame may hold another page by
    /// the time the caller has latched it, and must be checked again under the latch.
    ///
    /// # Errors
    /// [`Busy`]: another thread changes the bucket.
    #[inline(always)]
    pub fn find(&self, memory: &FrameMemory, page: PageId) -> Result<Option<FrameId>, Busy> {
        let bucket = self.bucket(page);
        let token = L::read_patiently(&bucket.latch).ok_or(Busy)?;
        let found = self.walk(memory, bucket, page);
        let valid = L::validate(&bucket.latch, token);
        L::end(&bucket.latch, token);
        if valid { Ok(found) } else { Err(Busy) }
    }

    #[inline(always)]
    fn walk(&self, memory: &FrameMemory, bucket: &Bucket, page: PageId) -> Option<FrameId> {
        let mut next = bucket.head.load(Ordering::Acquire);
        // An optimistic reader may follow links in a cycle: a bound ends that.
        for _ in 0..memory.frames() {
            let header = memory.header(FrameId(next))?;
            if header.page() == Some(page) {
                return Some(FrameId(next));
            }
            next = header.next.load(Ordering::Acquire);
        }
        None
    }

    /// Adds `page`, which `frame` holds.
    pub fn insert(&self, memory: &FrameMemory, page: PageId, frame: FrameId) {
        let bucket = self.bucket(page);
        while !L::write_patiently(&bucket.latch) {
            millpond_base::sync::thread::yield_now();
        }
        if let Some(header) = memory.header(frame) {
            debug_assert_eq!(header.page(), Some(page), "a frame is entered with its page");
            debug_assert!(self.walk(memory, bucket, page).is_none(), "{page:?} is in memory twice");
            header.next.store(bucket.head.load(Ordering::Relaxed), Ordering::Release);
            bucket.head.store(frame.0, Ordering::Release);
        }
        bucket.latch.release_exclusive();
    }

    /// Removes `page`, if the bucket's latch is available; returns whether it was.
    pub fn try_remove(&self, memory: &FrameMemory, page: PageId, frame: FrameId) -> bool {
        let bucket = self.bucket(page);
        if !L::write_patiently(&bucket.latch) {
            return false;
        }
        self.unlink(memory, bucket, frame);
        bucket.latch.release_exclusive();
        true
    }

    /// Removes `page`, waiting for the bucket's latch.
    pub fn remove(&self, memory: &FrameMemory, page: PageId, frame: FrameId) {
        while !self.try_remove(memory, page, frame) {
            millpond_base::sync::thread::yield_now();
        }
    }

    fn unlink(&self, memory: &FrameMemory, bucket: &Bucket, frame: FrameId) {
        let mut link = &bucket.head;
        for _ in 0..=memory.frames() {
            let at = link.load(Ordering::Relaxed);
            let Some(header) = memory.header(FrameId(at)) else { return };
            if at == frame.0 {
                link.store(header.next.load(Ordering::Relaxed), Ordering::Release);
                header.next.store(END, Ordering::Release);
                return;
            }
            link = &header.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::latch::{Latched, Optimistic, Unlatched};

    fn pages_are_found_until_they_are_removed<L: Latching>() {
        let memory = FrameMemory::map(64, 512).unwrap();
        let table = PageTable::<L>::new(8);
        for i in 0..64 {
            memory.initialise(FrameId(i));
            memory.header(FrameId(i)).unwrap().set_page(Some(PageId(u64::from(i) * 7)));
            table.insert(&memory, PageId(u64::from(i) * 7), FrameId(i));
        }
        for i in 0..64u32 {
            let page = PageId(u64::from(i) * 7);
            assert_eq!(table.find(&memory, page), Ok(Some(FrameId(i))));
            assert!(table.try_remove(&memory, page, FrameId(i)));
            assert_eq!(table.find(&memory, page), Ok(None));
        }
        assert_eq!(table.find(&memory, PageId(1)), Ok(None));
    }

    #[test]
    fn pages_are_found_under_each_way_of_latching() {
        pages_are_found_until_they_are_removed::<Optimistic>();
        pages_are_found_until_they_are_removed::<Latched>();
        pages_are_found_until_they_are_removed::<Unlatched>();
    }
}
