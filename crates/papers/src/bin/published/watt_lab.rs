//! Traces, policies and measurements of WATT's evaluation.

use super::arena::{Arena, Failure};

/// Sizes, in percent of the trace's pages.
const PERCENTS: &[f64] = &[2.0, 5.0, 10.0, 20.0, 40.0];
const PERCENTS_QUICK: &[f64] = &[5.0, 20.0];

/// Our generator for each trace, and its name in the paper.
pub const TRACES: [(&str, &str); 4] = [
    ("tpce-like", "TPC-E (imitated)"),
    ("zipf-ro", "ZipfRO"),
    ("dynzipf-ro", "dynZipfRO"),
    ("dynzipf-rw", "dynZipfRW"),
];

/// Algorithms of fig. 1, as the paper configures them, and its WATT.
///
/// The paper does not state if its LRU2 remembers evicted pages. Its simulator lets ages begin
/// at 1, while its formula gives a page of the current epoch the value +∞. Both variants are
/// measured.
pub const POLICIES: [&str; 12] = [
    "random",
    "clock",
    "lean-evict(cooling=30%)",
    "lru-k",
    "lru-k(history=all)",
    "lru",
    "cflru(window=30%)",
    "lru-wsr",
    "hyperbolic(sample=20)",
    "arc",
    "watt(age_from=1)",
    "watt",
];

/// Misses of one policy on each of [`TRACES`], at each size.
#[derive(Clone, Default)]
pub struct Measured {
    /// Misses by trace, then size.
    pub misses: Vec<Vec<f64>>,
}

impl Measured {
    /// Returns the misses over those of `other` on one trace, the mean over the sizes.
    pub fn over(&self, other: &Measured, trace: usize) -> f64 {
        ratio(&self.misses[trace], &other.misses[trace])
    }

    /// Returns the misses over those of `other`, the mean over traces and sizes.
    pub fn over_all(&self, other: &Measured) -> f64 {
        let each = (0..self.misses.len()).map(|trace| self.over(other, trace));
        each.sum::<f64>() / self.misses.len() as f64
    }
}

fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    ours.iter().zip(theirs).map(|(a, b)| a / b).sum::<f64>() / ours.len() as f64
}

/// Generated traces, and the measurements on them, by policy.
pub struct Lab {
    arenas: Vec<Arena>,
    /// Sizes, in percent of the pages of a trace.
    pub percents: &'static [f64],
}

impl Lab {
    /// Generates the traces.
    pub fn new(is_quick: bool) -> Result<Lab, Failure> {
        let arenas = TRACES.iter().map(|(id, _)| Arena::generated(id, ""));
        let percents = if is_quick { PERCENTS_QUICK } else { PERCENTS };
        Ok(Lab { arenas: arenas.collect::<Result<_, _>>()?, percents })
    }

    /// Runs policies on all traces, at all sizes.
    pub fn measure(&self, policies: &[&str]) -> Result<Vec<Measured>, Failure> {
        let mut all = vec![Measured::default(); policies.len()];
        for arena in &self.arenas {
            let frames: Vec<u32> = self.percents.iter().map(|p| arena.frames(*p)).collect();
            let cells: Vec<(&str, u32)> =
                policies.iter().flat_map(|p| frames.iter().map(move |f| (*p, *f))).collect();
            let counts = arena.run_all(&cells)?;
            for (measured, counts) in all.iter_mut().zip(counts.chunks(frames.len())) {
                measured.misses.push(counts.iter().map(|c| c.misses() as f64).collect());
            }
        }
        Ok(all)
    }

    /// Bytes of state per frame after a run over the Zipf trace, a tenth of its pages in frames.
    pub fn bytes_per_frame(&self, policy: &str) -> Result<f64, Failure> {
        let arena = &self.arenas[1];
        let frames = arena.frames(10.0);
        Ok(arena.run(policy, frames)?.policy_bytes as f64 / f64::from(frames))
    }
}
