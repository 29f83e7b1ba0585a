//! The frame header, which the pool keeps beside each page in memory, and the states of a frame.
//!
//! ```text
//! bytes   0..64    latch, page id, parent, state, index, links    read by every access
//! bytes  64..128   dirty page's recLSN, epoch, spare               when pages come and go
//! bytes 128..192   the replacement policy's line (`HitHook::Meta`)
//! bytes 192..      the page itself
//! ```
//! Header and page are adjacent (leanstore IV-I): one TLB entry serves both, and the address of the
//! page needs no load. A frame is 192 bytes larger than a power of two, which spreads the headers
//! over all cache sets. Direct I/O needs page addresses that are multiples of 512, so its reads go
//! through a copy (`io/buffer.rs`), as writes do anyway.
//!
//! # The states of a frame
//!
//! `pool/mod.rs` names the function that takes each step.
//!
//! ```text
//!              ┌──────── load failed, or nobody needed it ───────┐
//!              ▼                                                 │
//!  Evicted ─► Free ─── a page is to be loaded ────────────► Loading
//!     ▲        └────── a page is created ───► Hot ◄── attached ──┘
//!     │                                       │ ▲
//!     ├─── victim, or deleted page ───────────┘ │
//!     │                                     cooled, or referenced
//!     │                                         ▼
//!     └─── victim, or deleted page ─────────── Cooling
//! ```
//! *Writing* is a flag beside the state, not a state of its own. A page is copied before it is
//! written to storage, so it stays readable and changeable, hot or cooling; only its eviction must
//! wait.

use std::ptr::NonNull;

use millpond_base::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use millpond_base::{FrameId, Lsn, PageId};

use crate::pool::latch::Latch;

/// Bytes from the start of a frame to its page. A model checker's atomics are larger.
pub const FRAME_HEADER_BYTES: usize = if IS_MODEL { 8192 } else { 192 };
/// Bytes from the start of a frame to the policy's line.
pub const POLICY_LINE: usize = if IS_MODEL { 4096 } else { 128 };
/// Bytes reserved for the policy.
pub const POLICY_BYTES: usize = if IS_MODEL { 2048 } else { 64 };

/// `true` under a model checker, where a frame's memory must be written before its use.
pub(crate) const IS_MODEL: bool = cfg!(feature = "model");

/// State of a frame in its life cycle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum State {
    /// Holds no page; is on a free list, or about to be.
    Free = 0,
    /// The frame's page is being read from storage, or was read and is not attached yet. The frame
    /// is latched exclusively all the time.
    Loading = 1,
    /// Holds a page that can be reached through its swip or the page table.
    Hot = 2,
    /// Holds a page of the cooling stage; the page's next use makes it hot again.
    Cooling = 3,
    /// The frame's page was evicted or deleted, and cannot be reached. The frame is put on a free
    /// list at the end of the round of eviction, or when the write of the page is complete.
    Evicted = 4,
}

impl State {
    /// Returns whether a frame may pass from this state to `next`.
    pub fn may_become(self, next: State) -> bool {
        use State::*;
        matches!(
            (self, next),
            (Free, Loading | Hot)
                | (Loading, Hot | Free)
                | (Hot, Cooling | Evicted)
                | (Cooling, Hot | Evicted)
                | (Evicted, Free)
        )
    }

    fn of(bits: u32) -> State {
        match bits & 0xff {
            1 => State::Loading,
            2 => State::Hot,
            3 => State::Cooling,
            4 => State::Evicted,
            _ => State::Free,
        }
    }
}

const DIRTY: u32 = 1 << 8;
const WRITING: u32 = 1 << 9;
const HELD: u32 = 1 << 10;
const UNVERIFIED: u32 = 1 << 11;
const SCANNED: u32 = 1 << 12;
const QUEUED: u32 = 1 << 13;
const NO_PAGE: u64 = u64::MAX;

/// A frame's header.
///
/// `page` and the state change only under the frame's own latch, with two exceptions. Where swips
/// are pointers, the step between hot and cooling is taken under the parent's latch. A frame
/// becomes free after a round of eviction without a latch. `parent` changes under the frame's own
/// latch or, when a swip moves, under the latches of both parents. All three may be read at any
/// time, as a hint that is checked under the latch.
#[repr(C, align(64))]
pub struct FrameHeader {
    /// Guards the page and this header.
    pub latch: Latch,
    page: AtomicU64,
    parent: AtomicPtr<FrameHeader>,
    flags: AtomicU32,
    index: AtomicU32,
    /// Next frame in a chain of the page table.
    pub next: AtomicU32,
    _line0: [u32; 7],
    /// Not used: the free lists hold the epochs in which frames were given up (leanstore IV-G).
    pub epoch: AtomicU64,
    /// See [`FrameHeader::rec_lsn`].
    rec_lsn: AtomicU64,
    _line1: [u64; 6],
    // The policy's line follows, which is not reached through this type.
}

const _: () = assert!(size_of::<FrameHeader>() == POLICY_LINE || IS_MODEL);
const _: () = assert!(std::mem::offset_of!(FrameHeader, epoch) == 64 || IS_MODEL);
const _: () = assert!(POLICY_LINE + POLICY_BYTES <= FRAME_HEADER_BYTES);
const _: () = assert!(FRAME_HEADER_BYTES.is_multiple_of(align_of::<FrameHeader>()));
const _: () = assert!(size_of::<FrameHeader>() <= POLICY_LINE);

impl Default for FrameHeader {
    fn default() -> FrameHeader {
        FrameHeader::new(FrameId::NONE)
    }
}

impl FrameHeader {
    /// Returns the header of a free frame.
    pub fn new(index: FrameId) -> FrameHeader {
        FrameHeader {
            latch: Latch::default(),
            page: AtomicU64::new(NO_PAGE),
            parent: AtomicPtr::new(std::ptr::null_mut()),
            flags: AtomicU32::new(State::Free as u32),
            index: AtomicU32::new(index.0),
            next: AtomicU32::new(u32::MAX),
            _line0: [0; 7],
            epoch: AtomicU64::new(0),
            rec_lsn: AtomicU64::new(0),
            _line1: [0; 6],
        }
    }

    /// Makes zero-filled memory the header of the free frame `index`.
    pub(crate) fn initialise(&self, index: FrameId) {
        self.page.store(NO_PAGE, Ordering::Relaxed);
        self.index.store(index.0, Ordering::Relaxed);
        self.next.store(u32::MAX, Ordering::Relaxed);
    }

    /// Returns the frame's index in the pool; [`FrameId::NONE`] for an anchor.
    #[inline(always)]
    pub fn id(&self) -> FrameId {
        FrameId(self.index.load(Ordering::Relaxed))
    }

    /// Returns the page that the frame holds, if any.
    #[inline(always)]
    pub fn page(&self) -> Option<PageId> {
        match self.page.load(Ordering::Relaxed) {
            NO_PAGE => None,
            page => Some(PageId(page)),
        }
    }

    /// Sets the page that the frame holds.
    #[inline]
    pub fn set_page(&self, page: Option<PageId>) {
        debug_assert_ne!(page, Some(PageId(NO_PAGE)), "no page has that id");
        self.page.store(page.map_or(NO_PAGE, |p| p.0), Ordering::Relaxed);
    }

    /// Returns the frame whose page holds the swip of this one's page.
    #[inline]
    pub fn parent(&self) -> Option<NonNull<FrameHeader>> {
        NonNull::new(self.parent.load(Ordering::Relaxed))
    }

    /// Sets the frame whose page holds the swip of this one's page.
    #[inline]
    pub fn set_parent(&self, parent: Option<NonNull<FrameHeader>>) {
        self.parent.store(parent.map_or(std::ptr::null_mut(), NonNull::as_ptr), Ordering::Relaxed);
    }

    /// Returns the frame's state.
    #[inline]
    pub fn state(&self) -> State {
        State::of(self.flags.load(Ordering::Acquire))
    }

    /// Changes the frame's state. A step that [`State::may_become`] does not allow stops the
    /// program: the pool would go on with a page in memory twice, or with a frame that two threads
    /// own.
    #[inline]
    pub fn become_state(&self, next: State) {
        // Between hot and cooling, and from evicted to free, no other thread can take the frame.
        debug_assert!(
            !matches!(next, State::Loading | State::Evicted) || self.latch.is_exclusive(),
            "frame {:?} becomes {next:?} without a latch",
            self.id()
        );
        debug_assert!(next != State::Free || self.page().is_none(), "a free frame holds a page");
        debug_assert!(next != State::Hot || self.page().is_some(), "a hot frame holds no page");
        let mut old = self.flags.load(Ordering::Relaxed);
        loop {
            assert!(
                State::of(old).may_become(next),
                "frame {:?}: {:?} cannot become {next:?}",
                self.id(),
                State::of(old)
            );
            // A flag of the page ends with the page.
            let kept = if next == State::Free { !(0xff | UNVERIFIED) } else { !0xff };
            let new = (old & kept) | next as u32;
            match self.flags.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => old = now,
            }
        }
    }

    /// Returns whether the page changed since its last write began.
    #[inline(always)]
    pub fn is_dirty(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & DIRTY != 0
    }

    /// Returns whether the page is dirty or being written, so that storage may not have its latest
    /// version. One load reads both flags. Two loads would not do: between them, a page that is
    /// being written can become dirty and its write can end, so that neither load sees its flag.
    #[inline]
    pub fn is_dirty_or_writing(&self) -> bool {
        self.flags.load(Ordering::Acquire) & (DIRTY | WRITING) != 0
    }

    /// Returns whether a copy of the page is being written to storage.
    #[inline]
    pub fn is_writing(&self) -> bool {
        self.flags.load(Ordering::Acquire) & WRITING != 0
    }

    /// Returns whether the frame is held for a starving operation.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & HELD != 0
    }

    /// Sets whether the frame is held for a starving operation.
    pub(crate) fn set_held(&self, held: bool) {
        if held {
            self.flags.fetch_or(HELD, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!HELD, Ordering::Relaxed);
        }
    }

    /// Returns whether the page has yet to be verified against its parent. The flag is set only
    /// with a page table, where a page can be found although its parent was not in memory when it
    /// was loaded.
    #[inline(always)]
    pub fn is_unverified(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & UNVERIFIED != 0
    }

    /// Sets whether the page has yet to be verified against its parent.
    pub(crate) fn set_unverified(&self, unverified: bool) {
        if unverified {
            self.flags.fetch_or(UNVERIFIED, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!UNVERIFIED, Ordering::Relaxed);
        }
    }

    /// Returns whether only scans have referenced the page since it was loaded.
    #[inline(always)]
    pub fn is_scanned(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & SCANNED != 0
    }

    /// Sets whether only scans have referenced the page. Called when the page is loaded or created,
    /// and when another reference reaches it.
    #[inline(always)]
    pub fn set_scanned(&self, scanned: bool) {
        if self.is_scanned() != scanned {
            self.change_scanned(scanned);
        }
    }

    #[cold]
    fn change_scanned(&self, scanned: bool) {
        if scanned {
            self.flags.fetch_or(SCANNED, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!SCANNED, Ordering::Relaxed);
        }
    }

    /// Returns whether the frame is in the write buffer.
    pub(crate) fn is_queued(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & QUEUED != 0
    }

    /// Marks that the frame is in the write buffer; returns `false` if it was there already.
    pub(crate) fn set_queued(&self) -> bool {
        self.flags.fetch_or(QUEUED, Ordering::Relaxed) & QUEUED == 0
    }

    /// Marks that the frame is not in the write buffer.
    pub(crate) fn clear_queued(&self) {
        self.flags.fetch_and(!QUEUED, Ordering::Relaxed);
    }

    /// Marks the page as changed. Call it under the exclusive latch.
    #[inline(always)]
    pub fn set_dirty(&self) {
        debug_assert!(self.latch.is_exclusive(), "a page changes without a latch");
        if !self.is_dirty() {
            // A checkpoint that sees the flag sees the recLSN that was set before it.
            self.flags.fetch_or(DIRTY, Ordering::Release);
        }
    }

    /// Marks that the page is about to change, and that the change will be logged from `tail` on.
    /// `tail` is called only if the page is clean, because all threads write the end of the log.
    /// Call this under the exclusive latch. Returns whether the page was clean, so that all of it
    /// has to be logged.
    ///
    /// A page that is being written counts as not clean: the log has to keep its records from the
    /// same recLSN on until that write is known to be complete. The end of the write takes no
    /// latch, so the flag is set only if the page is still in the state that was read. If a change
    /// is logged without an image, the page has therefore been dirty or being written, without a
    /// gap, since the record at its recLSN.
    #[inline]
    pub fn begin_logged_change(&self, tail: impl Fn() -> Lsn) -> bool {
        debug_assert!(self.latch.is_exclusive(), "a page changes without a latch");
        let mut old = self.flags.load(Ordering::Acquire);
        while old & DIRTY == 0 {
            let was_clean = old & WRITING == 0;
            if was_clean {
                self.set_rec_lsn(tail());
            }
            let new = old | DIRTY;
            match self.flags.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return was_clean,
                Err(now) => old = now,
            }
        }
        false
    }

    /// Returns the recLSN: the start of the records that are needed to recover the page, which is
    /// dirty or being written. 0 if changes are not logged.
    pub fn rec_lsn(&self) -> Lsn {
        Lsn(self.rec_lsn.load(Ordering::Relaxed))
    }

    /// Returns the recLSN if the page is dirty.
    pub fn dirty_since(&self) -> Option<Lsn> {
        self.is_dirty().then(|| self.rec_lsn())
    }

    /// Sets the recLSN, before the page gets dirty.
    pub fn set_rec_lsn(&self, lsn: Lsn) {
        self.rec_lsn.store(lsn.0, Ordering::Relaxed);
    }

    /// Begins a write: the page is clean as of the copy that is taken now, under the latch. The
    /// frame is not evicted until [`FrameHeader::end_write`]. Returns `false` if the page is clean,
    /// or being written already.
    #[inline]
    pub fn begin_write(&self) -> bool {
        debug_assert!(self.latch.is_held(), "a page is copied without a latch");
        let old = self.flags.load(Ordering::Relaxed);
        if old & DIRTY == 0 || old & WRITING != 0 {
            return false;
        }
        let new = (old & !DIRTY) | WRITING;
        self.flags.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Ends the write; if it failed, the page is as dirty as before.
    #[inline]
    pub fn end_write(&self, succeeded: bool) {
        debug_assert!(self.is_writing(), "no write of this page is under way");
        if !succeeded {
            self.flags.fetch_or(DIRTY, Ordering::Relaxed);
        }
        self.flags.fetch_and(!WRITING, Ordering::Release);
    }

    /// Ends a write that brought the page to storage up to the record that ends at `lsn`, so that
    /// only later records are needed. Used where a page's first record after a write needs no
    /// image. A page that changes all the time would otherwise keep its recLSN for ever.
    #[inline]
    pub fn end_write_up_to(&self, lsn: Lsn) {
        debug_assert!(self.is_writing(), "no write of this page is under way");
        let mut old = self.flags.load(Ordering::Acquire);
        loop {
            if old & DIRTY != 0 {
                // No change sets the recLSN while the page is being written.
                self.set_rec_lsn(lsn);
            }
            let new = old & !WRITING;
            match self.flags.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => old = now,
            }
        }
    }

    /// Clears the dirty flag of a page that was deleted or evicted and need not be written any
    /// more.
    #[inline]
    pub fn clear_dirty(&self) {
        self.flags.fetch_and(!DIRTY, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_from_free_to_free() {
        let frame = FrameHeader::new(FrameId(3));
        assert!(frame.latch.try_exclusive());
        frame.set_page(Some(PageId(5)));
        for next in [State::Loading, State::Hot, State::Cooling, State::Hot, State::Evicted] {
            frame.become_state(next);
            assert_eq!(frame.state(), next);
        }
        frame.set_page(None);
        frame.become_state(State::Free);
        assert!(!State::Free.may_become(State::Cooling));
        assert!(!State::Evicted.may_become(State::Hot));
        assert!(!State::Loading.may_become(State::Evicted));
        assert!(!State::Loading.may_become(State::Cooling), "a page is referenced to be loaded");
    }

    #[test]
    #[should_panic(expected = "cannot become")]
    fn a_free_frame_cannot_cool() {
        FrameHeader::new(FrameId(3)).become_state(State::Cooling);
    }

    #[test]
    fn a_change_during_a_write_leaves_the_page_dirty() {
        let frame = FrameHeader::new(FrameId(0));
        assert!(frame.latch.try_exclusive());
        assert!(!frame.begin_write());
        frame.set_dirty();
        assert!(frame.begin_write());
        assert!(!frame.is_dirty() && frame.is_writing());
        frame.set_dirty();
        assert!(!frame.begin_write(), "one write at a time");
        frame.end_write(true);
        assert!(frame.is_dirty() && !frame.is_writing());
        assert!(frame.begin_write());
        frame.end_write(false);
        assert!(frame.is_dirty());
    }
}
