//! Helpers of the second-tier tests: random storage-level traces.
#![allow(dead_code)]

use millpond_base::{Mark, Reason};
use millpond_lab::registry::Registry;
use millpond_lab::tier2::{Model, Tier2Counts, Tier2Future, Tier2Options};
use millpond_policies::config::Spec;
use millpond_workload::trace::Batch;

/// The mark of a dsync request.
pub const DSYNC: u8 = b'd';

/// One row from a letter: r, w (REPLACE), c (RECOV), s (SYNCH), d (dsync).
pub fn mark(letter: u8) -> Mark {
    match letter {
        b'r' => Mark::READ,
        b'w' => Mark::WRITE.with_reason(Reason::Replace),
        b'c' => Mark::WRITE.with_reason(Reason::Recov),
        b's' => Mark::WRITE.with_reason(Reason::Synch),
        DSYNC => Mark::WRITE.with_reason(Reason::Dsync),
        other => panic!("no such request: {}", other as char),
    }
}

/// A trace written as `r0 w1 d1 …`.
pub fn trace(text: &str) -> Batch {
    let mut batch = Batch::default();
    for word in text.split_ascii_whitespace() {
        batch.push(word[1..].parse().unwrap(), mark(word.as_bytes()[0]));
    }
    batch
}

/// `len` random rows over `pages` pages, skewed to low ids, with requests drawn from `letters`.
pub fn random_trace(seed: u64, len: usize, pages: u64, letters: &[u8]) -> Batch {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut batch = Batch::default();
    for _ in 0..len {
        let page = rng.u64(0..pages).min(rng.u64(0..pages));
        batch.push(page, mark(letters[rng.usize(0..letters.len())]));
    }
    batch
}

/// The counts of one run.
pub fn run(policy: &str, trace: &Batch, pages: u64, frames: u32, model: Model) -> Tier2Counts {
    let spec = Spec::parse(policy).unwrap();
    let registry = Registry::builtin();
    let options = Tier2Options::new(frames, Some(pages), model);
    let mut cell = registry.find(&spec.id).unwrap().tier2(&spec, &options).unwrap();
    cell.run(trace, Some(&Tier2Future::of(trace, pages))).unwrap();
    cell.counts()
}
