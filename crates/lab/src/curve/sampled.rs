//! Curves of any policy from a sample of the pages.
//!
//! A hash of a page's id puts the page into the sample, with all its references, or leaves it out.
//! A cache of `size` frames behaves like one of `size × rate` frames on a sample of that rate.
//! Small caches take a high rate, up to 1, and large ones a low rate. Every point therefore costs
//! about as much, and none rests on a handful of frames. Parameters that count frames or references
//! shrink with the sample, and rates per reference grow. The sample's misses are divided by the
//! references that it should have had: a few very hot pages nearly always cause the missing or
//! excess references, and those references hit anyway.

use millpond_base::Mark;
use millpond_policies::config::Spec;
use millpond_workload::trace::Batch;

use crate::registry::{Entry, PolicyError};
use crate::sim::{SimOptions, Simulation, Stalled};

/// Hash space of the sample.
const SPACE: u64 = 1 << 24;

/// One size of one policy on a sample with a rate for this size.
pub struct SampledCell {
    size: u64,
    limit: u64,
    simulation: Box<dyn Simulation>,
    sampled: Batch,
    references: u64,
}

/// Returns a page's place in the hash space.
#[inline(always)]
pub fn place(page: u64) -> u64 {
    let mut x = page.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (x ^ (x >> 32)) % SPACE
}

/// Returns the sampling rate for a cache of `size` frames over a trace of `pages` distinct pages.
/// The sample has about 16 K pages, and the scaled cache at least 512 frames if `size` has as many.
pub fn rate_for(size: u64, pages: u64) -> f64 {
    const PAGES: f64 = 16_384.0;
    const FRAMES: f64 = 512.0;
    (PAGES / pages.max(1) as f64).max(FRAMES / size.max(1) as f64).min(1.0)
}

/// Returns the part of the hash space that a sample at `rate` takes.
fn limit_at(rate: f64) -> u64 {
    ((rate * SPACE as f64).round() as u64).clamp(1, SPACE)
}

/// Returns the scaled number of frames for a cache of `size` frames on a sample at `rate`.
pub fn frames_at(size: u64, rate: f64) -> u64 {
    let frames = (size as f64 * limit_at(rate) as f64 / SPACE as f64).round().max(1.0);
    frames.min(2e9) as u64
}

impl SampledCell {
    /// Creates a cell for `size` frames, on a sample at `rate`.
    ///
    /// # Errors
    /// A parameter of the policy is invalid.
    pub fn new(
        entry: &Entry,
        spec: &Spec,
        size: u64,
        rate: f64,
        pages: u64,
        seed: u64,
    ) -> Result<SampledCell, PolicyError> {
        let limit = limit_at(rate);
        let mut options = SimOptions::new(frames_at(size, rate) as u32, Some(pages));
        options.seed = seed;
        let spec = entry.scaled(spec, limit as f64 / SPACE as f64)?;
        Ok(SampledCell {
            size,
            limit,
            simulation: entry.simulation(&spec, &options)?,
            sampled: Batch::default(),
            references: 0,
        })
    }

    /// Returns the cache size that the cell represents.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the share of the pages in the cell's sample.
    pub fn rate(&self) -> f64 {
        self.limit as f64 / SPACE as f64
    }

    /// Simulates the references that are in the sample; `places` are the places of the batch's
    /// pages.
    ///
    /// # Errors
    /// [`Stalled`].
    pub fn run(&mut self, batch: &Batch, places: &[u32]) -> Result<(), Stalled> {
        self.references += batch.len() as u64;
        if self.limit == SPACE {
            return self.simulation.run(batch, None);
        }
        self.sampled.clear();
        let references = batch.pages.iter().zip(&batch.marks).zip(places);
        for ((&page, &mark), &at) in references {
            if u64::from(at) < self.limit {
                let mark: Mark = mark;
                self.sampled.push(page, mark);
            }
        }
        self.simulation.run(&self.sampled, None)
    }

    /// Returns the estimated miss ratio, or 0 without references.
    pub fn miss_ratio(&self) -> f64 {
        let expected = self.references as f64 * self.rate();
        if expected == 0.0 {
            return 0.0;
        }
        (self.simulation.counts().misses() as f64 / expected).min(1.0)
    }
}
