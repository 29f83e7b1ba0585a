//! The memory budget: splits one number, and computes the frames that remain after all other parts.
//!
//! ```text
//! fixed          counters, latency histograms, tables of reads in flight and of epochs
//! pool           frames × (192-byte header + page), rounded up to 4 KiB
//! lists          24 bytes per frame: free frames, frames that wait for their epoch, frames that
//!                wait to be written
//! page table     only if translation has one: 16 bytes per bucket, a bucket per frame, rounded
//!                up to a power of two
//! policy         list nodes, and as many ghosts as its parameters let it keep
//! page map       8 bytes per page of a store whose pages are written out of place
//! second tier    its tables and its policy: 130 to 330 bytes for each page that it has room for
//! write buffers  64 pages: what is on its way out is copied, so that nobody waits for the device
//!                under a latch
//! ```
//! Each part is charged at its largest, so that the process always stays within the number.
//! Cautious charges leave less than one frame unused, and the slack of ghosts.

use millpond_policies::chosen::ChosenPolicy;

use crate::pool::translation::page_table::PageTable;
use crate::pool::writeback::writeback::Writeback;
use crate::pool::{FRAME_HEADER_BYTES, Optimistic};
use crate::store::options::choices::TranslationMode;

/// Minimum number of frames of a pool: the pages that one operation holds at a time, times a few
/// threads, and a cooling stage.
pub const FRAMES_MIN: u32 = 64;
/// Maximum number of frames of a pool.
pub const FRAMES_MAX: u32 = i32::MAX.cast_unsigned();
/// Bytes charged for everything that does not depend on the size of the pool. Histograms of a
/// thread slot take 39 KiB; this covers 24 of them.
pub const FIXED_BYTES: u64 = 1 << 20;

const LIST_BYTES: u64 = 24;
const OS_PAGE: u64 = 4096;

/// A memory number that cannot be split.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// Not even the smallest pool fits.
    #[error(
        "{memory} bytes of memory are too few: a pool of {page_size}-byte pages needs at least \
         {minimum}; each thread that uses the store takes up to 400 KiB more"
    )]
    TooSmall {
        /// The requested number, in bytes.
        memory: u64,
        /// Bytes per page.
        page_size: u32,
        /// Smallest number that works, in bytes.
        minimum: u64,
    },
    /// The policy could outgrow any number.
    #[error(
        "policy '{policy}' may keep ghosts without bound: give its parameter a limit, such as 2x"
    )]
    Unbounded {
        /// The policy with its parameters, as written.
        policy: String,
    },
}

/// The parts of a store that need memory.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// Bytes per page.
    pub page_size: u32,
    /// The translation, which decides whether there is a page table.
    pub translation: TranslationMode,
    /// The policy whose state must fit.
    pub policy: &'a ChosenPolicy,
    /// Bytes of the page map.
    pub map_bytes: u64,
    /// Bytes of the second tier's tables and policy.
    pub tier_bytes: u64,
    /// Bytes of the log's buffer.
    pub log_bytes: u64,
    /// Bytes of locks.
    pub lock_bytes: u64,
    /// Bytes of versions for snapshots, and of undo for transactions.
    pub version_bytes: u64,
}

/// Memory of each part of a store, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Number of frames of the pool.
    pub frames: u32,
    /// Bytes of headers and pages.
    pub pool_bytes: u64,
    /// Bytes of lists of frames.
    pub list_bytes: u64,
    /// Bytes of the page table, or 0 without one.
    pub table_bytes: u64,
    /// Maximum bytes of the policy's lists and ghosts.
    pub policy_bytes: u64,
    /// Bytes of pages being written.
    pub write_buffer_bytes: u64,
    /// Bytes of the page map at its size when the store is opened; 0 if pages are written in place.
    pub map_bytes: u64,
    /// Bytes of the second tier's tables and policy; 0 without one.
    pub tier_bytes: u64,
    /// Bytes of log records that are not durable yet; 0 without a log.
    pub log_bytes: u64,
    /// Maximum bytes of transactions' locks; 0 without locks.
    pub lock_bytes: u64,
    /// Maximum memory of entry versions, for snapshots and for the undo of transactions; 0 without
    /// locks.
    pub version_bytes: u64,
    /// Memory that does not depend on the pool's size.
    pub fixed_bytes: u64,
}

impl Budget {
    /// Returns the sum of all parts.
    pub fn total(&self) -> u64 {
        let parts = [
            self.pool_bytes,
            self.list_bytes,
            self.table_bytes,
            self.policy_bytes,
            self.write_buffer_bytes,
            self.map_bytes,
            self.tier_bytes,
            self.log_bytes,
            self.lock_bytes,
            self.version_bytes,
            self.fixed_bytes,
        ];
        parts.iter().fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// Returns the bytes that `frames` frames cost.
    ///
    /// # Errors
    /// [`BudgetError::Unbounded`].
    pub fn of_frames(frames: u32, demand: &Demand<'_>) -> Result<Budget, BudgetError> {
        let page = u64::from(demand.page_size);
        let policy_bytes = demand.policy.state_bytes(frames);
        let policy_bytes = policy_bytes
            .ok_or_else(|| BudgetError::Unbounded { policy: demand.policy.spec.to_string() })?;
        let table_bytes = match demand.translation {
            TranslationMode::Swizzled => 0,
            TranslationMode::Hashed | TranslationMode::SwizzledTable => {
                PageTable::<Optimistic>::bytes(frames)
            }
        };
        let pool = u64::from(frames) * (FRAME_HEADER_BYTES as u64 + page);
        Ok(Budget {
            frames,
            pool_bytes: pool.next_multiple_of(OS_PAGE),
            list_bytes: u64::from(frames) * LIST_BYTES,
            table_bytes,
            policy_bytes,
            write_buffer_bytes: Writeback::bytes(demand.page_size as usize),
            map_bytes: demand.map_bytes,
            tier_bytes: demand.tier_bytes,
            log_bytes: demand.log_bytes,
            lock_bytes: demand.lock_bytes,
            version_bytes: demand.version_bytes,
            fixed_bytes: FIXED_BYTES,
        })
    }

    /// Returns the budget with the most frames that `memory` bytes allow.
    ///
    /// # Errors
    /// [`BudgetError`] when even [`FRAMES_MIN`] frames do not fit, or nothing ever would.
    pub fn split(memory: u64, demand: &Demand<'_>) -> Result<Budget, BudgetError> {
        let mut best = Self::of_frames(FRAMES_MIN, demand)?;
        if best.total() > memory {
            let page_size = demand.page_size;
            return Err(BudgetError::TooSmall { memory, page_size, minimum: best.total() });
        }
        // `best` always fits, `too_many` never does. So the result fits even if some policy's
        // ghosts should not grow with the pool.
        let by_pages = memory / u64::from(demand.page_size.max(1)) + 1;
        let mut too_many = u32::try_from(by_pages).unwrap_or(u32::MAX).min(FRAMES_MAX + 1);
        while too_many - best.frames > 1 {
            let middle = best.frames.midpoint(too_many);
            match Self::of_frames(middle, demand) {
                Ok(budget) if budget.total() <= memory => best = budget,
                _ => too_many = middle,
            }
        }
        Ok(best)
    }
}

#[cfg(test)]
mod tests {
    use millpond_policies::info::Tier;

    use super::*;

    fn policy(text: &str) -> ChosenPolicy {
        ChosenPolicy::parse(text, Tier::First).unwrap()
    }

    #[test]
    fn every_number_is_used_up_to_less_than_a_frame_s_share_and_never_exceeded() {
        let mut random = fastrand::Rng::with_seed(41);
        for text in ["lean-evict", "lru", "watt", "random", "arc", "lirs"] {
            let policy = policy(text);
            for translation in [TranslationMode::Swizzled, TranslationMode::Hashed] {
                for _ in 0..40 {
                    let page_size = 4096 << random.u32(..5);
                    let bits = random.u32(10..40);
                    let memory = (12 << 20) + random.u64(..1 << bits);
                    let demand = Demand {
                        page_size,
                        translation,
                        policy: &policy,
                        map_bytes: 0,
                        tier_bytes: 0,
                        log_bytes: 0,
                        lock_bytes: 0,
                        version_bytes: 0,
                    };
                    let budget = Budget::split(memory, &demand).unwrap();
                    assert!(budget.total() <= memory);
                    let more = Budget::of_frames(budget.frames + 1, &demand).unwrap();
                    assert!(more.total() > memory, "{text}: {budget:?} for {memory}");
                }
            }
        }
    }

    #[test]
    fn frames_are_what_most_of_the_memory_becomes() {
        let policy = policy("lean-evict");
        let demand = Demand {
            page_size: 4096,
            translation: TranslationMode::Swizzled,
            policy: &policy,
            map_bytes: 0,
            tier_bytes: 0,
            log_bytes: 0,
            lock_bytes: 0,
            version_bytes: 0,
        };
        let budget = Budget::split(1 << 30, &demand).unwrap();
        assert!(budget.pool_bytes as f64 > 0.98 * (1u64 << 30) as f64, "{budget:?}");
        assert_eq!(
            budget.pool_bytes,
            (u64::from(budget.frames) * (192 + 4096)).next_multiple_of(4096)
        );
        assert_eq!(budget.table_bytes, 0);
        let hashed = Demand { translation: TranslationMode::Hashed, ..demand };
        let hashed = Budget::split(1 << 30, &hashed).unwrap();
        assert!(hashed.frames < budget.frames);
        assert!(u64::from(hashed.frames) * 16 <= hashed.table_bytes);
    }

    #[test]
    fn a_number_that_is_too_small_is_told_the_least_that_works() {
        let policy = policy("watt");
        let demand = Demand {
            page_size: 65536,
            translation: TranslationMode::Hashed,
            policy: &policy,
            map_bytes: 0,
            tier_bytes: 0,
            log_bytes: 0,
            lock_bytes: 0,
            version_bytes: 0,
        };
        let error = Budget::split(1000, &demand).unwrap_err();
        let BudgetError::TooSmall { minimum, memory: 1000, page_size: 65536 } = error else {
            panic!("{error}")
        };
        assert!(error.to_string().contains(&minimum.to_string()));
        assert_eq!(Budget::split(minimum, &demand).unwrap().frames, FRAMES_MIN);
        assert!(Budget::split(minimum - 1, &demand).is_err());
    }

    #[test]
    fn a_policy_with_ghosts_leaves_fewer_frames_than_one_without() {
        let (lru, arc) = (policy("lru"), policy("arc"));
        let frames = |policy| {
            let demand = Demand {
                page_size: 4096,
                translation: TranslationMode::Swizzled,
                policy,
                map_bytes: 0,
                tier_bytes: 0,
                log_bytes: 0,
                lock_bytes: 0,
                version_bytes: 0,
            };
            Budget::split(256 << 20, &demand).unwrap().frames
        };
        assert!(frames(&arc) < frames(&lru), "{} {}", frames(&arc), frames(&lru));
    }

    #[test]
    fn absurd_numbers_are_cut_to_what_a_pool_can_have() {
        let policy = policy("lru");
        let demand = Demand {
            page_size: 4096,
            translation: TranslationMode::Swizzled,
            policy: &policy,
            map_bytes: 0,
            tier_bytes: 0,
            log_bytes: 0,
            lock_bytes: 0,
            version_bytes: 0,
        };
        assert_eq!(Budget::split(u64::MAX, &demand).unwrap().frames, FRAMES_MAX);
        assert!(Budget::split(0, &demand).is_err());
    }
}
