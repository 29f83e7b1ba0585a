//! Anchors hold the swips of roots, outside any stored page. This file needs `unsafe`.
//!
//! An anchor is a frame of its own, a header and a page. A root thus has a parent like any other
//! page: the anchor is latched, versioned and searched for swips like a page. It holds one swip and
//! the stamp of its root, has no frame id, is never evicted and never reaches storage.
//!
//! A transaction has an anchor for each large value that it replaced or removed, perhaps a hundred
//! thousand. Such anchors take 16 bytes each, and share pages with others of the same structure and
//! thread.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use hashbrown::HashMap;
use millpond_base::FrameId;
use millpond_base::sync::Mutex;

use crate::page::PageHeader;
use crate::pool::error::PoolError;
use crate::pool::frame::{FRAME_HEADER_BYTES, FrameHeader};
use crate::pool::kind::{ANCHOR_BYTES, ANCHOR_STAMP, ANCHOR_SWIP, LEVEL_SHARED};
use crate::pool::memory::frame_page;
use crate::pool::swip::Swip;
use crate::pool::sync::locked::locked;

/// Parent of a structure's root: holds the root's swip outside any stored page.
///
/// Valid only with the [`Pages`](super::pages::Pages) that returned it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Anchor {
    pub(crate) frame: NonNull<FrameHeader>,
    /// Byte offset of the swip in the anchor's page; the stamp of the root follows it.
    at: u32,
}

impl Anchor {
    /// Returns the anchor that has the page of `frame` to itself.
    pub(crate) fn only(frame: NonNull<FrameHeader>) -> Anchor {
        Anchor::at(frame, ANCHOR_SWIP)
    }

    /// Returns the anchor at byte offset `at` of its page.
    pub(crate) fn at(frame: NonNull<FrameHeader>, at: usize) -> Anchor {
        // Pages have at most 64 KiB.
        Anchor { frame, at: at as u32 }
    }

    /// Returns the byte offset of the swip in its page.
    #[inline]
    pub fn swip(self) -> usize {
        self.at as usize
    }

    /// Returns the byte offset of the root's stamp. A stamp of 0 means that the root has none, or
    /// that it is not known.
    #[inline]
    pub fn stamp(self) -> usize {
        self.swip() + ANCHOR_STAMP - ANCHOR_SWIP
    }
}

// SAFETY: an anchor is an address inside memory that the pool keeps until it is dropped; the page
// behind it is reached only through guards.
unsafe impl Send for Anchor {}
// SAFETY: as above.
unsafe impl Sync for Anchor {}

/// Memory of an anchor, allocated with the layout that [`Anchors`] holds.
struct AnchorMemory(NonNull<FrameHeader>);

// SAFETY: an address that the pool owns, reached through latches.
unsafe impl Send for AnchorMemory {}

/// The anchors of a pool.
pub(crate) struct Anchors {
    page_size: usize,
    /// Layout of a header and a page of `page_size` bytes, aligned like a frame.
    layout: Layout,
    /// Anchors in use by a structure, each at most once.
    used: Mutex<Vec<AnchorMemory>>,
    /// Released anchors, to be reused. Their memory stays until the pool is dropped: a late reader
    /// may still read a released anchor, and then finds that its version changed.
    released: Mutex<Vec<AnchorMemory>>,
    shared: Mutex<SharedPages>,
}

/// Pages that anchors share; each belongs to one owner and one thread's slot.
#[derive(Default)]
struct SharedPages {
    /// Pages by the address of their frame.
    pages: HashMap<usize, SharedPage>,
    /// For each owner and thread slot, the page from which anchors are taken.
    open: HashMap<(u32, usize), SharedFrame>,
}

/// A frame that the pool owns.
#[derive(Clone, Copy)]
struct SharedFrame(NonNull<FrameHeader>);

// SAFETY: an address that the pool owns, reached through latches.
unsafe impl Send for SharedFrame {}

struct SharedPage {
    of: (u32, usize),
    /// Byte offsets of free anchors.
    free: Vec<u16>,
    used: usize,
}

impl Anchors {
    /// Returns an empty set of anchors, for pages of `page_size` bytes.
    ///
    /// # Errors
    /// [`PoolError::Memory`]: the size is absurd.
    pub(crate) fn new(page_size: usize) -> Result<Anchors, PoolError> {
        let bytes = FRAME_HEADER_BYTES + page_size;
        let layout = Layout::from_size_align(bytes, align_of::<FrameHeader>())
            .map_err(|e| PoolError::Memory { bytes: bytes as u64, reason: e.to_string() })?;
        let (used, released) = (Mutex::default(), Mutex::default());
        Ok(Anchors { page_size, layout, used, released, shared: Mutex::default() })
    }

    /// Returns an anchor that holds the swip `word` of a root of the structure `owner`, alone in
    /// its page.
    ///
    /// # Errors
    /// [`PoolError::Memory`] if no memory is left.
    pub(crate) fn take(&self, word: Swip, owner: u32) -> Result<NonNull<FrameHeader>, PoolError> {
        self.take_page(word, PageHeader::of_anchor(owner))
    }

    /// Returns an anchor of the structure `owner` that shares its page and has no root yet, for the
    /// thread with slot `thread`.
    ///
    /// # Errors
    /// [`PoolError::Memory`] if no memory is left.
    pub(crate) fn take_shared(&self, owner: u32, thread: usize) -> Result<Anchor, PoolError> {
        let mut shared = locked(&self.shared);
        let SharedPages { pages, open } = &mut *shared;
        let of = (owner, thread);
        let frame = match open.get(&of) {
            Some(frame) => frame.0,
            None => {
                let level = LEVEL_SHARED;
                let header = PageHeader { level, ..PageHeader::of_anchor(owner) };
                let frame = self.take_page(Swip::NULL, header)?;
                let last = (self.page_size - ANCHOR_SWIP) / ANCHOR_BYTES;
                let place = |number| (ANCHOR_SWIP + number * ANCHOR_BYTES) as u16;
                let page = SharedPage { of, free: (0..last).rev().map(place).collect(), used: 0 };
                pages.insert(frame.as_ptr() as usize, page);
                open.insert(of, SharedFrame(frame));
                frame
            }
        };
        let page = pages.get_mut(&(frame.as_ptr() as usize));
        let place = page.and_then(|page| {
            let place = page.free.pop()?;
            page.used += 1;
            if page.free.is_empty() {
                open.remove(&of);
            }
            Some(place)
        });
        let place = place.ok_or_else(|| PoolError::Memory {
            bytes: ANCHOR_BYTES as u64,
            reason: "an anchor".to_string(),
        })?;
        Ok(Anchor::at(frame, place.into()))
    }

    /// Releases an anchor that shares its page; returns `false` if it does not share one.
    fn release_shared(&self, anchor: Anchor) -> bool {
        let mut shared = locked(&self.shared);
        let SharedPages { pages, open } = &mut *shared;
        let address = anchor.frame.as_ptr() as usize;
        let Some(page) = pages.get_mut(&address) else { return false };
        page.used -= 1;
        page.free.push(anchor.swip() as u16);
        let of = page.of;
        if page.used == 0 {
            pages.remove(&address);
            if open.get(&of).is_some_and(|open| open.0 == anchor.frame) {
                open.remove(&of);
            }
            drop(shared);
            self.release_page(anchor.frame);
        } else {
            open.entry(of).or_insert(SharedFrame(anchor.frame));
        }
        true
    }

    fn take_page(
        &self,
        word: Swip,
        page_header: PageHeader,
    ) -> Result<NonNull<FrameHeader>, PoolError> {
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
            let page = frame_page::bytes_mut(frame, self.page_size);
            if page_header.level == LEVEL_SHARED {
                page.fill(0);
            }
            page_header.write(page);
            frame_page::store_swip(frame, self.page_size, ANCHOR_SWIP, word);
            frame_page::store_swip(frame, self.page_size, ANCHOR_STAMP, Swip(0));
        }
        header.latch.release_exclusive();
        locked(&self.used).push(anchor);
        Ok(frame)
    }

    /// Releases `anchor`, which its structure no longer uses.
    pub(crate) fn release(&self, anchor: Anchor) {
        if !self.release_shared(anchor) {
            self.release_page(anchor.frame);
        }
    }

    fn release_page(&self, frame: NonNull<FrameHeader>) {
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

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn anchors_that_are_kept_share_pages_which_are_used_again() {
        let anchors = Anchors::new(4096).unwrap();
        let take = |n: u32| anchors.take_shared(7 + n % 2, 3).unwrap();
        let taken: Vec<Anchor> = (0..1000).map(take).collect();
        let frames: HashSet<_> = taken.iter().map(|anchor| anchor.frame).collect();
        let places: HashSet<_> = taken.iter().map(|anchor| (anchor.frame, anchor.swip())).collect();
        // Each owner has its own; 254 fit a page.
        assert_eq!((frames.len(), places.len()), (4, 1000));
        taken.into_iter().for_each(|anchor| anchors.release(anchor));
        assert_eq!((locked(&anchors.used).len(), locked(&anchors.released).len()), (0, 4));
        let again = take(0);
        assert!(frames.contains(&again.frame));
        assert!(frames.contains(&anchors.take(Swip::NULL, 7).unwrap()));
        assert_eq!(locked(&anchors.released).len(), 2);
    }
}
