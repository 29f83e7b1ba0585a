//! The schedule of page cleaners, shared by the simulated first tier and the live pool (li 2.1.1,
//! 3.4.1).
//!
//! Page cleaners select victims by the pool's own policy, write the dirty ones, and put all of them
//! into the *free list*: clean pages that are still in memory, whose frames are reused when one is
//! needed. Cleaners work when the free list is short, and when too much of the pool is dirty.

use crate::size::Share;

/// Pages of an extent: neighbours that are written together, and pages that are read ahead
/// together, are in one, as in InnoDB.
pub const EXTENT: u64 = 64;

/// The rule of page cleaning.
///
/// ```
/// use millpond_base::cleaning::Cleaning;
/// let db2 = Cleaning::default();
/// assert_eq!((db2.excess(1000, 499), db2.excess(1000, 520)), (0, 20));
/// assert_eq!((db2.lacking(1000, 10), db2.lacking(1000, 3)), (0, 7));
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cleaning {
    /// Share of the pool that may be dirty before the cleaners write victims (li table 3.1,
    /// `chngpgs_thresh`).
    pub dirty: Share,
    /// Share of the pool that the cleaners keep in the free list, at least 1 frame of 2 or more.
    pub free: Share,
    /// If true, the dirty pages next to a page that is written are written with it, as MySQL does
    /// (li 5.6.1.3).
    pub neighbours: bool,
}

impl Default for Cleaning {
    /// Returns DB2's settings: half of the pool may be dirty, 1 % is kept free, neighbours stay.
    fn default() -> Cleaning {
        Cleaning { dirty: Share(0.5), free: Share(0.01), neighbours: false }
    }
}

impl Cleaning {
    /// Returns how many pages too many are dirty, of `dirty` in a pool of `frames` frames.
    pub fn excess(self, frames: u32, dirty: u32) -> u32 {
        dirty.saturating_sub(self.dirty.of(frames))
    }

    /// Returns the length of the free list that the cleaners keep.
    pub fn target(self, frames: u32) -> u32 {
        self.free.of(frames).max(1).min(frames / 2)
    }

    /// Returns how many frames are lacking from the free list where `free` are free.
    pub fn lacking(self, frames: u32, free: u32) -> u32 {
        self.target(frames).saturating_sub(free)
    }
}

/// Calls `visit` for the neighbours of `page` within its extent, downwards and then upwards. Each
/// direction ends when `visit` returns `false`: a page that is not dirty ends the row.
pub fn each_neighbour(page: u64, mut visit: impl FnMut(u64) -> bool) {
    let first = page - page % EXTENT;
    for neighbour in (first..page).rev() {
        if !visit(neighbour) {
            break;
        }
    }
    for neighbour in page.saturating_add(1)..first.saturating_add(EXTENT) {
        if !visit(neighbour) {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_rows_around_a_page_within_its_extent() {
        let around = |page: u64, dirty: &[u64]| {
            let mut seen = Vec::new();
            each_neighbour(page, |neighbour| {
                let is_dirty = dirty.contains(&neighbour);
                if is_dirty {
                    seen.push(neighbour);
                }
                is_dirty
            });
            seen
        };
        assert_eq!(around(70, &[65, 68, 69, 71, 72, 74]), [69, 68, 71, 72]);
        assert_eq!(around(64, &[63, 65]), [65], "63 is in another extent");
        assert_eq!(around(127, &[126, 128]), [126]);
        assert_eq!(around(u64::MAX, &[u64::MAX - 1]), [u64::MAX - 1]);
    }

    #[test]
    fn a_pool_of_two_frames_keeps_one_free_and_one_frame_none() {
        let rule = Cleaning::default();
        assert_eq!((rule.target(1), rule.target(2), rule.target(300)), (0, 1, 3));
        let none = Cleaning { dirty: Share(0.0), ..rule };
        assert_eq!(none.excess(10, 1), 1);
    }
}
