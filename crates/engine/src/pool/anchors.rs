//! Anchors: where the swips of roots are, outside any page. This file needs `unsafe`.
//!
//! An anchor is a frame of its own, a header and a page, so that a root has a parent like any other
//! page: it is latched, versioned and searched for swips in the same way. It holds one swip and the
//! stamp of its root, has no frame id, is never evicted and never reaches storage.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use millpond_base::FrameId;
use millpond_base::sync::Mutex;

use crate::page::PageHeader;
use crate::pool::error::PoolError;
use crate::pool::frame::{FRAME_HEADER_BYTES, FrameHeader};
use crate::pool::kind::{ANCHOR_STAMP, ANCHOR_SWIP};
use crate::pool::memory::frame_page;
use crate::pool::swip::Swip;
use crate::pool::sync::locked::locked;

/// The memory of an anchor, of the layout of [`Anchors`] that allocated it.
struct AnchorMemory(NonNull<FrameHeader>);

// SAFETY: an address that the pool owns, reached through latches.
unsafe impl Send for AnchorMemory {}

/// The anchors of a pool.
pub(crate) struct Anchors {
    page_size: usize,
    /// A header and a page of `page_size` bytes, as aligned as a frame.
    layout: Layout,
    /// Anchors that a structure has, each at most once.
    used: Mutex<Vec<AnchorMemory>>,
    /// Released anchors. They are reused, and their memory stays until the pool is dropped: a late
    /// reader may still look at one, and finds that its version changed.
    released: Mutex<Vec<AnchorMemory>>,
}

impl Anchors {
    /// No anchor, for pages of `page_size` bytes.
    ///
    /// # Errors
    /// [`PoolError::Memory`]: the size is absurd.
    pub(crate) fn new(page_size: usize) -> Result<Anchors, PoolError> {
        let bytes = FRAME_HEADER_BYTES + page_size;
        let layout = Layout::from_size_align(bytes, align_of::<FrameHeader>())
            .map_err(|e| PoolError::Memory { bytes: bytes as u64, reason: e.to_string() })?;
        Ok(Anchors { page_size, layout, used: Mutex::default(), released: Mutex::default() })
    }

    /// Returns an anchor that holds the swip `word` of a root of the structure `owner`.
    ///
    /// # Errors
    /// [`PoolError::Memory`]: there is none.
    pub(crate) fn take(&self, word: Swip, owner: u32) -> Result<NonNull<FrameHeader>, PoolError> {
        debug_assert!(!word.is_swizzled(), "no page is known to have this parent: {word:?}");
        let released = locked(&self.released).pop();
        let anchor = match released {
            Some(anchor) => anchor,
            None => self.allocate()?,
        };
        let frame = anchor.0;
        // SAFETY: allocated by `allocate`, and kept until the pool is dropped.
        let header = unsafe { frame.as_ref() };
        // A late reader of a released anchor may hold it for a moment.
        while !header.latch.exclusive() {
            millpond_base::sync::thread::yield_now();
        }
        debug_assert_eq!(header.id(), FrameId::NONE, "an anchor has no frame id");
        debug_assert_eq!(header.page(), None, "an anchor holds no page");
        // SAFETY: a header and a page of that size, latched exclusively just now.
        unsafe {
            PageHeader::of_anchor(owner).write(frame_page::bytes_mut(frame, self.page_size));
            frame_page::store_swip(frame, self.page_size, ANCHOR_SWIP, word);
            frame_page::store_swip(frame, self.page_size, ANCHOR_STAMP, Swip(0));
        }
        header.latch.release_exclusive();
        locked(&self.used).push(anchor);
        Ok(frame)
    }

    /// Takes the anchor at `frame` back from its structure.
    pub(crate) fn release(&self, frame: NonNull<FrameHeader>) {
        let mut used = locked(&self.used);
        let place = used.iter().position(|anchor| anchor.0 == frame);
        debug_assert!(place.is_some(), "an anchor of another pool");
        if let Some(place) = place {
            let released = used.swap_remove(place);
            drop(used);
            locked(&self.released).push(released);
        }
    }

    fn allocate(&self) -> Result<AnchorMemory, PoolError> {
        // SAFETY: the layout has a size.
        let memory = NonNull::new(unsafe { alloc_zeroed(self.layout) });
        let memory = memory.ok_or_else(|| PoolError::Memory {
            bytes: self.layout.size() as u64,
            reason: "an anchor".to_string(),
        })?;
        let frame = memory.cast::<FrameHeader>();
        // SAFETY: fresh, aligned memory with room for a header.
        unsafe { frame.write(FrameHeader::new(FrameId::NONE)) };
        Ok(AnchorMemory(frame))
    }
}

impl Drop for Anchors {
    fn drop(&mut self) {
        let mut released = locked(&self.released);
        for anchor in locked(&self.used).drain(..).chain(released.drain(..)) {
            // SAFETY: allocated with this layout by `allocate`; guards borrow the pool.
            unsafe { dealloc(anchor.0.as_ptr().cast(), self.layout) };
        }
    }
}
