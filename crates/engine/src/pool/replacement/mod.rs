//! Choice of the page to evict: the policy host, the eviction that asks it for victims, free
//! frames, evictor threads.
pub(crate) mod cleaning;
pub(in crate::pool) mod clock;
pub(in crate::pool) mod eviction;
pub(in crate::pool) mod evictor;
pub mod evictor_threads;
pub(in crate::pool) mod free_frames;
pub(in crate::pool) mod hit_rings;
pub mod policy_host;
pub(crate) mod scanned;
