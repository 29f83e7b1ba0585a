//! Statistics of a store as a whole: the counts of its rooms, and the present contents of its
//! frames.

use std::sync::Arc;
use std::time::Instant;

use millpond_base::FrameId;
use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;
use millpond_tier::AnyTier;

use crate::io::PageStore;
use crate::pool::{Pool, PoolStrategy, State};
use crate::stats::Statistics;
use crate::store::named::Named;
use crate::store::opened::Opened;
use crate::store::stats::Stats;
use crate::txn::TransactionManager;

/// Approximate number of headers that a census examines. In a larger pool it takes every n-th one
/// and counts it n times: a walk over the headers of a large pool costs a cache miss and a TLB miss
/// for each.
const LOOKS: u32 = 1 << 15;

/// The parts of a store that its statistics are taken from.
pub(crate) struct Census<M: PoolStrategy> {
    pub(crate) pool: Arc<Pool<M>>,
    pub(crate) pages: Arc<PageStore>,
    pub(crate) txns: Arc<TransactionManager>,
    pub(crate) named: Arc<Mutex<Named<M>>>,
    pub(crate) tier: Option<AnyTier>,
    pub(crate) opened: Instant,
}

/// Returns the statistics of the rooms that count: pool, log, locks.
pub(crate) fn rooms<'s, M: PoolStrategy>(
    pool: &'s Pool<M>,
    txns: &'s TransactionManager,
) -> Vec<&'s Statistics> {
    let log = txns.log().map(|log| log.statistics());
    let locks = txns.locks().map(|locks| locks.statistics());
    [Some(pool.statistics()), log, locks].into_iter().flatten().collect()
}

impl<M: PoolStrategy> Census<M> {
    /// Takes a snapshot.
    pub(crate) fn take(&self) -> Stats {
        let (log, locks) = (self.txns.log(), self.txns.locks());
        let mut stats = Stats::collect(&rooms(&self.pool, &self.txns));
        stats.uptime_s = self.opened.elapsed().as_secs_f64();
        self.look_at_pages(&mut stats);
        self.look_at_frames(&mut stats);
        self.look_at_tier(&mut stats);
        stats.active_transactions = self.txns.active().len() as u64;
        stats.open_snapshots = self.txns.snapshots();
        (stats.version_bytes, stats.undo_bytes, stats.spilled_bytes) = self.txns.bytes_kept();
        stats.lock_bytes = locks.map_or(0, |locks| locks.bytes() as u64);
        if let Some(log) = log {
            stats.log_bytes = log.counts().bytes_appended;
            stats.log_unforgotten = self.txns.room().lead(log.tail());
        }
        let named = self.named.lock().past_poison();
        (stats.splits, stats.merges) = named.gone;
        for (splits, merges) in named.open.values().map(Opened::tally) {
            stats.splits += splits;
            stats.merges += merges;
        }
        stats
    }

    fn look_at_pages(&self, stats: &mut Stats) {
        stats.page_size = self.pages.page_size().bytes_u64();
        (stats.store_pages, stats.free_pages) = self.pages.page_counts();
        stats.stored_bytes = self.pages.stored_bytes();
        let counts = self.pages.counts();
        (stats.bytes_read, stats.bytes_written) = (counts.read_bytes, counts.write_bytes);
        stats.syncs = counts.syncs;
        stats.checksum_failures = counts.damaged_reads;
        stats.file_extensions = counts.growths;
    }

    fn look_at_tier(&self, stats: &mut Stats) {
        let Some(counts) = self.tier.as_ref().map(|tier| tier.counts()) else { return };
        (stats.tier_reads, stats.tier_read_hits) = (counts.reads, counts.read_hits);
        (stats.tier_served, stats.tier_writes) = (counts.served, counts.writes);
        (stats.tier_fills, stats.tier_bypasses) = (counts.fills, counts.bypasses);
        (stats.tier_mismatches, stats.tier_errors) = (counts.mismatches, counts.errors);
        (stats.tier_frames, stats.tier_resident) = (counts.frames, counts.resident);
        (stats.tier_destaged, stats.tier_spared) = (counts.destaged, counts.spared);
        stats.tier_dirty = counts.dirty;
        stats.tier_off = u64::from(counts.is_off);
    }

    fn look_at_frames(&self, stats: &mut Stats) {
        let pool = &self.pool;
        let frames = pool.frames();
        stats.frames = u64::from(frames);
        let step = frames.div_ceil(LOOKS).max(1);
        let (mut cooling, mut dirty) = (0u64, 0u64);
        for id in (0..frames).step_by(step as usize) {
            if let Some(frame) = pool.frame(FrameId(id)) {
                cooling += u64::from(frame.state() == State::Cooling);
                dirty += u64::from(frame.is_dirty());
            }
        }
        stats.free_frames = u64::from(pool.frames_free());
        stats.resident_frames = stats.frames.saturating_sub(stats.free_frames);
        stats.cooling_frames = (cooling * u64::from(step)).min(stats.resident_frames);
        stats.dirty_frames = (dirty * u64::from(step)).min(stats.resident_frames);
    }
}
