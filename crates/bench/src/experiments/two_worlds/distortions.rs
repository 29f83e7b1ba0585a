//! Effect on misses of each thing that only a live pool does, one at a time.

use std::num::NonZero;

use millpond::EvictionMode;
use millpond::internals::store::{HitDelivery, TranslationMode};

use super::worlds::Plan;
use crate::error::BenchError;
use crate::instance::prepare;
use crate::instance::setup::Setup;
use crate::run::runner::Observer;

/// Something that a live pool does and a simulator does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Distortion {
    /// No distortion: one thread, a page table, one page at a time, each hit delivered at once.
    None,
    /// Pages are pinned by their swizzled children.
    Swizzling,
    /// Victims are selected in batches, ahead of need.
    Batches,
    /// This number of dedicated threads select victims in batches, ahead of need.
    Evictors(u32),
    /// The policy's reference clock advances by this number at a time; only for policies with
    /// such a clock.
    CoarseTicks(u32),
    /// The policy receives hits late and in batches; only for policies that receive hits.
    LateHits,
    /// This number of threads run the workload, with hits delivered at once.
    Threads(u32),
    /// All distortions except coarse ticks: about the default behaviour of a store.
    All(u32),
}

impl Distortion {
    /// Returns all distortions, for `threads` threads.
    pub fn all(threads: u32) -> [Distortion; 8] {
        [
            Distortion::None,
            Distortion::Swizzling,
            Distortion::Batches,
            Distortion::Evictors(1),
            Distortion::CoarseTicks(64),
            Distortion::LateHits,
            Distortion::Threads(threads),
            Distortion::All(threads),
        ]
    }

    /// Returns the distortion's name in results.
    pub fn name(self) -> &'static str {
        match self {
            Distortion::None => "none",
            Distortion::Swizzling => "swizzling",
            Distortion::Batches => "batches",
            Distortion::Evictors(_) => "evictors",
            Distortion::CoarseTicks(_) => "coarse ticks",
            Distortion::LateHits => "late hits",
            Distortion::Threads(_) => "threads",
            Distortion::All(_) => "all",
        }
    }

    /// Returns the number of threads of the workload.
    pub fn threads(self) -> u32 {
        match self {
            Distortion::Threads(threads) | Distortion::All(threads) => threads,
            _ => 1,
        }
    }

    /// Returns the setup of a pool that differs from the simulator's only by this distortion.
    pub fn setup(self, plan: &Plan, policy: &str) -> Setup {
        let mut setup = plan.exact(policy);
        let is_all = matches!(self, Distortion::All(_));
        let evictors = match self {
            Distortion::Evictors(threads) => NonZero::new(threads),
            _ => None,
        };
        if let Some(threads) = evictors {
            setup.options.lab.eviction = EvictionMode::Threads(threads);
        }
        setup.options = setup.options.lab(|lab| {
            if is_all || self == Distortion::Swizzling {
                lab.translation = TranslationMode::Swizzled;
            }
            if is_all || self == Distortion::Batches || evictors.is_some() {
                (lab.batch, lab.background_writer) = (None, true);
            }
            if is_all || self == Distortion::LateHits {
                lab.hit_delivery = HitDelivery::Batched;
            }
            if let Distortion::CoarseTicks(references) = self {
                lab.references_per_tick = references;
            }
        });
        setup
    }
}

/// Results of a distorted run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Distorted {
    /// Page references.
    pub references: u64,
    /// References that missed.
    pub misses: u64,
    /// Pages written.
    pub writes: u64,
    /// Hits of which the policy was not notified.
    pub hits_lost: u64,
}

impl Distorted {
    /// Returns misses over references.
    pub fn miss_ratio(&self) -> f64 {
        self.misses as f64 / self.references.max(1) as f64
    }
}

/// Runs `plan` with one distortion.
///
/// # Errors
/// Any error of the run.
pub fn distorted(
    plan: &Plan,
    policy: &str,
    distortion: Distortion,
    observer: &mut dyn Observer,
) -> Result<Distorted, BenchError> {
    let workload = plan.workload.with_threads(distortion.threads());
    let mut instance = prepare(&distortion.setup(plan, policy), &workload, observer)?;
    let outcome = instance.run(&plan.spec(), &mut |_| Ok(()), observer)?;
    let counts = outcome.counts.unwrap_or_default();
    Ok(Distorted {
        references: counts.references,
        misses: counts.misses,
        writes: counts.writes,
        hits_lost: counts.hits_lost,
    })
}
