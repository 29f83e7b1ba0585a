//! The rule of sequential read-ahead, shared by the simulated first tier and the live pool; it is
//! that of MySQL's engine (li 5.6.1.3).
//!
//! Pages of an extent are often read in the order of their ids. A miss of a page whose two
//! predecessors are in memory is therefore taken for the next step of such a reader. The pages that
//! follow it in its extent are read at once, whether they are needed or not.

use std::ops::Range;

use crate::cleaning::EXTENT;

/// Pages that one read-ahead fetches at most.
const AHEAD_MAX: u64 = 8;

/// Part of a pool's frames that one read-ahead fetches at most.
const POOL_PART: u64 = 8;

/// Returns the pages to read ahead after a miss of `page` in a pool of `frames` frames. They are
/// the pages that follow it in its extent, up to eight and to an eighth of the frames; none unless
/// the two pages before it are in memory. `is_here` returns `true` for a page that is in memory.
///
/// ```
/// use millpond_base::read_ahead::after;
/// let here = |pages: &'static [u64]| move |page| pages.contains(&page);
/// assert_eq!(after(10, 1000, here(&[8, 9])), 11..19);
/// assert!(after(10, 1000, here(&[9])).is_empty(), "no sequence");
/// assert_eq!(after(60, 1000, here(&[58, 59])), 61..64, "to the end of the extent");
/// assert_eq!(after(10, 16, here(&[8, 9])), 11..13, "an eighth of the pool");
/// ```
pub fn after(page: u64, frames: u32, is_here: impl Fn(u64) -> bool) -> Range<u64> {
    let first = page.saturating_add(1);
    let here = |before: u64| page.checked_sub(before).is_some_and(&is_here);
    if !(here(1) && here(2)) {
        return first..first;
    }
    let most = AHEAD_MAX.min(u64::from(frames) / POOL_PART);
    let extent_end = (page - page % EXTENT).saturating_add(EXTENT);
    first..first.saturating_add(most).min(extent_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pages_and_the_last_ones_are_no_special_case() {
        assert!(after(0, 100, |_| true).is_empty());
        assert!(after(1, 100, |_| true).is_empty());
        assert_eq!(after(2, 100, |_| true), 3..11);
        assert!(after(63, 100, |_| true).is_empty(), "it is the last of its extent");
        assert!(after(u64::MAX, 100, |_| true).is_empty());
        assert!(after(2, 7, |_| true).is_empty(), "a pool of seven frames has none to spare");
    }
}
