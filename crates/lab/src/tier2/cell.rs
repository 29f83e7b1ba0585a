//! One second-tier simulation: a policy, its parameters, a model, a number of frames.

use millpond_base::{FrameId, Mark, PageId, Reason};
use millpond_policies::contract::{Access, NEVER, Policy, Shape};
use millpond_workload::trace::Batch;

use super::counts::{Model, Tier2Counts};
use super::future::Tier2Future;
use super::host::{COOLING, Cache, DIRTY, DUE, EVICTED_DIRTY, READ_NEXT, SEEN, UNSYNCED};
use crate::sim::Stalled;
use millpond_policies::policy_host::{ErasedPolicyHost, PolicyHost};

/// Options of a second-tier simulation.
#[derive(Clone, Debug)]
pub struct Tier2Options {
    /// Number of frames, at least 1.
    pub frames: u32,
    /// Approximate number of page ids if they are dense; `None` for any ids, with hashed tables.
    pub pages_dense: Option<u64>,
    /// Seed of the policy's random choices.
    pub seed: u64,
    /// The simulated model of a cache.
    pub model: Model,
}

impl Tier2Options {
    /// Returns options for `frames` frames under `model`, with seed 1.
    pub fn new(frames: u32, pages_dense: Option<u64>, model: Model) -> Tier2Options {
        Tier2Options { frames, pages_dense, seed: 1, model }
    }
}

/// A second-tier simulation with its policy's type erased.
pub trait Tier2Simulation: Send {
    /// Simulates the batch's requests. `future` covers the whole trace. Its rows count from the
    /// simulation's first row, including dsync requests. Policies with `NEEDS_FUTURE` require it.
    /// In the `rw` model it also lets policies see pre-clean pages, and gives
    /// [`Tier2Counts::replacement_cost`].
    ///
    /// # Errors
    /// [`Stalled`] when the policy finds no victim. That is a fault of the policy, and ends the
    /// run.
    fn run(&mut self, batch: &Batch, future: Option<&Tier2Future>) -> Result<(), Stalled>;

    /// Returns the counts so far.
    fn counts(&self) -> Tier2Counts;
}

/// Facts from the trace's future about one request.
#[derive(Clone, Copy, Default)]
struct Outlook {
    next: u64,
    next_read: u64,
    flags: u8,
}

/// A second-tier simulation that calls its policy through a pointer: compiled once for all
/// policies.
pub struct Tier2Cell {
    /// The policy's id.
    policy: &'static str,
    policy_host: Box<dyn ErasedPolicyHost>,
    cache: Cache,
    model: Model,
    row: u64,
    saw_future: bool,
    counts: Tier2Counts,
}

impl Tier2Cell {
    /// Creates an empty cache under a new policy `P`.
    pub fn new<P: Policy>(config: &P::Config, options: &Tier2Options) -> Tier2Cell {
        let host = Box::new(PolicyHost::<P>::new(config, &Tier2Cell::shape(options)));
        Tier2Cell::of(P::INFO.id, host, options)
    }

    /// Returns the shape of the policy's cache.
    pub(crate) fn shape(options: &Tier2Options) -> Shape {
        let (frames, pages_dense) = (options.frames.max(1), options.pages_dense);
        Shape { frames, pages_dense, seed: options.seed }
    }

    /// Creates an empty cache under the policy `policy`, which `policy_host` hosts.
    pub(crate) fn of(
        policy: &'static str,
        policy_host: Box<dyn ErasedPolicyHost>,
        options: &Tier2Options,
    ) -> Tier2Cell {
        Tier2Cell {
            policy,
            policy_host,
            cache: Cache::new(options.frames.max(1), options.pages_dense),
            model: options.model,
            row: 0,
            saw_future: true,
            counts: Tier2Counts::default(),
        }
    }

    /// Returns the pages in the cache, in the order of their frames.
    pub fn pages(&self) -> Vec<PageId> {
        self.resident().into_iter().map(|f| self.cache.page_of[f.index()]).collect()
    }

    fn resident(&self) -> Vec<FrameId> {
        let flags = self.cache.flags.iter().enumerate();
        flags.filter(|(_, f)| **f != 0).map(|(i, _)| FrameId(i as u32)).collect()
    }

    /// Checks the policy's invariants.
    ///
    /// # Errors
    /// A description of the broken invariant.
    pub fn check(&self) -> Result<(), String> {
        self.policy_host.check(&self.resident())
    }

    /// Simulates one row of the trace.
    #[inline(always)]
    fn row(&mut self, page: PageId, mark: Mark, outlook: Outlook) -> Result<(), Stalled> {
        if mark.reason() == Reason::Dsync {
            self.counts.dsyncs += 1;
            if self.model == Model::Rw {
                self.dsync(page);
            }
            return Ok(());
        }
        let Outlook { next, next_read, .. } = outlook;
        let access = Access { page, mark, now: self.policy_host.tick(), next, next_read };
        let number = self.cache.number(page);
        let found = self.cache.table.get(page).map(FrameId);
        if !mark.is_write() {
            self.count_read(found.is_some(), number);
        }
        self.counts.references += 1;
        let placed = match found {
            Some(frame) => {
                self.counts.hits += 1;
                let flags = &mut self.cache.flags[frame.index()];
                let cooling = *flags & COOLING != 0;
                *flags &= !COOLING;
                self.policy_host.hit(frame, &access, cooling);
                Some(frame)
            }
            None => self.miss(&access, number)?,
        };
        *self.cache.page_flags(number) |= SEEN;
        if let Some(frame) = placed {
            self.settle(frame, mark, number, outlook.flags);
        }
        Ok(())
    }

    #[inline(always)]
    fn count_read(&mut self, hit: bool, number: u32) {
        self.counts.reads_cold += 1;
        self.counts.read_hits_cold += u64::from(hit);
        if self.counts.full_at.is_some() {
            self.counts.reads += 1;
            self.counts.read_hits += u64::from(hit);
        }
        if !hit {
            self.counts.storage_reads += 1;
            let seen = *self.cache.page_flags(number) & SEEN != 0;
            self.counts.first_reads += u64::from(!seen);
        }
    }

    /// Finds a frame for the missed page, and loads the page; returns `None` if the page bypasses
    /// the cache.
    #[inline(always)]
    fn miss(&mut self, access: &Access, number: u32) -> Result<Option<FrameId>, Stalled> {
        if self.model == Model::Read && !self.policy_host.wants(access) {
            self.counts.bypasses += 1;
            return Ok(None);
        }
        let ghost_hit = self.policy_host.miss(access);
        let frame = match self.cache.free_frame() {
            Some(frame) => frame,
            None => {
                self.policy_host.evict(&mut self.cache, 1, Some((access.page, ghost_hit)));
                self.cache.free_frame().ok_or_else(|| self.stalled())?
            }
        };
        self.cache.load(frame, access.page, number);
        self.policy_host.admit(frame, access, ghost_hit);
        if self.counts.full_at.is_none() && self.cache.is_full() {
            self.counts.full_at = Some(self.counts.references - 1);
        }
        Ok(Some(frame))
    }

    /// Records the effect of the request: a dirty page, or a page that was written through.
    #[inline(always)]
    fn settle(&mut self, frame: FrameId, mark: Mark, number: u32, outlook: u8) {
        let flags = &mut self.cache.flags[frame.index()];
        *flags = (*flags & !READ_NEXT) | (outlook & READ_NEXT);
        if !mark.is_write() {
            return;
        }
        if self.model == Model::Read {
            self.policy_host.cleaned(frame);
            return;
        }
        *flags = (*flags & !DUE) | (outlook & DUE);
        self.cache.set_dirty(frame);
        let page = self.cache.page_flags(number);
        *page = (*page | UNSYNCED) & !EVICTED_DIRTY;
    }

    /// Serves a dsync request: writes the page if it is cached and dirty.
    fn dsync(&mut self, page: PageId) {
        let number = self.cache.number(page);
        let flags = *self.cache.page_flags(number);
        if flags & UNSYNCED == 0 {
            return;
        }
        *self.cache.page_flags(number) &= !(UNSYNCED | EVICTED_DIRTY);
        match self.cache.table.get(page).map(FrameId) {
            Some(frame) if self.cache.flags[frame.index()] & DIRTY != 0 => {
                self.cache.set_clean(frame);
                self.counts.dsync_writes += 1;
                self.policy_host.cleaned(frame);
            }
            // The page was evicted, and thereby written, after its last write: it had been
            // pre-clean.
            _ => self.counts.preclean_writes += u64::from(flags & EVICTED_DIRTY != 0),
        }
    }

    #[cold]
    fn stalled(&self) -> Stalled {
        let frames = self.cache.frames();
        Stalled { policy: self.policy, frames, reference: self.counts.references - 1 }
    }
}

impl Tier2Simulation for Tier2Cell {
    fn run(&mut self, batch: &Batch, future: Option<&Tier2Future>) -> Result<(), Stalled> {
        self.saw_future &= future.is_some();
        for at in 0..batch.len() {
            let mut outlook = Outlook::default();
            if let Some(future) = future {
                let row = self.row as usize;
                let (next, next_read) = (future.next[row], future.next_read[row]);
                let read_next = next != NEVER && next == next_read;
                let flags = u8::from(future.due[row]) * DUE + u8::from(read_next) * READ_NEXT;
                outlook = Outlook { next, next_read, flags };
            }
            self.row(PageId(batch.pages[at]), batch.marks[at], outlook)?;
            self.row += 1;
        }
        Ok(())
    }

    fn counts(&self) -> Tier2Counts {
        let with_cost = self.model == Model::Rw && self.saw_future;
        Tier2Counts {
            evictions: self.cache.evictions,
            offers: self.cache.offers,
            evict_writes: self.cache.evict_writes,
            replacement_cost: with_cost.then_some(self.cache.replacement_cost),
            dirty_at_end: self.cache.dirty_now,
            policy_bytes: self.policy_host.bytes() as u64,
            ..self.counts
        }
    }
}
