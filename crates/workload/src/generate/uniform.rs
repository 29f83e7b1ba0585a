//! `uniform`: every page equally likely, reads and writes independent of the page.

use millpond_base::{Mark, Seed};

use super::params::Params;
use super::random::Random;
use super::stream::References;

/// The state of the generator.
pub(crate) struct Uniform {
    random: Random,
    pages: u64,
    writes: f64,
    left: u64,
}

impl Uniform {
    pub(crate) fn new(params: &Params, seed: Seed) -> Uniform {
        Uniform {
            random: Random::new(seed),
            pages: params.count("pages"),
            writes: params.real("writes"),
            left: params.count("refs"),
        }
    }
}

impl References for Uniform {
    fn next(&mut self) -> Option<(u64, Mark)> {
        self.left = self.left.checked_sub(1)?;
        let page = self.random.below(self.pages);
        // The draw happens always, so that the pages do not depend on the share of
        // writes.
        let write = self.random.chance(self.writes);
        Some((page, if write { Mark::WRITE } else { Mark::READ }))
    }
}
