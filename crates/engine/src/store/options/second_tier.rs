//! What a second tier is made of.

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
    /// Its file.
    pub path: PathBuf,
    /// Bytes of that file at most.
    pub bytes: u64,
    /// Its replacement policy, as `millpond policies` lists those of a second tier.
    pub policy: String,
    /// Whether what is written stays in the cache: see
    /// [`Options::write_back`](crate::Options::write_back).
    pub write_back: bool,
}
