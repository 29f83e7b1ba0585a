//! Statistics of a store as a whole: the pool's counts, the page store's, and what the frames hold
//! at the moment.

use std::time::Instant;

use millpond_base::FrameId;

use crate::io::PageStore;
use crate::pool::{Pool, PoolStrategy, State};
use crate::store::stats::Stats;

/// Headers that a census looks at, about. In a larger pool it takes every n-th one and counts it n
/// times: a walk over the headers of a large pool costs a cache and a TLB miss for each.
const LOOKS: u32 = 1 << 15;

/// A snapshot.
pub(crate) fn stats<M: PoolStrategy>(pool: &Pool<M>, pages: &PageStore, opened: Instant) -> Stats {
    let mut stats = Stats::collect(pool.counters(), pool.latencies());
    let frames = pool.frames();
    stats.page_size = pages.page_size().bytes_u64();
    stats.frames = u64::from(frames);
    stats.uptime_s = opened.elapsed().as_secs_f64();
    stats.store_pages = pages.pages();
    stats.free_pages = pages.free_pages();
    let counts = pages.counts();
    stats.syncs = counts.syncs;
    stats.checksum_failures = counts.damaged_reads;
    stats.file_extensions = counts.growths;
    let step = frames.div_ceil(LOOKS).max(1);
    let (mut cooling, mut dirty) = (0u64, 0u64);
    for id in (0..frames).step_by(step as usize) {
        if let Some(frame) = pool.memory.header(FrameId(id)) {
            cooling += u64::from(frame.state() == State::Cooling);
            dirty += u64::from(frame.is_dirty());
        }
    }
    stats.free_frames = u64::from(pool.frames_free());
    stats.resident_frames = stats.frames.saturating_sub(stats.free_frames);
    stats.cooling_frames = (cooling * u64::from(step)).min(stats.resident_frames);
    stats.dirty_frames = (dirty * u64::from(step)).min(stats.resident_frames);
    stats
}
