//! The first tier as a source of storage-level requests.

use millpond_base::read_ahead::after;
use millpond_base::{FrameId, Lsn, Mark, PageId};
use millpond_policies::contract::{Access, GhostHit, Policy, Shape};
use millpond_workload::trace::{BATCH_LEN, Batch, Source, TraceError};

use super::options::{Tier1Counts, Tier1Options};
use super::pool::{COOLING, Evictor, FREE, Pool, RESIDENT};
use millpond_policies::policy_host::{ErasedPolicyHost, PolicyHost};

/// A buffer pool under a policy that reads a trace of page references and emits its requests to
/// storage: READ requests for misses, writes with their reasons, and dsync requests. Each request
/// carries the log position at which it was sent.
pub struct Tier1 {
    /// The policy's id.
    policy: &'static str,
    source: Box<dyn Source>,
    input: Batch,
    at: usize,
    is_over: bool,
    given: usize,
    policy_host: Box<dyn ErasedPolicyHost>,
    pool: Pool,
    options: Tier1Options,
    until_round: u32,
    page_max: u64,
}

impl Tier1 {
    /// Creates an empty pool under policy `P` in front of `source`. Page ids need not be dense.
    pub fn new<P: Policy>(
        config: &P::Config,
        options: &Tier1Options,
        source: Box<dyn Source>,
    ) -> Tier1 {
        let host = Box::new(PolicyHost::<P>::new(config, &Tier1::shape(options)));
        Tier1::of(P::INFO.id, host, options, source)
    }

    /// Returns the shape of the policy's cache.
    pub(crate) fn shape(options: &Tier1Options) -> Shape {
        Shape { frames: options.frames.max(1), pages_dense: None, seed: options.seed }
    }

    /// Creates an empty pool under the policy `policy`, which `policy_host` hosts.
    pub(crate) fn of(
        policy: &'static str,
        policy_host: Box<dyn ErasedPolicyHost>,
        options: &Tier1Options,
        source: Box<dyn Source>,
    ) -> Tier1 {
        let mut options = options.clone();
        options.frames = options.frames.max(1);
        options.lsn_gap = options.lsn_gap.max(1);
        options.round = options.round.max(1);
        Tier1 {
            policy,
            source,
            input: Batch::default(),
            at: 0,
            is_over: false,
            given: 0,
            policy_host,
            pool: Pool::new(options.frames, options.cleaning.neighbours, options.sync),
            until_round: options.round,
            options,
            page_max: 0,
        }
    }

    /// Returns the requests sent so far, by reason.
    pub fn counts(&self) -> Tier1Counts {
        self.pool.counts
    }

    /// Checks the policy's invariants.
    ///
    /// # Errors
    /// A description of the broken invariant.
    pub fn check(&self) -> Result<(), String> {
        let flags = self.pool.flags.iter().enumerate();
        let resident = flags.filter(|(_, f)| **f & RESIDENT != 0);
        let frames: Vec<FrameId> = resident.map(|(i, _)| FrameId(i as u32)).collect();
        self.policy_host.check(&frames)
    }

    /// Processes one reference of the trace.
    fn reference(&mut self, page: PageId, mark: Mark) -> Result<(), TraceError> {
        self.pool.counts.references += 1;
        self.pool.lsn += u64::from(mark.is_write());
        self.page_max = self.page_max.max(page.0);
        let found = self.pool.table.get(page).map(FrameId);
        let frame = self.bring(page, mark, found)?;
        if mark.is_write() {
            self.pool.update(frame);
        }
        if found.is_none() && self.options.readahead {
            self.read_ahead(page.0)?;
        }
        self.bound_gap();
        self.until_round -= 1;
        if self.until_round == 0 {
            self.until_round = self.options.round;
            self.keep_free_list();
        }
        self.clean_until_below();
        Ok(())
    }

    /// Returns the frame of `page`, and reads the page if it is not in the pool.
    fn bring(
        &mut self,
        page: PageId,
        mark: Mark,
        found: Option<FrameId>,
    ) -> Result<FrameId, TraceError> {
        let access = Access { page, mark, now: self.policy_host.tick(), next: 0, next_read: 0 };
        if let Some(frame) = found {
            self.pool.counts.hits += 1;
            if self.pool.flags[frame.index()] & FREE != 0 {
                self.pool.rescue(frame);
                let ghost_hit = self.policy_host.miss(&access);
                self.policy_host.admit(frame, &access, ghost_hit);
            } else {
                let cooling = self.pool.flags[frame.index()] & COOLING != 0;
                self.pool.flags[frame.index()] &= !COOLING;
                self.policy_host.hit(frame, &access, cooling);
            }
            return Ok(frame);
        }
        let ghost_hit = self.policy_host.miss(&access);
        let frame = match self.pool.free_frame() {
            Some(frame) => frame,
            None => self.evict_for(page, ghost_hit)?,
        };
        self.pool.load(frame, page, mark);
        self.policy_host.admit(frame, &access, ghost_hit);
        Ok(frame)
    }

    /// Evicts a frame for a worker that found the free list empty.
    fn evict_for(&mut self, page: PageId, ghost_hit: GhostHit) -> Result<FrameId, TraceError> {
        self.pool.evictor = Evictor::Worker;
        self.policy_host.evict(&mut self.pool, 1, Some((page, ghost_hit)));
        self.pool.free_frame().ok_or_else(|| {
            let frames = self.pool.frames();
            let id = self.policy;
            TraceError::Options(format!("policy '{id}' found no victim among {frames} frames"))
        })
    }

    /// Fetches the pages that follow `page` if it continues a sequence: the two pages before it are
    /// in the pool.
    fn read_ahead(&mut self, page: u64) -> Result<(), TraceError> {
        let is_here = |page| self.pool.table.get(PageId(page)).is_some();
        let ahead = after(page, self.pool.frames(), is_here);
        for next in ahead.start..ahead.end.min(self.page_max.saturating_add(1)) {
            if self.pool.table.get(PageId(next)).is_none() {
                self.bring(PageId(next), Mark::READ, None)?;
                self.pool.counts.ahead += 1;
            }
        }
        Ok(())
    }

    /// Writes and syncs the oldest updates if the LSN gap has reached its bound, until a part of
    /// the gap is free again.
    fn bound_gap(&mut self) {
        let gap = self.options.lsn_gap;
        if self.pool.oldest_lsn().is_some_and(|oldest| self.pool.lsn - oldest >= gap) {
            let freed = (gap as f64 * self.options.freed.0) as u64;
            let redo = self.pool.lsn - gap + freed.min(gap);
            self.pool.recover(redo);
            self.notify_cleaned();
        }
    }

    /// Runs a round of the cleaners, which refills the free list.
    fn keep_free_list(&mut self) {
        let (rule, frames) = (self.options.cleaning, self.pool.frames());
        while rule.lacking(frames, self.pool.free_frames()) > 0 && self.clean_one() {}
    }

    /// Writes victims and puts them into the free list while the pool is too dirty.
    fn clean_until_below(&mut self) {
        let (rule, frames) = (self.options.cleaning, self.pool.frames());
        while rule.excess(frames, self.pool.dirty_pages()) > 0 && self.clean_one() {}
    }

    /// Moves one victim to the free list, after a write if it is dirty. Returns `false` if there
    /// was no victim.
    fn clean_one(&mut self) -> bool {
        self.pool.evictor = Evictor::Cleaner;
        let taken = self.policy_host.evict(&mut self.pool, 1, None);
        self.notify_cleaned();
        taken > 0
    }

    fn notify_cleaned(&mut self) {
        while let Some(frame) = self.pool.cleaned.pop() {
            if self.pool.flags[frame as usize] & RESIDENT != 0 {
                self.policy_host.cleaned(FrameId(frame));
            }
        }
    }

    /// Serves references until `limit` requests are ready, or the trace ends.
    fn serve(&mut self, limit: usize) -> Result<(), TraceError> {
        while !self.is_over && self.pool.rows.len() - self.given < limit {
            if self.at == self.input.len() {
                self.input.clear();
                self.at = 0;
                self.is_over = self.source.fill(&mut self.input, BATCH_LEN)? == 0;
                continue;
            }
            let (page, mark) = (self.input.pages[self.at], self.input.marks[self.at]);
            self.at += 1;
            self.reference(PageId(page), mark)?;
        }
        Ok(())
    }
}

impl Source for Tier1 {
    fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError> {
        self.serve(limit)?;
        let rows = &mut self.pool.rows;
        let range = self.given..rows.len().min(self.given + limit);
        batch.pages.extend_from_slice(&rows.pages[range.clone()]);
        batch.marks.extend_from_slice(&rows.marks[range.clone()]);
        batch.lsns.resize(batch.pages.len() - range.len(), Lsn(0));
        batch.lsns.extend_from_slice(&rows.lsns[range.clone()]);
        self.given = range.end;
        if self.given == rows.len() {
            rows.clear();
            self.given = 0;
        }
        Ok(range.len())
    }

    fn notes(&self) -> Vec<String> {
        let c = self.counts();
        let mut notes = self.source.notes();
        notes.push(format!(
            "first tier '{}' of {} frames: {} references, {} hits; sent {} READ ({} ahead), {} \
             SYNCH, {} REPLACE, {} RECOV, {} dsync",
            self.policy,
            self.pool.frames(),
            c.references,
            c.hits,
            c.reads,
            c.ahead,
            c.synch,
            c.replace,
            c.recov,
            c.dsyncs,
        ));
        notes
    }
}
