//! The plan of one store, computed from its options: page size, policy, frames.

use millpond_base::Seed;
use millpond_policies::chosen::ChosenPolicy;
use millpond_policies::info::Tier;
use millpond_tier::{TierError, TierOptions};

use crate::log::options::BUFFER_MAX;
use crate::page::superblock::Placement;
use crate::pool::{EvictionMode, SyncMode};
use crate::store::options::budget::{Budget, BudgetError, Demand};
use crate::store::options::choices::{LatchingMode, TranslationMode};
use crate::store::options::memory_limit::SystemRoots;
use crate::store::options::own_policy::OwnPolicies;
use crate::store::options::policy_choice::PolicyChoice;

use crate::store::options::error::OptionsError;
use crate::store::options::limits::*;
use crate::store::options::options::Options;

impl Options {
    /// Returns the plan that results from the options, for a store with pages of `store_page_size`
    /// bytes, or for a new one.
    ///
    /// # Errors
    /// [`OptionsError`] for the first invalid option.
    #[doc(hidden)]
    pub fn plan(
        &self,
        system: &SystemRoots,
        store_page_size: Option<u32>,
    ) -> Result<Plan, OptionsError> {
        self.plan_beside(system, store_page_size, 0)
    }

    /// Like [`Options::plan`], for a store whose page map takes `map_bytes` bytes of memory.
    pub(crate) fn plan_beside(
        &self,
        system: &SystemRoots,
        store_page_size: Option<u32>,
        map_bytes: u64,
    ) -> Result<Plan, OptionsError> {
        if let Some(page_size) = self.page_size {
            self.check_page_size(page_size)?;
        }
        self.check_threads()?;
        let page_size = store_page_size.or(self.page_size).unwrap_or(PAGE_SIZE_DEFAULT);
        let policy = self.own_policies.choose(&self.policy)?;
        let memory = self.memory.unwrap_or_else(|| system.default_memory());
        let tier = self.plan_tier(page_size, memory)?;
        let demand = Demand {
            page_size,
            translation: self.lab.translation,
            policy: &policy.chosen,
            map_bytes,
            tier_bytes: tier.as_ref().map_or(0, |tier| tier.memory_bytes),
            log_bytes: if self.lab.log { log_buffer(memory, page_size) } else { 0 },
            lock_bytes: if self.lab.locks { lock_bytes(memory) } else { 0 },
            version_bytes: if self.lab.locks { version_bytes(memory) } else { 0 },
        };
        let budget = match self.lab.frames {
            Some(frames) => Budget::of_frames(frames, &demand)?,
            None => Budget::split(memory, &demand)?,
        };
        let own_policies = self.own_policies.clone();
        let seed = Seed(self.lab.seed);
        Ok(Plan { page_size, policy, own_policies, tier, budget, seed })
    }

    /// Returns the plan of the second tier of a store with pages of `page_size` bytes. Its tables
    /// must fit into `memory`, whatever the number of frames.
    fn plan_tier(&self, page_size: u32, memory: u64) -> Result<Option<TierPlan>, OptionsError> {
        let Some(asked) = self.second_tier.as_ref().filter(|_| !self.read_only) else {
            return Ok(None);
        };
        let policy =
            ChosenPolicy::parse(&asked.policy, Tier::Second).map_err(OptionsError::TierPolicy)?;
        let (bytes, seed) = (asked.bytes, self.lab.seed);
        // The unit depends on the store, and the number of slots does not depend on the unit.
        let (page_bytes, unit, writes_back) = (page_size, page_size, asked.write_back);
        let options = TierOptions { bytes, page_bytes, unit, seed, writes_back };
        let policy_bytes = policy.erased_bytes(options.frames()?);
        let policy_bytes = policy_bytes
            .ok_or_else(|| BudgetError::Unbounded { policy: policy.spec.to_string() })?;
        let memory_bytes = options.table_bytes().saturating_add(policy_bytes);
        if memory_bytes > memory {
            return Err(TierError::TooLarge { bytes, needs: memory_bytes, memory }.into());
        }
        Ok(Some(TierPlan { policy, options, memory_bytes }))
    }

    fn check_page_size(&self, page_size: u32) -> Result<(), OptionsError> {
        let least = if self.lab.tiny_pages { PAGE_SIZE_TINY } else { PAGE_SIZE_MIN };
        if page_size.is_power_of_two() && (least..=PAGE_SIZE_MAX).contains(&page_size) {
            return Ok(());
        }
        Err(OptionsError::PageSize { page_size, least })
    }

    fn check_threads(&self) -> Result<(), OptionsError> {
        let lab = &self.lab;
        if let Some(nodes) = self.lab.numa_nodes {
            in_range("lab.numa_nodes", nodes, 1, PARALLEL_MAX)?;
        }
        if let Some(frames) = lab.frames {
            in_range(
                "lab.frames",
                frames,
                LAB_FRAMES_MIN,
                crate::store::options::budget::FRAMES_MAX,
            )?;
        }
        if let Some(batch) = lab.batch {
            in_range("lab.batch", batch, 1, 4096)?;
        }
        if let Some(attempts) = lab.attempts_max {
            in_range("lab.attempts_max", attempts, 16, 1_000_000)?;
        }
        in_range("lab.references_per_tick", lab.references_per_tick, 1, 1 << 16)?;
        if let EvictionMode::Threads(threads) | EvictionMode::Adaptive(threads) = self.lab.eviction
        {
            in_range("the number of eviction threads", threads.get(), 1, PARALLEL_MAX)?;
            if lab.latching == LatchingMode::None {
                return Err(OptionsError::NotAlone { eviction: self.lab.eviction });
            }
        }
        self.check_cleaning()?;
        if lab.read_ahead && !(lab.background_writer && lab.latching != LatchingMode::None) {
            return Err(OptionsError::NoReader);
        }
        let is_logged_in_place = lab.log && lab.placement == Placement::InPlace;
        if lab.sync_mode != SyncMode::Checkpoint && !is_logged_in_place {
            return Err(OptionsError::NotInPlace { sync_mode: lab.sync_mode });
        }
        Ok(())
    }

    fn check_cleaning(&self) -> Result<(), OptionsError> {
        let Some(rule) = self.lab.cleaning else { return Ok(()) };
        if !matches!(self.lab.eviction, EvictionMode::Threads(_)) {
            return Err(OptionsError::NoCleaners { eviction: self.lab.eviction });
        }
        if rule.neighbours && self.lab.translation != TranslationMode::Hashed {
            return Err(OptionsError::NoNeighbours { translation: self.lab.translation });
        }
        Ok(())
    }
}

/// Returns the bytes of a log's buffer: a thirty-second of the memory, and at least 64 pages. The
/// longest record is about eight pages, and may take a quarter of the buffer at most.
fn log_buffer(memory: u64, page_size: u32) -> u64 {
    let most = BUFFER_MAX as u64;
    let least = (64 * u64::from(page_size)).max(128 << 10);
    debug_assert!(least <= most, "opening a log wipes what a buffer of any store had under way");
    let wanted = (memory / 32).clamp(1, most);
    // Round to a power of two.
    (1 << wanted.ilog2()).max(least)
}

/// Returns the maximum bytes of all locks.
fn lock_bytes(memory: u64) -> u64 {
    (memory / 32).clamp(64 << 10, 64 << 20)
}

/// Returns the maximum bytes of versions for snapshots, and of the undo of transactions.
fn version_bytes(memory: u64) -> u64 {
    (memory / 32).max(128 << 10)
}

fn in_range(knob: &'static str, value: u32, least: u32, most: u32) -> Result<(), OptionsError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(OptionsError::OutOfRange { knob, value, least, most })
}

/// The resolved [`Options`] of one store.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Bytes per page.
    pub page_size: u32,
    /// The policy, looked up and checked.
    pub policy: PolicyChoice,
    /// The program's own policies, which are searched first.
    pub own_policies: OwnPolicies,
    /// Plan of the second tier.
    pub tier: Option<TierPlan>,
    /// Memory of each part.
    pub budget: Budget,
    /// Seed of every random choice.
    pub seed: Seed,
}

/// Plan of a store's second tier.
#[derive(Clone, Debug)]
pub struct TierPlan {
    /// Policy of the tier.
    pub policy: ChosenPolicy,
    /// Size options of the tier.
    pub options: TierOptions,
    /// Maximum bytes of memory that it takes.
    pub memory_bytes: u64,
}
