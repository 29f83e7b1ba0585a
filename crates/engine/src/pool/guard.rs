//! Guards: the right to read one page, to change it, or to keep a part of it as it is. This file
//! needs `unsafe`. It knows frames and latches, not the pool: `resolve.rs` follows swips.
//!
//! A guard is obtained from its parent's guard, or from an anchor, and only while the parent is
//! still valid. The frame of the guard therefore held the wanted page at that moment. Frames are
//! never unmapped while the pool lives, so even an outdated guard reads mapped memory; validation
//! then fails.
//!
//! # Writers of a page
//!
//! [`Shared`] gives out a reference into a page, so no thread may write there while it lives. A
//! page is written through [`Write::page_mut`] and `Write::page_mut_with_redo`. `Frames::set_swip`
//! writes to it when a child is attached, evicted or cools. `Frames::bytes` gives access to a frame
//! that was free, and to a page that changed, to set its LSN. The twin writes to a page that it
//! creates. All of these hold the frame's latch exclusively, with `latching = none`, too.
//! Write-back only reads the page: checksum and page ids go into its copy. A frame is evicted or
//! freed only under its exclusive latch, so a shared page also keeps its frame, without an epoch.

use std::marker::PhantomData;
use std::ptr::NonNull;

use millpond_base::PageId;

use crate::page::View;
use crate::pool::borrowed::BorrowedPage;
use crate::pool::frame::{FRAME_HEADER_BYTES, FrameHeader};
use crate::pool::hint::PageHint;
use crate::pool::jump::{Jump, Try};
use crate::pool::latch::{Latch, Latching, ROUNDS_MAX, SPINS_MAX};
use crate::pool::memory::frame_page;
use crate::pool::mini_transaction::{ChangeLog, MiniTransaction, PageMemory};
use crate::pool::swip::Swip;
use crate::stats::Wait;
use crate::stats::counters::Counter;

/// Bytes of a page that are prefetched before it is latched exclusively: a node's header and the
/// slots of a typical leaf.
const PREFETCHED: usize = 384;

/// Waits a little for a latch that is held: calls `attempt` with the number of rounds to try.
#[cold]
#[inline(never)]
fn await_latch<P: PageMemory, T>(pages: &P, attempt: impl Fn(u32) -> Option<T>) -> Option<T> {
    let Some(statistics) = pages.statistics() else { return attempt(ROUNDS_MAX) };
    statistics.count(Counter::LatchConflicts);
    if let Some(held) = attempt(SPINS_MAX) {
        return Some(held);
    }
    let _waiting = statistics.wait(Wait::Latch);
    attempt(ROUNDS_MAX - SPINS_MAX)
}

type Token<P> = <<P as PageMemory>::Latching as Latching>::Token;

/// The right to read a page. The pool's `Latching` makes it optimistic, a shared hold, or
/// unprotected.
pub struct Read<'o, P: PageMemory> {
    mtr: &'o MiniTransaction<'o, P>,
    frame: NonNull<FrameHeader>,
    token: Token<P>,
}

impl<'o, P: PageMemory> Read<'o, P> {
    /// Begins to read `frame`.
    ///
    /// # Safety
    /// `frame` must be a frame or an anchor of the memory of `mtr`. The caller checks afterwards
    /// that it holds the wanted page.
    #[inline(always)]
    pub(crate) unsafe fn begin(
        mtr: &'o MiniTransaction<'o, P>,
        frame: NonNull<FrameHeader>,
    ) -> Try<Read<'o, P>> {
        // SAFETY: a frame of the pool is mapped while the pool lives, and `mtr` borrows the pool.
        let latch: &'o Latch = unsafe { &(*frame.as_ptr()).latch };
        let token = match P::Latching::read(latch) {
            Some(token) => Some(token),
            None => await_latch(mtr.pages(), |rounds| P::Latching::read_within(latch, rounds)),
        };
        match token {
            Some(token) => Ok(Read { mtr, frame, token }),
            None => Err(Jump::Restart),
        }
    }

    /// Returns the mini-transaction that the guard belongs to.
    #[inline(always)]
    pub fn mtr(&self) -> &'o MiniTransaction<'o, P> {
        self.mtr
    }

    /// Returns the frame of the page.
    #[inline(always)]
    pub fn frame(&self) -> NonNull<FrameHeader> {
        self.frame
    }

    /// Returns the frame's header.
    #[inline(always)]
    pub fn header(&self) -> &'o FrameHeader {
        // SAFETY: mapped while the pool lives; all its fields are atomics.
        unsafe { &*self.frame.as_ptr() }
    }

    /// Returns the page, to be read raw; the bytes count only after [`Read::validate`].
    #[inline(always)]
    pub fn view(&self) -> View<'o> {
        // SAFETY: each frame is followed by a page of that size, and stays mapped.
        unsafe { frame_page::view(self.frame, self.mtr.pages().page_size()) }
    }

    /// Returns the swip at byte offset `at`.
    #[inline(always)]
    pub fn swip(&self, at: usize) -> Swip {
        Swip(self.view().u64(at))
    }

    /// Returns the token that the latch gave this reader.
    #[inline(always)]
    pub(crate) fn token(&self) -> Token<P> {
        self.token
    }

    /// Checks that everything read so far is valid.
    ///
    /// # Errors
    /// [`Jump::Restart`] if it is not.
    #[inline(always)]
    pub fn validate(&self) -> Try<()> {
        if P::Latching::validate(&self.header().latch, self.token) {
            Ok(())
        } else {
            Err(Jump::Restart)
        }
    }

    /// Returns a hint that finds the page again, as it was read.
    #[inline]
    pub fn hint(&self) -> Option<PageHint> {
        let header = self.header();
        PageHint::at(header, P::Latching::version(&header.latch, self.token))
    }

    /// Turns the read into a write, if the page did not change since it began.
    ///
    /// # Errors
    /// [`Jump::Restart`] otherwise.
    #[inline(always)]
    pub fn upgrade(self) -> Try<Write<'o, P>> {
        if P::Latching::upgrade(&self.header().latch, self.token) {
            let write = Write { mtr: self.mtr, frame: self.frame, changed: false, logged: false };
            // The read hold became the write hold: it must not be ended, too.
            std::mem::forget(self);
            Ok(write)
        } else {
            Err(Jump::Restart)
        }
    }

    /// Turns the read into a hold of the page's `len` bytes at `at`, if the page did not change
    /// since the read began. Everything read so far is then valid. The hold outlives the
    /// mini-transaction. Returns `None` if the bytes are not all inside the page, or if the
    /// mini-transaction does not run on `pages`.
    /// # Errors
    /// [`Jump::Restart`] if the page did change.
    #[inline]
    pub fn share<'p>(self, pages: &'p P, at: usize, len: usize) -> Try<Option<Shared<'p>>> {
        if !P::Latching::share(&self.header().latch, self.token) {
            return Err(Jump::Restart);
        }
        let (frame, mtr) = (self.frame, self.mtr);
        // The reader's hold, if any, became the shared hold.
        std::mem::forget(self);
        let size = mtr.pages().page_size();
        // SAFETY: a frame stays mapped while its memory lives; if that is not `pages`, then only
        // until the end of this call, during which `mtr` borrows it.
        let latch: &'p Latch = unsafe { &(*frame.as_ptr()).latch };
        if !std::ptr::eq(pages, mtr.pages()) || at > size || len > size - at {
            latch.release_shared();
            return Ok(None);
        }
        // SAFETY: each frame is followed by a page of `size` bytes, and the range is inside it.
        let bytes = unsafe { frame.cast::<u8>().add(FRAME_HEADER_BYTES + at) };
        let bytes = NonNull::slice_from_raw_parts(bytes, len);
        Ok(Some(Shared { latch, bytes, _borrowed: BorrowedPage::begin(), _pages: PhantomData }))
    }
}

impl<P: PageMemory> Drop for Read<'_, P> {
    #[inline(always)]
    fn drop(&mut self) {
        P::Latching::end(&self.header().latch, self.token);
    }
}

/// Some bytes of a page, which neither change nor are evicted until the guard is dropped: its frame
/// is latched in shared mode, however the store latches.
///
/// Other readers are not disturbed, but writers wait, so the hold should be short. Unlike the other
/// guards, it belongs to no mini-transaction, and its thread may run operations while it lives. An
/// operation that would have to wait for this guard fails with
/// [`PoolError::Held`](crate::pool::PoolError::Held).
///
/// One type serves all [`Pages`](crate::pool::Pages), so that the code compiled for a combination
/// of strategies ends where a user's closure begins.
pub struct Shared<'p> {
    latch: &'p Latch,
    bytes: NonNull<[u8]>,
    _borrowed: BorrowedPage,
    _pages: PhantomData<&'p [u8]>,
}

impl Shared<'_> {
    /// Returns the bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: inside a page that is mapped for longer than `self` lives, and initialised. This
        // guard holds the frame's latch in shared mode, and no thread writes to a page without
        // holding the latch exclusively; the header of this file lists all writers.
        unsafe { self.bytes.as_ref() }
    }
}

impl Drop for Shared<'_> {
    #[inline]
    fn drop(&mut self) {
        self.latch.release_shared();
    }
}

/// The right to change a page: its frame is latched exclusively until the guard is dropped.
///
/// Readers have to start again only if the page was changed: a guard that never gave out its page
/// through [`Write::page_mut`] or `page_mut_with_redo` leaves the version as it was.
pub struct Write<'o, P: PageMemory> {
    mtr: &'o MiniTransaction<'o, P>,
    frame: NonNull<FrameHeader>,
    changed: bool,
    /// `true` if the mini-transaction holds the latch to its end, when the change is logged.
    logged: bool,
}

impl<'o, P: PageMemory> Write<'o, P> {
    /// Returns a guard over a new page, whose frame this thread just latched exclusively.
    ///
    /// # Safety
    /// `frame` must be a frame or an anchor of the memory of `mtr`, latched exclusively by this
    /// mini-transaction, and nothing but the guard may release it.
    #[inline(always)]
    pub(crate) unsafe fn held(
        mtr: &'o MiniTransaction<'o, P>,
        frame: NonNull<FrameHeader>,
    ) -> Write<'o, P> {
        Write { mtr, frame, changed: true, logged: false }
    }

    /// Latches `frame` exclusively.
    ///
    /// # Safety
    /// See [`Read::begin`].
    #[inline(always)]
    pub(crate) unsafe fn begin(
        mtr: &'o MiniTransaction<'o, P>,
        frame: NonNull<FrameHeader>,
    ) -> Try<Write<'o, P>> {
        // SAFETY: a frame of the pool is mapped while the pool lives, and `mtr` borrows the pool.
        let latch: &'o Latch = unsafe { &(*frame.as_ptr()).latch };
        // The processor executes ahead of an optimistic read, but not of the exchange below. The
        // lines that are needed next are prefetched now, so that the cache misses overlap.
        // SAFETY: each frame is followed by a page of that size, and stays mapped.
        let page: View<'o> = unsafe { frame_page::view(frame, mtr.pages().page_size()) };
        page.prefetch(0, PREFETCHED);
        let patiently = |rounds| P::Latching::write_within(latch, rounds).then_some(());
        if P::Latching::write(latch) || await_latch(mtr.pages(), patiently).is_some() {
            Ok(Write { mtr, frame, changed: false, logged: false })
        } else {
            Err(Jump::Restart)
        }
    }

    /// Returns the mini-transaction that the guard belongs to.
    #[inline(always)]
    pub fn mtr(&self) -> &'o MiniTransaction<'o, P> {
        self.mtr
    }

    /// Returns the frame of the page.
    #[inline(always)]
    pub fn frame(&self) -> NonNull<FrameHeader> {
        self.frame
    }

    /// Returns the frame's header.
    #[inline(always)]
    pub fn header(&self) -> &'o FrameHeader {
        // SAFETY: mapped while the pool lives; all its fields are atomics.
        unsafe { &*self.frame.as_ptr() }
    }

    /// Returns the id of the page.
    #[inline]
    pub fn id(&self) -> PageId {
        self.header().page().unwrap_or_default()
    }

    /// Returns a hint that finds the page again after this hold, if it is not changed any further.
    #[inline]
    pub fn hint(&self) -> Option<PageHint> {
        let header = self.header();
        let latch = &header.latch;
        let version = if self.changed { latch.version_after() } else { latch.version_held() };
        PageHint::at(header, version)
    }

    /// Returns the page, to be read.
    #[inline(always)]
    pub fn page(&self) -> &[u8] {
        // SAFETY: the page behind the frame; writers are kept out by the exclusive latch.
        unsafe { frame_page::bytes(self.frame, self.mtr.pages().page_size()) }
    }

    /// Returns the page, to be changed; it counts as dirty from now on.
    #[inline(always)]
    pub fn page_mut(&mut self) -> &mut [u8] {
        self.changed = true;
        if self.mtr.is_logged() {
            self.log_bytes();
        } else {
            self.header().set_dirty();
        }
        self.bytes_mut()
    }

    /// Returns the page, to be changed exactly as the physiological redo record of `redo`
    /// describes. That record is logged, and from it the structure can repeat the change on the
    /// same page.
    #[inline(always)]
    pub fn page_mut_with_redo(&mut self, redo: impl FnOnce(&mut Vec<u8>)) -> &mut [u8] {
        self.changed = true;
        if self.mtr.is_logged() {
            self.log_redo(redo);
        } else {
            self.header().set_dirty();
        }
        self.bytes_mut()
    }

    #[inline(always)]
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the page behind the frame; the exclusive latch keeps other threads out, and
        // optimistic readers read raw and validate.
        unsafe { frame_page::bytes_mut(self.frame, self.mtr.pages().page_size()) }
    }

    #[inline(never)]
    fn log_bytes(&mut self) {
        if self.header().page().is_some() {
            self.logged = true;
            self.mtr.log_change(|pages, changes| P::Log::page_changes(pages, changes, self.frame));
        } else {
            // An anchor, which is never written to storage.
            self.header().set_dirty();
        }
    }

    #[inline]
    fn log_redo(&mut self, redo: impl FnOnce(&mut Vec<u8>)) {
        self.logged = true;
        let frame = self.frame;
        self.mtr.log_change(|pages, changes| P::Log::page_changes_by(pages, changes, frame, redo));
    }

    /// Logs a page that was just allocated as a whole.
    #[inline]
    pub(crate) fn log_new(mut self) -> Self {
        if self.mtr.is_logged() {
            self.logged = true;
            let frame = self.frame;
            self.mtr.log_change(|pages, changes| P::Log::page_allocated(pages, changes, frame));
        }
        self
    }

    /// Returns the page as a view, for code that readers and writers share.
    #[inline(always)]
    pub fn view(&self) -> View<'_> {
        View::of(self.page())
    }

    /// Forgets the guard; the latch stays held, for the pool to release.
    #[inline(always)]
    pub(crate) fn into_frame(self) -> NonNull<FrameHeader> {
        let frame = self.frame;
        std::mem::forget(self);
        frame
    }
}

impl<P: PageMemory> Drop for Write<'_, P> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.logged {
            // The end of the mini-transaction releases the latch.
        } else if self.changed {
            self.header().latch.release_exclusive();
        } else {
            self.header().latch.release_unchanged();
        }
    }
}
