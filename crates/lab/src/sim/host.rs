//! The simulated pool behind the policy: page table, frames, dirty and cooling marks.

use std::collections::VecDeque;

use millpond_base::{FrameId, PageId};
use millpond_policies::contract::{Cooled, Host, OfferOutcome, PageState, RefusalReason};

use super::table::FrameTable;

pub(super) const RESIDENT: u8 = 1;
pub(super) const DIRTY: u8 = 2;
pub(super) const COOLING: u8 = 4;
pub(super) const SCANNED: u8 = 8;

/// Marks the absence of a frame.
const NONE: u32 = u32::MAX;

/// The whole state of the host, without the policy and its metadata, so that both can be borrowed
/// side by side.
pub(super) struct Pool {
    table: FrameTable,
    pub page_of: Vec<PageId>,
    pub flags: Vec<u8>,
    /// First frame that was never used; such frames are handed out in ascending order (rule 7).
    pub fresh: u32,
    /// The frame that was freed last, or `NONE`. On demand, one frame is freed and used again at
    /// once: a vector's push and pop would be most of the host's share of an eviction.
    spare: u32,
    /// Frames freed before the spare frame, and not used again.
    free: Vec<u32>,
    /// Number of all frames without a page.
    vacant: u32,
    pub offers: u64,
    pub refusals: u64,
    pub dirty_evictions: u64,
    pub dirty_now: u64,
    pub scanned_now: u64,
    /// If `true`, pages that only scans have referenced are evicted before all others.
    hints: bool,
    /// Frames with the pages that scans loaded into them, the oldest first; some entries are
    /// outdated.
    scanned: VecDeque<(FrameId, PageId)>,
}

impl Pool {
    pub fn new(frames: u32, pages_dense: Option<u64>, hints: bool) -> Pool {
        Pool {
            table: FrameTable::new(pages_dense, frames),
            page_of: vec![PageId(0); frames as usize],
            flags: vec![0; frames as usize],
            fresh: 0,
            spare: NONE,
            free: Vec::new(),
            vacant: frames,
            offers: 0,
            refusals: 0,
            dirty_evictions: 0,
            dirty_now: 0,
            scanned_now: 0,
            hints,
            scanned: VecDeque::new(),
        }
    }

    /// Returns the frame that holds `page`.
    #[inline(always)]
    pub fn find(&self, page: PageId) -> Option<FrameId> {
        self.table.get(page, &self.page_of).map(FrameId)
    }

    /// Returns `true` if looking up pages ahead of time pays.
    pub fn wants_prefetch(&self) -> bool {
        self.table.wants_prefetch()
    }

    /// Prefetches the table's entry for `page`.
    #[inline(always)]
    pub fn prefetch(&self, page: PageId) {
        self.table.prefetch(page);
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.table.bytes()
            + self.page_of.capacity() * size_of::<PageId>()
            + self.flags.capacity()
            + self.free.capacity() * size_of::<u32>()
    }

    pub fn frames(&self) -> u32 {
        self.flags.len() as u32
    }

    /// Returns `true` if every frame has a page.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.vacant == 0
    }

    /// Returns `true` if pages that only scans have referenced are evicted before all others.
    #[inline(always)]
    pub fn hints(&self) -> bool {
        self.hints
    }

    /// Returns a frame without a page, if there is one.
    #[inline(always)]
    pub fn free_frame(&mut self) -> Option<FrameId> {
        if self.spare != NONE {
            self.vacant -= 1;
            return Some(FrameId(std::mem::replace(&mut self.spare, NONE)));
        }
        self.free_frame_otherwise()
    }

    #[cold]
    #[inline(never)]
    fn free_frame_otherwise(&mut self) -> Option<FrameId> {
        self.vacant = self.vacant.saturating_sub(1);
        if self.fresh < self.frames() {
            self.fresh += 1;
            return Some(FrameId(self.fresh - 1));
        }
        self.free.pop().map(FrameId)
    }

    /// Returns the number of evicted frames.
    #[inline(always)]
    pub fn evictions(&self) -> u64 {
        self.offers - self.refusals
    }

    #[cold]
    fn refuse(&mut self) -> OfferOutcome {
        self.refusals += 1;
        OfferOutcome::Refused(RefusalReason::Absent)
    }

    /// Puts `page` into `frame`, which must be free.
    #[inline(always)]
    pub fn load(&mut self, frame: FrameId, page: PageId, dirty: bool, scan: bool) {
        self.page_of[frame.index()] = page;
        self.table.insert(frame.0, page, &self.page_of);
        let mut flags = RESIDENT;
        if dirty {
            flags |= DIRTY;
            self.dirty_now += 1;
        }
        if scan {
            flags |= SCANNED;
            self.scanned_now += 1;
            if self.hints {
                self.scanned.push_back((frame, page));
            }
        }
        self.flags[frame.index()] = flags;
    }

    /// Evicts and returns the oldest frame with a page that only scans have referenced.
    pub fn evict_scanned(&mut self) -> Option<FrameId> {
        while let Some((frame, page)) = self.scanned.pop_front() {
            let is_still = self.flags[frame.index()] & SCANNED != 0;
            if is_still && self.page_of[frame.index()] == page {
                self.offer(frame);
                return Some(frame);
            }
        }
        None
    }

    /// Marks the effect of a write or a scan on a resident frame.
    #[inline(always)]
    pub fn mark(&mut self, frame: FrameId, write: bool, scan: bool) {
        let flags = &mut self.flags[frame.index()];
        if write && *flags & DIRTY == 0 {
            *flags |= DIRTY;
            self.dirty_now += 1;
        }
        if !scan && *flags & SCANNED != 0 {
            // Another reference wants the page too, so it no longer counts as pollution.
            *flags &= !SCANNED;
            self.scanned_now -= 1;
        }
    }
}

impl Host for Pool {
    #[inline(always)]
    fn offer(&mut self, frame: FrameId) -> OfferOutcome {
        self.offers += 1;
        let Some(flags) = self.flags.get_mut(frame.index()) else { return self.refuse() };
        let was = *flags;
        if was & RESIDENT == 0 {
            return self.refuse();
        }
        *flags = 0;
        // Most victims are clean and not of a scan: one test covers both.
        if was & (DIRTY | SCANNED) != 0 {
            self.dirty_evictions += u64::from(was & DIRTY != 0);
            self.dirty_now -= u64::from(was & DIRTY != 0);
            self.scanned_now -= u64::from(was & SCANNED != 0);
        }
        let page = self.page_of[frame.index()];
        self.table.remove(page, &self.page_of);
        if self.spare != NONE {
            self.free.push(self.spare);
        }
        self.spare = frame.0;
        self.vacant += 1;
        OfferOutcome::Taken(page)
    }

    #[inline(always)]
    fn cool(&mut self, frame: FrameId) -> Cooled {
        match self.flags.get_mut(frame.index()) {
            Some(flags) if *flags & (RESIDENT | COOLING) == RESIDENT => {
                *flags |= COOLING;
                Cooled::Yes
            }
            Some(flags) if *flags & RESIDENT != 0 => Cooled::Refused(RefusalReason::Changed),
            _ => Cooled::Refused(RefusalReason::Absent),
        }
    }

    #[inline(always)]
    fn state(&self, frame: FrameId) -> PageState {
        match self.flags.get(frame.index()) {
            Some(flags) if flags & DIRTY != 0 => PageState::Dirty,
            _ => PageState::Clean,
        }
    }
}
