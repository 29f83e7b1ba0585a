//! Seeds: every randomised run prints one, and the seed replays it.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A seed from which independent streams are derived by name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Seed(pub u64);

impl Seed {
    /// Derives a seed for the part of a run called `name`, independent of every other
    /// name's.
    pub fn derive(self, name: &str) -> Seed {
        Seed(xxh3_64_with_seed(name.as_bytes(), self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_seeds_repeat_and_differ_by_name() {
        assert_eq!(Seed(1).derive("keys"), Seed(1).derive("keys"));
        assert_ne!(Seed(1).derive("keys"), Seed(1).derive("ops"));
        assert_ne!(Seed(1).derive("keys"), Seed(2).derive("keys"));
    }
}
