//! An estimate of each page's recent references, in half a byte per counter.
//!
//! A count-min sketch has four counters per page. The least is the estimate, since other pages can
//! only add to a counter. After each sample of references, all counters are halved, so that the
//! past fades.

use millpond_base::PageId;

/// Counters in a word.
const PER_WORD: u64 = 16;
/// The lowest three bits of every counter.
const HALVED: u64 = 0x7777_7777_7777_7777;
/// Maximum of a counter.
const MOST: u64 = 15;
/// One multiplier per row.
const SEEDS: [u64; 4] =
    [0xc3a5_c85c_97cb_3127, 0xb492_b66f_be98_f273, 0x9ae1_6a3b_2f90_404f, 0xcbf2_9ce4_8422_2325];

/// A count-min sketch with 4-bit counters and periodic halving.
pub struct Sketch {
    words: Vec<u64>,
    counted: u64,
    sample: u64,
}

impl Sketch {
    /// Creates a sketch for a pool of `frames` frames, halved after every `sample` counted
    /// references.
    pub fn new(frames: u32, sample: u64) -> Sketch {
        let words = (frames as usize).next_power_of_two().max(8);
        Sketch { words: vec![0; words], counted: 0, sample: sample.max(1) }
    }

    /// Returns the word and shift of the page's counter in row `row`.
    #[inline(always)]
    fn place(&self, page: PageId, row: usize) -> (usize, u64) {
        let mixed = (page.0 ^ (page.0 >> 32)).wrapping_add(SEEDS[row]).wrapping_mul(SEEDS[row]);
        let mixed = mixed ^ (mixed >> 32);
        let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word = (mixed >> 20) as usize & (self.words.len() - 1);
        // Each row has its own quarter of the word: rows never share a counter.
        let nibble = row as u64 * 4 + (mixed >> 60) % 4;
        debug_assert!(nibble < PER_WORD);
        (word, nibble * 4)
    }

    /// Counts one reference to `page`.
    #[inline(always)]
    pub fn count(&mut self, page: PageId) {
        let mut added = false;
        for row in 0..SEEDS.len() {
            let (word, shift) = self.place(page, row);
            if (self.words[word] >> shift) & MOST < MOST {
                self.words[word] += 1 << shift;
                added = true;
            }
        }
        if added {
            self.counted += 1;
            if self.counted >= self.sample {
                self.halve();
            }
        }
    }

    #[cold]
    fn halve(&mut self) {
        for word in &mut self.words {
            *word = (*word >> 1) & HALVED;
        }
        self.counted /= 2;
    }

    /// Returns the approximate number of recent references to `page`, at most 15. It is rarely too
    /// large, and never too small, apart from the halving.
    #[inline(always)]
    pub fn estimate(&self, page: PageId) -> u32 {
        let counter = |row| {
            let (word, shift) = self.place(page, row);
            ((self.words[word] >> shift) & MOST) as u32
        };
        (0..SEEDS.len()).map(counter).min().unwrap_or(0)
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.words.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_never_too_low_and_seldom_too_high() {
        let mut sketch = Sketch::new(1_000, u64::MAX);
        for page in 0..1_000u64 {
            for _ in 0..page % 12 {
                sketch.count(PageId(page));
            }
        }
        let estimates = (0..1_000u64).map(|p| (sketch.estimate(PageId(p)), (p % 12) as u32));
        let (mut too_high, mut all) = (0, 0);
        for (estimate, count) in estimates {
            assert!(estimate >= count);
            too_high += u32::from(estimate > count);
            all += 1;
        }
        assert!(too_high * 20 < all, "{too_high} of {all} are too high");
    }

    #[test]
    fn counters_stop_at_fifteen_and_are_halved_after_a_sample() {
        let mut sketch = Sketch::new(16, 30);
        for _ in 0..20 {
            sketch.count(PageId(1));
        }
        assert_eq!(sketch.estimate(PageId(1)), 15);
        for page in 100..115 {
            sketch.count(PageId(page));
        }
        assert!((7..=9).contains(&sketch.estimate(PageId(1))));
    }
}
