//! `zipf-ro`: reads with a fixed Zipf distribution (watt 4.1).
//!
//! A random permutation spreads the ranks over the page numbers. θ = 0.9 over 10,000 pages
//! reproduces table 2 of watt: the ten hottest pages have 20.5 % of all references. Seven of them
//! have more than 1 %, three more than 2 %. The table prints 7 under a caption of 2 %. No Zipf
//! distribution with that top-ten share can reach that, since seven pages above 2 % imply a share
//! of over half. So its column is read as pages above 1 %.

use millpond_base::{Mark, Seed};

use super::params::Params;
use super::random::Random;
use super::stream::References;
use super::zipf::{Zipf, ZipfMethod};

/// The state of the generator.
pub(crate) struct ZipfRo {
    zipf: Zipf,
    pages: Vec<u32>,
    random: Random,
    left: u64,
}

impl ZipfRo {
    pub(crate) fn new(params: &Params, seed: Seed) -> ZipfRo {
        let n = params.pages("pages");
        let zipf = Zipf::new(n, params.real("theta"), method(params));
        let pages = Random::new(seed.derive("order")).permutation(n);
        let random = Random::new(seed.derive("ranks"));
        ZipfRo { zipf, pages, random, left: params.count("refs") }
    }
}

/// Returns the sampling method that the parameters name.
pub(crate) fn method(params: &Params) -> ZipfMethod {
    if params.choice("method") == "ycsb" { ZipfMethod::Ycsb } else { ZipfMethod::Table }
}

impl References for ZipfRo {
    fn next(&mut self) -> Option<(u64, Mark)> {
        self.left = self.left.checked_sub(1)?;
        let rank = self.zipf.draw(&mut self.random);
        Some((u64::from(self.pages[rank as usize]), Mark::READ))
    }
}
