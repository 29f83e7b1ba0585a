//! The pool that the first tier simulates: frames, free list, dirty pages by age, and the requests
//! that it sends.
//!
//! Invariants: (1) a page in the table is in a frame that the policy holds, or in a frame of the
//! free list, never in both; (2) pages of the free list are clean; (3) the dirty list holds exactly
//! the dirty frames, in the order of their recLSN, because updates arrive in that order.

use millpond_base::cleaning::each_neighbour;
use millpond_base::sync_list::SyncList;
use millpond_base::{FrameId, Lsn, Mark, PageId, Reason};
use millpond_policies::contract::{Cooled, Host, OfferOutcome, PageState, RefusalReason};
use millpond_policies::parts::{Links, List, PageMap};
use millpond_workload::trace::Batch;

use super::options::{SyncRule, Tier1Counts};

/// The policy holds the frame.
pub(super) const RESIDENT: u8 = 1;
pub(super) const DIRTY: u8 = 2;
pub(super) const COOLING: u8 = 4;
/// The frame is in the free list, and its page is still in the table.
pub(super) const FREE: u8 = 8;

/// Kind of thread that evicts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Evictor {
    /// A worker that needs a frame at once.
    Worker,
    /// A page cleaner that fills the free list.
    Cleaner,
}

/// The whole state except the policy, so that both can be borrowed side by side.
pub(super) struct Pool {
    pub table: PageMap,
    pub page_of: Vec<PageId>,
    pub flags: Vec<u8>,
    rec_lsn: Vec<u64>,
    /// Kind and depth of each frame's page; writes of the page carry them.
    marks: Vec<Mark>,
    fresh: u32,
    /// Frames without a page that were used before.
    empty: Vec<u32>,
    free: List,
    free_links: Links,
    dirty: List,
    dirty_links: Links,
    sync_list: SyncList,
    sync: SyncRule,
    pub lsn: u64,
    pub evictor: Evictor,
    pub flush_neighbours: bool,
    /// Frames written with a neighbour; the policy must still be notified that they are clean.
    pub cleaned: Vec<u32>,
    /// Requests to storage.
    pub rows: Batch,
    pub counts: Tier1Counts,
}

impl Pool {
    pub fn new(frames: u32, flush_neighbours: bool, sync: SyncRule) -> Pool {
        let count = frames as usize;
        Pool {
            table: PageMap::new(None, count),
            page_of: vec![PageId(0); count],
            flags: vec![0; count],
            rec_lsn: vec![0; count],
            marks: vec![Mark::READ; count],
            fresh: 0,
            empty: Vec::new(),
            free: List::new(),
            free_links: Links::new(frames),
            dirty: List::new(),
            dirty_links: Links::new(frames),
            sync_list: SyncList::default(),
            sync,
            lsn: 0,
            evictor: Evictor::Worker,
            flush_neighbours,
            cleaned: Vec::new(),
            rows: Batch::default(),
            counts: Tier1Counts::default(),
        }
    }

    pub fn frames(&self) -> u32 {
        self.flags.len() as u32
    }

    pub fn dirty_pages(&self) -> u32 {
        self.dirty.len()
    }

    /// Returns the number of frames that a worker can take without evicting.
    pub fn free_frames(&self) -> u32 {
        self.frames() - self.fresh + self.empty.len() as u32 + self.free.len()
    }

    /// Returns a frame without a page: an unused one, or the oldest of the free list.
    pub fn free_frame(&mut self) -> Option<FrameId> {
        if self.fresh < self.frames() {
            self.fresh += 1;
            return Some(FrameId(self.fresh - 1));
        }
        if let Some(frame) = self.empty.pop() {
            return Some(FrameId(frame));
        }
        let frame = self.free.pop_front(&mut self.free_links)?;
        self.flags[frame as usize] = 0;
        self.table.remove(self.page_of[frame as usize]);
        Some(FrameId(frame))
    }

    /// Takes `frame` out of the free list, because its page was referenced.
    pub fn rescue(&mut self, frame: FrameId) {
        self.free.remove(&mut self.free_links, frame.0);
        self.flags[frame.index()] = RESIDENT;
        self.counts.rescues += 1;
    }

    /// Reads `page` into `frame`.
    pub fn load(&mut self, frame: FrameId, page: PageId, mark: Mark) {
        self.table.insert(page, frame.0);
        self.page_of[frame.index()] = page;
        self.flags[frame.index()] = RESIDENT;
        let mark = Mark::READ.with_kind(mark.kind(), mark.depth());
        self.marks[frame.index()] = mark;
        self.counts.reads += 1;
        self.send(page, mark);
    }

    /// Records that the current log record updated the page in `frame`.
    pub fn update(&mut self, frame: FrameId) {
        let flags = &mut self.flags[frame.index()];
        if *flags & DIRTY == 0 {
            *flags |= DIRTY;
            self.rec_lsn[frame.index()] = self.lsn;
            self.dirty.push_back(&mut self.dirty_links, frame.0);
        }
    }

    /// Returns the LSN of the oldest update that is not durable: in the pool, or written and not
    /// synced.
    pub fn oldest_lsn(&self) -> Option<u64> {
        let here = self.dirty.front().map(|frame| self.rec_lsn[frame as usize]);
        match (here, self.sync_list.oldest().map(|lsn| lsn.0)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Makes all updates up to `redo` durable. The pool sends RECOV writes, then dsync requests for
    /// them and for earlier writes that are overdue (li 4.3.2), or for all earlier writes. The
    /// frames keep their pages, and are put into `cleaned`.
    pub fn recover(&mut self, redo: u64) {
        while let Some(frame) = self.dirty.front()
            && self.rec_lsn[frame as usize] <= redo
        {
            self.write_with_neighbours(frame, Reason::Recov);
            self.cleaned.push(frame);
        }
        let bound = match self.sync {
            SyncRule::EachRecov => u64::MAX,
            SyncRule::EachWrite | SyncRule::Ranges => redo + 1,
        };
        while let Some(page) = self.sync_list.take_before(Lsn(bound)) {
            self.dsync(page);
        }
    }

    fn dsync(&mut self, page: PageId) {
        self.counts.dsyncs += 1;
        self.send(page, Mark::WRITE.with_reason(Reason::Dsync));
    }

    fn send(&mut self, page: PageId, mark: Mark) {
        self.rows.push(page.0, mark);
        self.rows.lsns.push(Lsn(self.lsn));
    }

    /// Writes the dirty page in `frame`, which is clean afterwards.
    fn write(&mut self, frame: u32, reason: Reason) {
        let at = frame as usize;
        match reason {
            Reason::Synch => self.counts.synch += 1,
            Reason::Recov => self.counts.recov += 1,
            _ => self.counts.replace += 1,
        }
        let kind = self.marks[at];
        let mark = Mark::WRITE.with_reason(reason).with_kind(kind.kind(), kind.depth());
        self.send(self.page_of[at], mark);
        match self.sync {
            SyncRule::EachWrite => self.dsync(self.page_of[at]),
            _ => self.sync_list.add(self.page_of[at], Lsn(self.rec_lsn[at])),
        }
        self.flags[at] &= !DIRTY;
        self.dirty.remove(&mut self.dirty_links, frame);
    }

    /// Writes the page in `frame` and, if so configured, the dirty pages of its extent that adjoin
    /// it without a gap. The frames keep their pages.
    fn write_with_neighbours(&mut self, frame: u32, reason: Reason) {
        let page = self.page_of[frame as usize].0;
        self.write(frame, reason);
        if !self.flush_neighbours {
            return;
        }
        each_neighbour(page, |neighbour| self.write_neighbour(neighbour, reason));
    }

    fn write_neighbour(&mut self, page: u64, reason: Reason) -> bool {
        match self.table.get(PageId(page)) {
            Some(frame) if self.flags[frame as usize] & DIRTY != 0 => {
                self.write(frame, reason);
                self.cleaned.push(frame);
                true
            }
            _ => false,
        }
    }
}

impl Host for Pool {
    fn offer(&mut self, frame: FrameId) -> OfferOutcome {
        let Some(&flags) = self.flags.get(frame.index()) else {
            return OfferOutcome::Refused(RefusalReason::Absent);
        };
        if flags & RESIDENT == 0 {
            return OfferOutcome::Refused(RefusalReason::Absent);
        }
        let page = self.page_of[frame.index()];
        match self.evictor {
            Evictor::Worker => {
                if flags & DIRTY != 0 {
                    self.write(frame.0, Reason::Synch);
                }
                self.flags[frame.index()] = 0;
                self.table.remove(page);
                self.empty.push(frame.0);
            }
            Evictor::Cleaner => {
                if flags & DIRTY != 0 {
                    self.write_with_neighbours(frame.0, Reason::Replace);
                }
                self.flags[frame.index()] = FREE;
                self.free.push_back(&mut self.free_links, frame.0);
            }
        }
        OfferOutcome::Taken(page)
    }

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

    fn state(&self, frame: FrameId) -> PageState {
        match self.flags.get(frame.index()) {
            Some(flags) if flags & DIRTY != 0 => PageState::Dirty,
            _ => PageState::Clean,
        }
    }
}
