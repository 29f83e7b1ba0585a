//! `dynzipf-ro` and `dynzipf-rw`: a Zipf order that changes, scans, and writes (watt 4.1).
//!
//! Three streams are interleaved at fixed shares: reads by Zipf rank; scans that read all pages in
//! order, a run at a time, and then start again; and (in `dynzipf-rw`) writes by Zipf rank.
//! References of the scans carry the scan mark.
//!
//! Every `shuffle-every` references, one rank of the hotter half swaps places with a random page of
//! the colder half. Ranks take turns by a golden-section stride, so that neighbouring ranks change
//! at different times and the shares of the hottest pages depend little on the seed. The paper
//! gives no numbers for shuffle or scan, so the defaults are tuned to its table 2 (references,
//! pages, share of writes, hot pages, top ten).

use millpond_base::{Mark, Seed};

use super::params::Params;
use super::random::Random;
use super::stream::References;
use super::zipf::Zipf;
use super::zipf_ro::method;

/// The state of the generator.
pub(crate) struct DynZipf {
    zipf: Zipf,
    pages: Vec<u32>,
    random: Random,
    left: u64,
    done: u64,
    write_share: f64,
    /// Fractional number of writes that are due; a write is made when it reaches one.
    write_due: f64,
    scan_share: f64,
    /// Fractional number of scan references that are due. When it reaches one, a run starts; each
    /// reference of the run subtracts one.
    scan_due: f64,
    scan_run: u64,
    scan_left: u64,
    scan_at: usize,
    shuffle_every: u64,
    turn: usize,
}

impl DynZipf {
    pub(crate) fn read_only(params: &Params, seed: Seed) -> DynZipf {
        DynZipf::new(params, seed, 0.0)
    }

    pub(crate) fn read_write(params: &Params, seed: Seed) -> DynZipf {
        DynZipf::new(params, seed, params.real("writes"))
    }

    fn new(params: &Params, seed: Seed, writes: f64) -> DynZipf {
        let n = params.pages("pages");
        DynZipf {
            zipf: Zipf::new(n, params.real("theta"), method(params)),
            pages: Random::new(seed.derive("order")).permutation(n),
            random: Random::new(seed.derive("ranks")),
            left: params.count("refs"),
            done: 0,
            write_share: writes,
            write_due: 0.0,
            scan_share: params.real("scan"),
            scan_due: 0.0,
            scan_run: params.count("scan-run").max(1),
            scan_left: 0,
            scan_at: 0,
            shuffle_every: params.count("shuffle-every"),
            turn: 0,
        }
    }

    fn shuffle(&mut self) {
        let half = self.pages.len() / 2;
        if half == 0 {
            return;
        }
        // Steps of 0.618 of the half visit its ranks evenly; an odd remainder keeps it moving.
        self.turn = (self.turn + (half as f64 * 0.618_034) as usize + 1) % half;
        let cold = half + self.random.below((self.pages.len() - half) as u64) as usize;
        self.pages.swap(self.turn, cold);
    }

    fn ranked(&mut self) -> u64 {
        u64::from(self.pages[self.zipf.draw(&mut self.random) as usize])
    }
}

impl References for DynZipf {
    fn next(&mut self) -> Option<(u64, Mark)> {
        self.left = self.left.checked_sub(1)?;
        self.done += 1;
        if self.shuffle_every > 0 && self.done.is_multiple_of(self.shuffle_every) {
            self.shuffle();
        }
        self.write_due += self.write_share;
        if self.write_due >= 1.0 {
            self.write_due -= 1.0;
            return Some((self.ranked(), Mark::WRITE));
        }
        self.scan_due += self.scan_share;
        if self.scan_left == 0 && self.scan_due >= 1.0 {
            self.scan_left = self.scan_run;
        }
        if self.scan_left > 0 {
            self.scan_left -= 1;
            self.scan_due -= 1.0;
            let page = self.scan_at as u64;
            self.scan_at = (self.scan_at + 1) % self.pages.len();
            return Some((page, Mark::READ.with_scan(true)));
        }
        Some((self.ranked(), Mark::READ))
    }
}
