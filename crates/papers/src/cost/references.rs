//! The sequence of references that all policies receive.

use std::sync::Arc;

use millpond_base::{Mark, PageId, Seed};
use millpond_workload::generate::Random;
use millpond_workload::keys::{Zipf, permute_keyed};

/// Pages for each frame: the referenced pages are four times the pool.
const PAGES_PER_FRAME: u32 = 4;
/// References for each frame, so that most pages return before the sequence restarts.
const PER_FRAME: usize = 16;
const LEAST: usize = 1 << 16;
/// The exponent of the Zipf distribution.
const THETA: f64 = 1.0;
/// One reference in this many is a write.
const WRITE_EVERY: u64 = 4;
/// Flag of a reference that writes.
const WRITES: u32 = 1 << 31;

/// Zipf references to four pages for each frame, a quarter of them writes: the same for every
/// policy, drawn beforehand, and shared.
#[derive(Clone, Debug)]
pub struct References {
    pages: u32,
    all: Arc<[u32]>,
}

impl References {
    /// Frames of the largest pool that there is a sequence for.
    pub const FRAMES_MAX: u32 = 1 << 26;

    /// The sequence for a pool of `frames` frames, at least 1 and at most
    /// [`References::FRAMES_MAX`].
    pub fn new(frames: u32, seed: u64) -> References {
        let pages = frames.clamp(1, References::FRAMES_MAX) * PAGES_PER_FRAME;
        let zipf = Zipf::new(u64::from(pages), THETA);
        let mut random = Random::new(Seed(seed));
        let mut draw = || {
            let page = permute_keyed(seed, zipf.draw(&mut random), u64::from(pages)) as u32;
            let writes = random.below(WRITE_EVERY) == 0;
            page | if writes { WRITES } else { 0 }
        };
        let all = (0..(frames as usize * PER_FRAME).max(LEAST)).map(|_| draw()).collect();
        References { pages, all }
    }

    /// Pages that are referenced, from 0 on.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The reference at a position; the sequence restarts at its end.
    #[inline(always)]
    pub fn at(&self, position: usize) -> (PageId, Mark) {
        let reference = self.all[position % self.all.len()];
        let mark = if reference & WRITES != 0 { Mark::WRITE } else { Mark::READ };
        (PageId(u64::from(reference & !WRITES)), mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_repeats_by_its_seed_and_stays_within_its_pages() {
        let (one, same, other) = (References::new(100, 1), References::new(100, 1), 2);
        let other = References::new(100, other);
        assert_eq!(one.pages(), 400);
        let of = |all: &References| (0..LEAST + 5).map(|at| all.at(at)).collect::<Vec<_>>();
        assert_eq!(of(&one), of(&same));
        assert_ne!(of(&one), of(&other));
        assert!(of(&one).iter().all(|(page, _)| page.0 < 400));
        assert_eq!(one.at(3), one.at(LEAST + 3), "it restarts");
        let writes = of(&one).iter().filter(|(_, mark)| mark.is_write()).count();
        assert!((LEAST / 5..LEAST / 3).contains(&writes), "{writes}");
    }
}
