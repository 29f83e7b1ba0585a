//! Options of a second tier.

use std::path::PathBuf;

/// A cache of a store's pages on a fast device: see
/// [`Options::second_tier`](crate::Options::second_tier).
///
/// ```
/// use millpond::Options;
/// let options = Options::new().second_tier("/nvme/pond.tier", 1 << 30, "tq");
/// let tier = options.second_tier.unwrap();
/// assert_eq!((tier.bytes, tier.policy.as_str()), (1 << 30, "tq"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SecondTierOptions {
    /// Path of the tier's file.
    pub path: PathBuf,
    /// Maximum bytes of that file.
    pub bytes: u64,
    /// Replacement policy of the tier: one that `millpond policies` lists for a second tier.
    pub policy: String,
    /// Set if written pages stay in the cache: see
    /// [`Options::write_back`](crate::Options::write_back).
    pub write_back: bool,
}
