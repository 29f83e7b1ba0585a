//! One simulation: a policy, its parameters, a number of frames, a seed.

use millpond_base::{FrameId, Mark, PageId};
use millpond_policies::contract::{Access, GhostHit, HitHook, Policy, Shape};
use millpond_workload::trace::Batch;

use super::future::Future;
use super::host::{COOLING, Pool};
use millpond_policies::policy_host::PolicyHost;

/// Options of a simulation.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// Number of frames, at least 1.
    pub frames: u32,
    /// Approximate number of page ids if they are dense; `None` for any ids, with hashed tables.
    pub pages_dense: Option<u64>,
    /// Seed of the policy's random choices.
    pub seed: u64,
    /// References at the beginning that are simulated, but not counted.
    pub warmup: u64,
    /// Frames evicted at a time; 1 is on demand, and more evicts ahead.
    pub batch: u32,
    /// If `true`, frames that only marked scans have referenced are evicted before the policy's
    /// victims, as in a live pool (leanstore IV-I). The policy is not asked, and keeps no ghosts of
    /// them.
    pub scan_hints: bool,
}

impl SimOptions {
    /// Returns options for demand paging with `frames` frames: seed 1, no warm-up, no scan hints.
    pub fn new(frames: u32, pages_dense: Option<u64>) -> SimOptions {
        SimOptions { frames, pages_dense, seed: 1, warmup: 0, batch: 1, scan_hints: false }
    }
}

/// Counters of a simulation, after its warm-up.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Number of references.
    pub references: u64,
    /// References that found their page resident. All others missed, and each miss is one read.
    pub hits: u64,
    /// Evictions of dirty pages.
    pub dirty_evictions: u64,
    /// Pages that are dirty at the end, and would have to be written too.
    pub dirty_at_end: u64,
    /// Frames evicted.
    pub evictions: u64,
    /// Frames that the policy offered as victims.
    pub offers: u64,
    /// Misses that did not load their page, because the policy rejected it.
    pub bypasses: u64,
    /// Bypasses that were writes; such writes reach storage at once.
    pub bypassed_writes: u64,
    /// Resident pages that only a marked scan had touched when the last scan ended.
    pub pollution: u64,
    /// Marked scans that ended.
    pub scans: u64,
    /// Bytes of policy state at the end: the frames' metadata and the policy's own data.
    pub policy_bytes: u64,
}

impl Counts {
    /// Returns the counts since `earlier`, a state of the same run. Dirty pages at the end,
    /// pollution and bytes are the present values.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            references: self.references - earlier.references,
            hits: self.hits - earlier.hits,
            dirty_evictions: self.dirty_evictions - earlier.dirty_evictions,
            dirty_at_end: self.dirty_at_end,
            evictions: self.evictions - earlier.evictions,
            offers: self.offers - earlier.offers,
            bypasses: self.bypasses - earlier.bypasses,
            bypassed_writes: self.bypassed_writes - earlier.bypassed_writes,
            pollution: self.pollution,
            scans: self.scans - earlier.scans,
            policy_bytes: self.policy_bytes,
        }
    }

    /// Returns the number of references that missed, which equals the page reads.
    pub fn misses(&self) -> u64 {
        self.references - self.hits
    }

    /// Returns the page writes: dirty evictions, pages dirty at the end, and bypassed writes.
    pub fn writes(&self) -> u64 {
        self.dirty_evictions + self.dirty_at_end + self.bypassed_writes
    }

    /// Returns hits divided by references, or 0 without references.
    pub fn hit_ratio(&self) -> f64 {
        if self.references == 0 { 0.0 } else { self.hits as f64 / self.references as f64 }
    }

    /// Returns offers divided by evictions, or 0 without evictions.
    pub fn offers_per_eviction(&self) -> f64 {
        if self.evictions == 0 { 0.0 } else { self.offers as f64 / self.evictions as f64 }
    }
}

/// Error of a policy that stopped finding victims.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy '{policy}' found no victim among {frames} frames at reference {reference}")]
pub struct Stalled {
    /// The policy.
    pub policy: &'static str,
    /// The number of frames.
    pub frames: u32,
    /// Number of the reference, from 0, that needed a frame.
    pub reference: u64,
}

/// References between the prefetch of a page's table entry and its use.
const AHEAD: usize = 16;

/// The policy found no victim. This error fits in a register, unlike [`Stalled`].
struct NoVictim;

/// A simulation with its policy's type erased.
pub trait Simulation: Send {
    /// Simulates the batch's references. `future` covers the whole trace, and positions count
    /// from the simulation's first reference.
    ///
    /// # Errors
    /// [`Stalled`] when the policy finds no victim. That is a fault of the policy, and ends the
    /// run.
    fn run(&mut self, batch: &Batch, future: Option<&Future>) -> Result<(), Stalled>;

    /// Returns the counts so far.
    fn counts(&self) -> Counts;

    /// Returns the frame that holds `page` now.
    fn frame_of(&self, page: PageId) -> Option<FrameId>;
}

/// A simulation of policy `P`.
pub struct Cell<P: Policy> {
    policy_host: PolicyHost<P>,
    pool: Pool,
    position: u64,
    warmup: u64,
    batch: u32,
    counts: Counts,
    in_scan: bool,
}

impl<P: Policy> Cell<P> {
    /// Creates an empty pool under a new policy.
    pub fn new(config: &P::Config, options: &SimOptions) -> Cell<P> {
        let shape =
            Shape { frames: options.frames, pages_dense: options.pages_dense, seed: options.seed };
        Cell {
            policy_host: PolicyHost::new(config, &shape),
            pool: Pool::new(options.frames, options.pages_dense, options.scan_hints),
            position: 0,
            warmup: options.warmup,
            batch: options.batch.clamp(1, options.frames.max(1)),
            counts: Counts::default(),
            in_scan: false,
        }
    }

    /// Returns the policy, for inspection.
    pub fn policy(&self) -> &P {
        self.policy_host.policy()
    }

    /// Returns the bytes of the simulated pool itself: page table, frames, free list. The policy's
    /// bytes are in [`Counts::policy_bytes`].
    pub fn host_bytes(&self) -> usize {
        self.pool.bytes()
    }

    /// Returns the frames with a page, in ascending order.
    pub fn resident(&self) -> Vec<FrameId> {
        let flags = self.pool.flags.iter().enumerate();
        flags.filter(|(_, f)| **f != 0).map(|(i, _)| FrameId(i as u32)).collect()
    }

    /// Returns the pages in the pool, in the order of their frames.
    pub fn pages(&self) -> Vec<PageId> {
        self.resident().into_iter().map(|f| self.pool.page_of[f.index()]).collect()
    }

    /// Checks the policy's invariants.
    ///
    /// # Errors
    /// A description of the broken invariant.
    pub fn check(&self) -> Result<(), String> {
        self.policy_host.check(&self.resident())
    }

    /// Simulates one reference and returns `true` for a hit. This is for tests and tools that
    /// inspect the pool in between. Policies that need the future take whole batches, with
    /// [`Simulation::run`].
    ///
    /// # Errors
    /// [`Stalled`].
    pub fn step(&mut self, page: PageId, mark: Mark) -> Result<bool, Stalled> {
        let hit = match self.reference(page, mark, 0, 0) {
            Ok(hit) => hit,
            Err(NoVictim) => return Err(self.stalled(self.position)),
        };
        self.position += 1;
        self.counts.references += 1;
        self.counts.hits += u64::from(hit);
        Ok(hit)
    }

    /// Simulates one reference and returns `true` for a hit.
    #[inline(always)]
    fn reference(
        &mut self,
        page: PageId,
        mark: Mark,
        next: u64,
        next_read: u64,
    ) -> Result<bool, NoVictim> {
        let access = Access { page, mark, now: self.policy_host.tick(), next, next_read };
        if mark.is_scan() != self.in_scan {
            self.scan_edge(mark.is_scan());
        }
        match self.pool.find(page) {
            Some(frame) => {
                self.on_hit(frame, &access);
                Ok(true)
            }
            None => {
                self.on_miss(&access)?;
                Ok(false)
            }
        }
    }

    #[inline(always)]
    fn on_hit(&mut self, frame: FrameId, access: &Access) {
        let cooling = P::Hook::COOLS && self.pool.flags[frame.index()] & COOLING != 0;
        if cooling {
            self.pool.flags[frame.index()] &= !COOLING;
        }
        self.policy_host.hit(frame, access, cooling);
        if access.mark.is_write() || self.pool.scanned_now != 0 {
            self.pool.mark(frame, access.mark.is_write(), access.mark.is_scan());
        }
    }

    #[inline(always)]
    fn on_miss(&mut self, access: &Access) -> Result<(), NoVictim> {
        if !self.policy_host.wants(access) {
            self.counts.bypasses += 1;
            self.counts.bypassed_writes += u64::from(access.mark.is_write());
            return Ok(());
        }
        let ghost_hit = self.policy_host.miss(access);
        if self.pool.is_full() {
            self.evict(access.page, ghost_hit);
        }
        let frame = self.pool.free_frame().ok_or(NoVictim)?;
        self.pool.load(frame, access.page, access.mark.is_write(), access.mark.is_scan());
        self.policy_host.admit(frame, access, ghost_hit);
        Ok(())
    }

    #[inline(always)]
    fn evict(&mut self, page: PageId, ghost_hit: GhostHit) {
        let scanned = if self.pool.hints() { self.evict_scanned(self.batch) } else { 0 };
        if scanned < self.batch {
            self.policy_host.evict(&mut self.pool, self.batch - scanned, Some((page, ghost_hit)));
        }
    }

    /// Evicts up to `wanted` frames that only scans have referenced, if hints are on. Returns the
    /// number of evicted frames.
    #[inline(never)]
    fn evict_scanned(&mut self, wanted: u32) -> u32 {
        let mut taken = 0;
        while taken < wanted
            && let Some(frame) = self.pool.evict_scanned()
        {
            self.policy_host.forget(frame);
            taken += 1;
        }
        taken
    }

    #[cold]
    fn stalled(&self, reference: u64) -> Stalled {
        Stalled { policy: P::INFO.id, frames: self.pool.frames(), reference }
    }

    #[cold]
    fn scan_edge(&mut self, begins: bool) {
        self.in_scan = begins;
        if !begins {
            self.counts.scans += 1;
            self.counts.pollution = self.pool.scanned_now;
        }
    }

    /// Resets the counts at the end of the warm-up.
    #[cold]
    fn restart_counts(&mut self) {
        self.counts = Counts::default();
        (self.pool.offers, self.pool.refusals, self.pool.dirty_evictions) = (0, 0, 0);
    }

    fn run_range(
        &mut self,
        batch: &Batch,
        range: std::ops::Range<usize>,
        future: Option<&Future>,
    ) -> Result<(), Stalled> {
        // Counts per reference are kept in registers here instead of memory.
        let from = self.position;
        let mut hits = 0u64;
        let pages = &batch.pages[range.clone()];
        let ahead = if self.pool.wants_prefetch() { AHEAD } else { pages.len() };
        for (at, (&page, &mark)) in pages.iter().zip(&batch.marks[range]).enumerate() {
            if let Some(&page) = pages.get(at + ahead) {
                self.pool.prefetch(PageId(page));
                self.policy_host.will_reference(PageId(page));
            }
            let (mut next, mut next_read) = (0, 0);
            if P::NEEDS_FUTURE
                && let Some(future) = future
            {
                let now = from as usize + at;
                (next, next_read) = (future.next[now], future.next_read[now]);
            }
            match self.reference(PageId(page), mark, next, next_read) {
                Ok(hit) => hits += u64::from(hit),
                Err(NoVictim) => return Err(self.stalled(from + at as u64)),
            }
        }
        self.counts.hits += hits;
        self.counts.references += pages.len() as u64;
        self.position = from + pages.len() as u64;
        Ok(())
    }
}

impl<P: Policy> Simulation for Cell<P> {
    fn run(&mut self, batch: &Batch, future: Option<&Future>) -> Result<(), Stalled> {
        let cold = self.warmup.saturating_sub(self.position).min(batch.len() as u64) as usize;
        if cold > 0 {
            self.run_range(batch, 0..cold, future)?;
            self.restart_counts();
        }
        self.run_range(batch, cold..batch.len(), future)
    }

    fn counts(&self) -> Counts {
        let mut counts = self.counts;
        if self.in_scan {
            // The trace ends inside a scan, and the end of the trace counts as the end of the scan.
            counts.scans += 1;
            counts.pollution = self.pool.scanned_now;
        }
        Counts {
            dirty_evictions: self.pool.dirty_evictions,
            dirty_at_end: self.pool.dirty_now,
            evictions: self.pool.evictions(),
            offers: self.pool.offers,
            policy_bytes: self.policy_host.bytes() as u64,
            ..counts
        }
    }

    fn frame_of(&self, page: PageId) -> Option<FrameId> {
        self.pool.find(page)
    }
}
