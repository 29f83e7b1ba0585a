//! Choice of the page to evict: the policy host, hits on their way to it, rounds of eviction, and
//! the evictor threads that are called for them.
pub(in crate::pool) mod clock;
pub(in crate::pool) mod eviction;
pub mod evictor_threads;
pub(in crate::pool) mod evictors;
pub(in crate::pool) mod hit_rings;
pub mod policy_host;
#[allow(clippy::module_inception, reason = "the folder's noun")]
pub(in crate::pool) mod replacement;
pub(in crate::pool) mod scanned;
