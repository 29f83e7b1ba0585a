//! The simulated cache: page table, frames, and the writes that each page owes to storage.

use millpond_base::{FrameId, PageId};
use millpond_policies::contract::{Cooled, Host, OfferOutcome, PageState, RefusalReason};
use millpond_policies::parts::PageMap;

// Flags of a frame.
pub(super) const RESIDENT: u8 = 1;
pub(super) const DIRTY: u8 = 2;
pub(super) const COOLING: u8 = 4;
/// A dsync request comes before the page's next write. Known only with a future.
pub(super) const DUE: u8 = 8;
/// The page's next request is a read. Known only with a future.
pub(super) const READ_NEXT: u8 = 16;

// Flags of a page.
/// The page was requested before.
pub(super) const SEEN: u8 = 1;
/// The page was written since its last dsync request.
pub(super) const UNSYNCED: u8 = 2;
/// The page was evicted dirty since its last write.
pub(super) const EVICTED_DIRTY: u8 = 4;

/// The whole state of the host, without the policy, so that both can be borrowed side by side.
pub(super) struct Cache {
    pub table: PageMap,
    /// Dense numbers of pages, if the ids are not dense themselves.
    numbers: Option<PageMap>,
    page_flags: Vec<u8>,
    pub page_of: Vec<PageId>,
    /// Index in `page_flags` of each frame's page.
    number_of: Vec<u32>,
    pub flags: Vec<u8>,
    fresh: u32,
    free: Vec<u32>,
    pub offers: u64,
    pub evictions: u64,
    pub evict_writes: u64,
    pub replacement_cost: u64,
    pub dirty_now: u64,
}

impl Cache {
    pub fn new(frames: u32, pages_dense: Option<u64>) -> Cache {
        let numbers = pages_dense.is_none().then(|| PageMap::new(None, frames as usize));
        Cache {
            table: PageMap::new(pages_dense, frames as usize),
            numbers,
            page_flags: vec![0; pages_dense.unwrap_or(0).min(1 << 28) as usize],
            page_of: vec![PageId(0); frames as usize],
            number_of: vec![0; frames as usize],
            flags: vec![0; frames as usize],
            fresh: 0,
            free: Vec::new(),
            offers: 0,
            evictions: 0,
            evict_writes: 0,
            replacement_cost: 0,
            dirty_now: 0,
        }
    }

    pub fn frames(&self) -> u32 {
        self.flags.len() as u32
    }

    /// Returns `true` if every frame was used, which ends the cold start.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.fresh == self.frames()
    }

    /// Returns the number of `page`, an index into the pages' flags.
    #[inline(always)]
    pub fn number(&mut self, page: PageId) -> u32 {
        let number = match &mut self.numbers {
            None => page.0 as u32,
            Some(numbers) => numbers.get_or_number(page),
        };
        if number as usize >= self.page_flags.len() {
            self.grow(number as usize);
        }
        number
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, number: usize) {
        let len = (number + 1).max(self.page_flags.len() + self.page_flags.len() / 2);
        self.page_flags.resize(len, 0);
    }

    #[inline(always)]
    pub fn page_flags(&mut self, number: u32) -> &mut u8 {
        &mut self.page_flags[number as usize]
    }

    /// Returns a frame without a page, if there is one.
    #[inline(always)]
    pub fn free_frame(&mut self) -> Option<FrameId> {
        if self.fresh < self.frames() {
            self.fresh += 1;
            return Some(FrameId(self.fresh - 1));
        }
        self.free.pop().map(FrameId)
    }

    /// Puts `page` into `frame`, which must be free.
    #[inline(always)]
    pub fn load(&mut self, frame: FrameId, page: PageId, number: u32) {
        self.table.insert(page, frame.0);
        self.page_of[frame.index()] = page;
        self.number_of[frame.index()] = number;
        self.flags[frame.index()] = RESIDENT;
    }

    #[inline(always)]
    pub fn set_dirty(&mut self, frame: FrameId) {
        let flags = &mut self.flags[frame.index()];
        self.dirty_now += u64::from(*flags & DIRTY == 0);
        *flags |= DIRTY;
    }

    #[inline(always)]
    pub fn set_clean(&mut self, frame: FrameId) {
        let flags = &mut self.flags[frame.index()];
        self.dirty_now -= u64::from(*flags & DIRTY != 0);
        *flags &= !(DIRTY | DUE);
    }
}

impl Host for Cache {
    #[inline(always)]
    fn offer(&mut self, frame: FrameId) -> OfferOutcome {
        self.offers += 1;
        let Some(flags) = self.flags.get_mut(frame.index()) else {
            return OfferOutcome::Refused(RefusalReason::Absent);
        };
        if *flags & RESIDENT == 0 {
            return OfferOutcome::Refused(RefusalReason::Absent);
        }
        if *flags & DIRTY != 0 {
            self.evict_writes += 1;
            self.dirty_now -= 1;
            self.page_flags[self.number_of[frame.index()] as usize] |= EVICTED_DIRTY;
        }
        // Clauses 1 to 4 of definition 5.6 in the source.
        let to_write = u64::from(*flags & (DIRTY | DUE) == DIRTY);
        self.replacement_cost += to_write + u64::from(*flags & READ_NEXT != 0);
        *flags = 0;
        self.evictions += 1;
        let page = self.page_of[frame.index()];
        self.table.remove(page);
        self.free.push(frame.0);
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
            Some(flags) if flags & (DIRTY | DUE) == DIRTY | DUE => PageState::PreClean,
            Some(flags) if flags & DIRTY != 0 => PageState::Dirty,
            _ => PageState::Clean,
        }
    }
}
