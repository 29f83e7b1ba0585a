//! Defaults and limits of options.

/// The default replacement policy. Of all policies that keep the hit path latch-free, at their
/// defaults, it costs least over the workloads measured live, in pages read and twice those
/// written. It also has the least simulated regret (90th percentile), and takes next to no memory
/// (docs/choosing.md).
pub const POLICY_DEFAULT: &str = "tide";
/// The default page size of a new store.
pub const PAGE_SIZE_DEFAULT: u32 = 4096;
/// The smallest page size that users may set.
pub const PAGE_SIZE_MIN: u32 = 4096;
/// The largest page size.
pub const PAGE_SIZE_MAX: u32 = 65536;
/// The smallest page size with [`Lab::tiny_pages`](crate::Lab).
pub const PAGE_SIZE_TINY: u32 = 512;
/// Maximum number of pretended NUMA nodes, and of threads that evict.
pub const PARALLEL_MAX: u32 = 64;
/// The fewest frames with [`Lab::frames`](crate::Lab).
pub const LAB_FRAMES_MIN: u32 = 8;

/// Default of [`Options::log_gap`](crate::Options#structfield.log_gap).
pub const LOG_GAP_DEFAULT: u64 = 512 << 20;

/// Default of [`Options::spill_max`](crate::Options#structfield.spill_max).
pub const SPILL_MAX_DEFAULT: u64 = 16 << 30;
