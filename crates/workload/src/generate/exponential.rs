//! `exponential`: writes whose pages are exponentially distributed, each followed by the request
//! to make it durable, at once or after a delay (li 4.4.1.1).
//!
//! Every write is a plain write; its dsync record (`Reason::Dsync`, no page reference) follows
//! immediately for a share `sync` of the writes, and for the others after `delay` further writes,
//! or at the end. Page p of n has the probability of the interval [p, p+1)·span/n under the
//! density λ·e^(−λx), cut off at `span`. The thesis does not give the length of its file in units
//! of the distribution. With 40, a window of 200,000 writes touches about a third as many pages,
//! as its section reports.

use std::collections::VecDeque;

use millpond_base::{Mark, Reason, Seed};

use super::params::Params;
use super::random::Random;
use super::stream::References;

/// The state of the generator.
pub(crate) struct Exponential {
    random: Random,
    pages: u64,
    writes: u64,
    done: u64,
    rate: f64,
    sync: f64,
    delay: u64,
    /// Deferred writes: the page and the number of writes at which its dsync is due.
    deferred: VecDeque<(u64, u64)>,
    at_once: Option<u64>,
}

impl Exponential {
    pub(crate) fn new(params: &Params, seed: Seed) -> Exponential {
        Exponential {
            random: Random::new(seed),
            pages: params.count("pages"),
            writes: params.count("writes"),
            done: 0,
            rate: params.real("lambda") * params.real("span"),
            sync: params.real("sync"),
            delay: params.count("delay"),
            deferred: VecDeque::new(),
            at_once: None,
        }
    }

    /// Draws a page by inversion of the cut-off distribution, exact for any rate.
    fn page(&mut self) -> u64 {
        let covered = -(-self.rate).exp_m1();
        let x = -(-self.random.unit() * covered).ln_1p() / self.rate;
        ((x * self.pages as f64) as u64).min(self.pages - 1)
    }
}

impl References for Exponential {
    fn next(&mut self) -> Option<(u64, Mark)> {
        let dsync = Mark::WRITE.with_reason(Reason::Dsync);
        if let Some(page) = self.at_once.take() {
            return Some((page, dsync));
        }
        let is_over = self.done == self.writes;
        if let Some((page, due)) = self.deferred.front().copied()
            && (is_over || due <= self.done)
        {
            self.deferred.pop_front();
            return Some((page, dsync));
        }
        if is_over {
            return None;
        }
        self.done += 1;
        let page = self.page();
        if self.random.chance(self.sync) {
            self.at_once = Some(page);
        } else {
            self.deferred.push_back((page, self.done + self.delay));
        }
        Some((page, Mark::WRITE))
    }
}
