//! Defaults and limits of options.

/// The replacement policy of a store whose options name none. Of all that leave the hit path
/// latch-free, at their defaults, it costs least over the workloads that were measured live, in
/// pages read and twice those written, has the least regret simulated (90th percentile), and costs
/// next to nothing in memory (docs/choosing.md).
pub const POLICY_DEFAULT: &str = "tide";
/// The page size of a new store whose options name none.
pub const PAGE_SIZE_DEFAULT: u32 = 4096;
/// The smallest page size that users may set.
pub const PAGE_SIZE_MIN: u32 = 4096;
/// The largest page size.
pub const PAGE_SIZE_MAX: u32 = 65536;
/// The smallest page size with [`Lab::tiny_pages`](crate::Lab).
pub const PAGE_SIZE_TINY: u32 = 512;
/// Pretended NUMA nodes, and threads that evict, at most.
pub const PARALLEL_MAX: u32 = 64;
/// The fewest frames with [`Lab::frames`](crate::Lab).
pub const LAB_FRAMES_MIN: u32 = 8;

/// [`Options::log_gap`](crate::Options#structfield.log_gap) unless it is set.
pub const LOG_GAP_DEFAULT: u64 = 512 << 20;

/// [`Options::spill_max`](crate::Options#structfield.spill_max) unless it is set.
pub const SPILL_MAX_DEFAULT: u64 = 16 << 30;
