//! The simulated pool: page table, frames, dirty and cooling marks. The policy's other side.

use millpond_base::{FrameId, PageId};
use millpond_policies::contract::{Cooled, Host, PageState, Verdict, Why};
use millpond_policies::parts::PageMap;

pub(super) const RESIDENT: u8 = 1;
pub(super) const DIRTY: u8 = 2;
pub(super) const COOLING: u8 = 4;
pub(super) const SCANNED: u8 = 8;

/// Everything the host knows, without the policy and its metadata: so the two can be borrowed
/// side by side.
pub(super) struct Pool {
    pub table: PageMap,
    pub page_of: Vec<PageId>,
    pub flags: Vec<u8>,
    /// Frames never used yet start here; they are handed out in ascending order (rule 7).
    pub fresh: u32,
    /// Frames freed since and not used again.
    pub free: Vec<u32>,
    pub offers: u64,
    pub evictions: u64,
    pub dirty_evictions: u64,
    pub dirty_now: u64,
    pub scanned_now: u64,
}

impl Pool {
    pub fn new(frames: u32, pages_dense: Option<u64>) -> Pool {
        Pool {
            table: PageMap::new(pages_dense, frames as usize),
            page_of: vec![PageId(0); frames as usize],
            flags: vec![0; frames as usize],
            fresh: 0,
            free: Vec::new(),
            offers: 0,
            evictions: 0,
            dirty_evictions: 0,
            dirty_now: 0,
            scanned_now: 0,
        }
    }

    pub fn frames(&self) -> u32 {
        self.flags.len() as u32
    }

    /// A frame without a page, if there is one.
    #[inline(always)]
    pub fn free_frame(&mut self) -> Option<FrameId> {
        if self.fresh < self.frames() {
            self.fresh += 1;
            return Some(FrameId(self.fresh - 1));
        }
        self.free.pop().map(FrameId)
    }

    /// Puts `page` into `frame`, which is free.
    #[inline(always)]
    pub fn load(&mut self, frame: FrameId, page: PageId, dirty: bool, scan: bool) {
        self.table.insert(page, frame.0);
        self.page_of[frame.index()] = page;
        let mut flags = RESIDENT;
        if dirty {
            flags |= DIRTY;
            self.dirty_now += 1;
        }
        if scan {
            flags |= SCANNED;
            self.scanned_now += 1;
        }
        self.flags[frame.index()] = flags;
    }

    /// Marks what a write or a scan did to a resident frame.
    #[inline(always)]
    pub fn mark(&mut self, frame: FrameId, write: bool, scan: bool) {
        let flags = &mut self.flags[frame.index()];
        if write && *flags & DIRTY == 0 {
            *flags |= DIRTY;
            self.dirty_now += 1;
        }
        if !scan && *flags & SCANNED != 0 {
            // Somebody else wants it, too: it pollutes no more.
            *flags &= !SCANNED;
            self.scanned_now -= 1;
        }
    }
}

impl Host for Pool {
    #[inline(always)]
    fn offer(&mut self, frame: FrameId) -> Verdict {
        self.offers += 1;
        let Some(flags) = self.flags.get_mut(frame.index()) else {
            return Verdict::Refused(Why::Absent);
        };
        if *flags & RESIDENT == 0 {
            return Verdict::Refused(Why::Absent);
        }
        if *flags & DIRTY != 0 {
            self.dirty_evictions += 1;
            self.dirty_now -= 1;
        }
        if *flags & SCANNED != 0 {
            self.scanned_now -= 1;
        }
        *flags = 0;
        self.evictions += 1;
        let page = self.page_of[frame.index()];
        self.table.remove(page);
        self.free.push(frame.0);
        Verdict::Taken(page)
    }

    #[inline(always)]
    fn cool(&mut self, frame: FrameId) -> Cooled {
        match self.flags.get_mut(frame.index()) {
            Some(flags) if *flags & (RESIDENT | COOLING) == RESIDENT => {
                *flags |= COOLING;
                Cooled::Yes
            }
            Some(flags) if *flags & RESIDENT != 0 => Cooled::Refused(Why::Changed),
            _ => Cooled::Refused(Why::Absent),
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
