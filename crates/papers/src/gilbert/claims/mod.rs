//! Gilbert's own sentences about his figures, each a claim that is judged in the pools that it
//! mentions (gilbert 1.2.8 to 1.2.15, 1.3.4, 1.3.5).
//!
//! - [`clocks`]: the studies of CLOCK, ZCLOCK, GCLOCK and DGCLOCK.
//! - [`others`]: the studies of LRD-V2 and of lean eviction.
//! - [`ranking`]: definitions of *among the fastest* and similar words.
//! - [`speed`], [`misses`]: comparisons of all policies.

pub(super) mod clocks;
mod misses;
pub(super) mod others;
mod ranking;
mod speed;
#[cfg(test)]
mod tests;

pub(super) use misses::misses;
pub(super) use speed::speed;
