//! The in-memory twin: the same structures with the same latches on plain memory, without a pool
//! (leanstore V-A). It is the ceiling that the pool is measured against.
//!
//! A swip is always a hot pointer; nothing is ever evicted, written or recorded. Frames of freed
//! pages are reused with the same latch word, so that outdated readers notice. This file needs
//! `unsafe`.

use std::marker::PhantomData;
use std::path::Path;
use std::ptr::NonNull;

use millpond_base::sync::atomic::{AtomicU64, Ordering};
use millpond_base::sync::{Mutex, MutexGuard};
use millpond_base::{Mark, PageId};

use crate::page::PageHeader;
use crate::pool::anchors::Anchor;
use crate::pool::borrowed::back_off;
use crate::pool::error::PoolError;
use crate::pool::frame::FrameHeader;
use crate::pool::guard::{Read, Write};
use crate::pool::jump::{Cold, Jump, Ordered, Try};
use crate::pool::kind::ANCHOR_SWIP;
use crate::pool::latch::Latching;
use crate::pool::memory::frame_page;
use crate::pool::mini_transaction::{MiniTransaction, NoLog, PageMemory, References};
use crate::pool::pages::{NewPage, Pages};
use crate::pool::swip::Swip;
use crate::pool::twin::twin_memory::TwinMemory;

/// Plain memory that holds pages, latched by `L`.
pub struct Twin<L: Latching> {
    page_size: usize,
    memory: Mutex<TwinMemory>,
    /// Number of pages ever created, which is the id of the next one.
    pages: AtomicU64,
    /// Number of pages that were freed; at most `pages`.
    freed: AtomicU64,
    _latching: PhantomData<L>,
}

// SAFETY: the addresses in `memory` are owned by the twin and reached through the mutex or
// through guards, which obey the latches; L is a marker.
unsafe impl<L: Latching> Send for Twin<L> {}
// SAFETY: as above.
unsafe impl<L: Latching> Sync for Twin<L> {}

impl<L: Latching> Twin<L> {
    /// Returns memory for pages of `page_size` bytes, a power of two from 512.
    ///
    /// # Errors
    /// Another page size.
    pub fn new(page_size: usize) -> Result<Twin<L>, PoolError> {
        Twin::on(page_size, || Ok(TwinMemory::plain(page_size)))
    }

    /// Returns memory of shared mappings of a new file in `folder`, which has no name and is
    /// deleted with the twin. Under a memory limit the operating system pages it in and out
    /// (leanstore V-C).
    ///
    /// # Errors
    /// Another page size, or the file cannot be created.
    pub fn in_file(page_size: usize, folder: &Path) -> Result<Twin<L>, PoolError> {
        Twin::on(page_size, || TwinMemory::in_file(page_size, folder))
    }

    fn on(
        page_size: usize,
        memory: impl FnOnce() -> Result<TwinMemory, PoolError>,
    ) -> Result<Twin<L>, PoolError> {
        if !page_size.is_power_of_two() || !(512..=1 << 16).contains(&page_size) {
            return Err(PoolError::PageSize { page_size: page_size as u64 });
        }
        let memory = Mutex::new(memory()?);
        let (pages, freed) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Twin { page_size, memory, pages, freed, _latching: PhantomData })
    }

    /// Returns the number of pages in use.
    pub fn len(&self) -> u64 {
        self.pages.load(Ordering::Relaxed).saturating_sub(self.freed.load(Ordering::Relaxed))
    }

    /// Returns whether no page is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn memory(&self) -> MutexGuard<'_, TwinMemory> {
        match self.memory.lock() {
            Ok(memory) => memory,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// Creates a page, and returns its frame, latched exclusively.
    fn fresh(&self, new: NewPage) -> Result<NonNull<FrameHeader>, PoolError> {
        let frame = self.memory().take()?;
        let id = PageId(self.pages.fetch_add(1, Ordering::Relaxed));
        // SAFETY: taken from the free list, so no other thread writes it; outdated readers use raw
        // reads and the latch's version, which the exclusive hold below will change.
        unsafe {
            // A late writer may hold it for a moment, until it has validated its parent again.
            while !L::write_patiently(&frame.as_ref().latch) {
                millpond_base::sync::thread::yield_now();
            }
            frame.as_ref().set_page(Some(id));
            let page = frame_page::bytes_mut(frame, self.page_size);
            page.fill(0);
            let (kind, level) = (new.kind, new.level);
            let lsn = millpond_base::Lsn(0);
            PageHeader { checksum: 0, lsn, page: id, owner: new.owner, kind, level }.write(page);
        }
        Ok(frame)
    }
}

impl<L: Latching> PageMemory for Twin<L> {
    type Latching = L;
    type Local = ();
    type Log = NoLog;

    #[inline(always)]
    fn page_size(&self) -> usize {
        self.page_size
    }

    #[inline(always)]
    fn local(&self) {}

    #[inline(always)]
    fn enter(&self, (): ()) {}

    #[inline(always)]
    fn leave(&self, (): (), _: References, _: bool) {}

    #[cold]
    fn settle(&self, jump: Jump, attempt: u32) -> Result<bool, PoolError> {
        match jump {
            Jump::Restart => back_off(attempt)?,
            Jump::Cold(cold) => match *cold {
                Cold::Failed(error) => return Err(error),
                Cold::Load(load) => {
                    let what = "a swip of the twin does not point to memory".to_string();
                    return Err(PoolError::Corrupt { page: load.page, what });
                }
                Cold::Room(_) => {}
            },
        }
        Ok(false)
    }
}

impl<L: Latching> Pages for Twin<L> {
    const OVERLAPS: bool = L::OPTIMISTIC;

    #[inline(always)]
    fn child<'o>(&'o self, parent: &Read<'o, Self>, at: usize, _: Mark) -> Try<Read<'o, Self>> {
        let word = parent.swip(at);
        parent.validate()?;
        let frame = word.frame().ok_or_else(|| Jump::null_swip(parent.header().page(), at))?;
        // SAFETY: the parent had not changed after the swip was read, so the word is a swip that
        // this twin made, of a frame that it keeps.
        let child = unsafe { Read::begin(parent.mtr(), frame) }?;
        parent.validate()?;
        Ok(child)
    }

    #[inline(always)]
    fn child_exclusive<'o>(
        &'o self,
        parent: &Read<'o, Self>,
        at: usize,
        _: Mark,
    ) -> Try<Write<'o, Self>> {
        let word = parent.swip(at);
        parent.validate()?;
        let frame = word.frame().ok_or_else(|| Jump::null_swip(parent.header().page(), at))?;
        // SAFETY: as in `child`.
        let child = unsafe { Write::begin(parent.mtr(), frame) }?;
        parent.validate()?;
        Ok(child)
    }

    fn child_of_held<'o>(
        &'o self,
        parent: &Write<'o, Self>,
        at: usize,
        _: Mark,
    ) -> Try<Write<'o, Self>> {
        let frame = Swip(parent.view().u64(at)).frame();
        let frame = frame.ok_or_else(|| Jump::null_swip(parent.header().page(), at))?;
        // SAFETY: the parent is held, so the word is a swip that this twin made.
        unsafe { Write::begin(parent.mtr(), frame) }
    }

    fn allocate<'o>(
        &'o self,
        mtr: &'o MiniTransaction<'o, Self>,
        new: NewPage,
    ) -> Try<Write<'o, Self>> {
        // SAFETY: `fresh` latched the frame for us.
        Ok(unsafe { Write::held(mtr, self.fresh(new).map_err(Jump::failed)?) })
    }

    fn free(&self, page: Write<'_, Self>) {
        let frame = page.into_frame();
        // SAFETY: a frame of this twin; the guard held it exclusively.
        let header = unsafe { frame.as_ref() };
        header.set_page(None);
        header.latch.release_exclusive();
        self.memory().give_back(frame);
        self.freed.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    fn swip(&self, page: &Write<'_, Self>) -> Swip {
        Swip::hot(page.frame())
    }

    fn page_of(&self, _: Swip) -> PageId {
        PageId(0)
    }

    fn adopt(&self, _: Swip, _: NonNull<FrameHeader>) {}

    fn is_resident(&self, _: Swip) -> bool {
        true
    }

    fn order_reads<'o>(&'o self, _: &Read<'o, Self>, at: &[usize]) -> Ordered {
        Ordered { reads: 0, passed: at.len() }
    }

    fn begin_reads(&self) {}

    fn ahead_max(&self) -> usize {
        0
    }

    fn make_ready(&self, _: u32) -> Result<(), PoolError> {
        Ok(())
    }

    fn make_log_room(&self, _: usize) -> Result<(), PoolError> {
        Ok(())
    }

    fn anchor(&self, root: PageId) -> Result<Anchor, PoolError> {
        let what = "the twin keeps nothing that could be opened again".to_string();
        Err(PoolError::Corrupt { page: root, what })
    }

    fn anchor_new(&self, new: NewPage) -> Result<(Anchor, PageId), PoolError> {
        let root = self.fresh(new)?;
        let anchor = self.memory().take()?;
        // SAFETY: both were just taken; the anchor's page has room for a swip at that offset,
        // which is aligned to 8.
        unsafe {
            frame_page::store_swip(anchor, self.page_size, ANCHOR_SWIP, Swip::hot(root));
            root.as_ref().latch.release_exclusive();
            Ok((Anchor::only(anchor), root.as_ref().page().unwrap_or_default()))
        }
    }

    fn anchor_empty(&self, _: u32, _: bool) -> Result<Anchor, PoolError> {
        let anchor = self.memory().take()?;
        // SAFETY: just taken; its page has room for a swip at that offset, aligned to 8.
        unsafe { frame_page::store_swip(anchor, self.page_size, ANCHOR_SWIP, Swip::NULL) };
        Ok(Anchor::only(anchor))
    }

    fn release_anchor(&self, _: Anchor) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageType;
    use crate::pool::latch::{Latched, Optimistic, Unlatched};

    const LEAF: NewPage = NewPage { owner: 1, kind: PageType::BTREE_LEAF, level: 0 };

    fn a_page_written_is_a_page_read<L: Latching>(twin: &Twin<L>) {
        let (anchor, _) = twin.anchor_new(LEAF).unwrap();
        twin.run(|mtr| {
            let parent = Read::anchor(mtr, anchor)?;
            let mut root = parent.child_exclusive(ANCHOR_SWIP, Mark::WRITE)?;
            root.page_mut()[100..104].copy_from_slice(b"pond");
            Ok(())
        })
        .unwrap();
        let seen = twin
            .run(|mtr| {
                let root = Read::root(mtr, anchor, Mark::READ)?;
                let mut out = [0; 4];
                root.view().copy_into(100, &mut out);
                root.validate()?;
                Ok(out)
            })
            .unwrap();
        assert_eq!(&seen, b"pond");
    }

    #[test]
    fn pages_are_written_and_read_under_each_way_of_latching() {
        a_page_written_is_a_page_read(&Twin::<Optimistic>::new(4096).unwrap());
        a_page_written_is_a_page_read(&Twin::<Latched>::new(4096).unwrap());
        a_page_written_is_a_page_read(&Twin::<Unlatched>::new(4096).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let mapped = Twin::<Optimistic>::in_file(4096, folder.path()).unwrap();
        a_page_written_is_a_page_read(&mapped);
    }

    #[test]
    fn a_reader_finds_out_that_its_page_was_freed_and_used_again() {
        let twin = Twin::<Optimistic>::new(4096).unwrap();
        let (anchor, _) = twin.anchor_new(LEAF).unwrap();
        let mut first = true;
        twin.run(|mtr| {
            let root = Read::root(mtr, anchor, Mark::READ)?;
            if std::mem::take(&mut first) {
                let page = mtr.allocate(LEAF)?;
                let frame = page.frame();
                assert_eq!(twin.len(), 2);
                page.free();
                assert_eq!(twin.len(), 1);
                // SAFETY: a frame of this twin.
                let stale = unsafe { Read::begin(mtr, frame) }?;
                stale.validate()?;
                let again = mtr.allocate(LEAF)?;
                assert_eq!(again.frame(), frame, "the last frame freed is the first reused");
                assert!(stale.validate().is_err());
            }
            root.validate()
        })
        .unwrap();
    }

    #[test]
    fn a_page_is_shared_at_the_version_that_was_read_and_keeps_writers_out() {
        let twin = Twin::<Optimistic>::new(4096).unwrap();
        let (anchor, _) = twin.anchor_new(LEAF).unwrap();
        twin.run(|mtr| {
            let write = || Read::anchor(mtr, anchor)?.child_exclusive(ANCHOR_SWIP, Mark::WRITE);
            let outdated = Read::root(mtr, anchor, Mark::READ)?;
            write()?.page_mut()[100..104].copy_from_slice(b"pond");
            assert!(outdated.share(&twin, 100, 4).is_err(), "the page changed");
            let held = Read::root(mtr, anchor, Mark::READ)?.share(&twin, 100, 4)?.unwrap();
            let more = Read::root(mtr, anchor, Mark::READ)?.share(&twin, 102, 2)?.unwrap();
            assert_eq!((held.bytes(), more.bytes()), (&b"pond"[..], &b"nd"[..]));
            drop(held);
            assert!(write().is_err(), "it is shared still");
            drop(more);
            assert!(write().is_ok());
            for (at, len) in [(4096, 1), (4090, 7), (usize::MAX, 1), (1, usize::MAX)] {
                let page = Read::root(mtr, anchor, Mark::READ)?;
                assert!(page.share(&twin, at, len)?.is_none(), "beyond the page");
            }
            let other = Twin::<Optimistic>::new(4096).unwrap();
            assert!(Read::root(mtr, anchor, Mark::READ)?.share(&other, 0, 4)?.is_none());
            assert!(write().is_ok(), "nothing was left latched");
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn a_reference_to_nothing_is_an_error_and_no_endless_restart() {
        let twin = Twin::<Optimistic>::new(4096).unwrap();
        let (anchor, _) = twin.anchor_new(LEAF).unwrap();
        let result = twin.run(|mtr| {
            let root = Read::root(mtr, anchor, Mark::READ)?;
            root.child(64, Mark::READ).map(|_| ())
        });
        assert!(matches!(result, Err(PoolError::Corrupt { .. })), "{result:?}");
    }

    #[test]
    fn an_odd_page_size_is_refused() {
        assert!(matches!(Twin::<Latched>::new(5000), Err(PoolError::PageSize { .. })));
    }
}
