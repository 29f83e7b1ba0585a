//! Options of a store: the choices among strategies, the policy, and the resulting number of
//! frames.
pub mod budget;
pub mod choices;
mod error;
mod lab;
mod limits;
pub mod memory_limit;
// `Options` has a file of its own name, like everything else.
#[allow(clippy::module_inception)]
mod options;
pub mod own_policy;
mod plan;
pub mod policy_choice;
pub mod recovery_watch;
mod second_tier;

pub use choices::{DirectIo, LatchingMode, TranslationMode};
pub use error::OptionsError;
pub use lab::Lab;
pub use limits::{
    LAB_FRAMES_MIN, LOG_GAP_DEFAULT, PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, PAGE_SIZE_MIN,
    PAGE_SIZE_TINY, PARALLEL_MAX, POLICY_DEFAULT, SPILL_MAX_DEFAULT,
};
pub use options::Options;
pub use own_policy::OwnPolicies;
pub use plan::{Plan, TierPlan};
pub use recovery_watch::RecoveryWatch;
pub use second_tier::SecondTierOptions;
