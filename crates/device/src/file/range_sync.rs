//! Range sync: making parts of a file durable while the rest stays in the page cache (li 4.3, the
//! operation `dsync`).
//!
//! `fdatasync` writes all dirty data of a file. Linux can write back a range of it and wait for
//! that (`sync_file_range`). That call neither flushes the disk's own cache nor commits the journal
//! of the file system, which has the positions of the blocks. A ranged `fsync`, which io_uring has,
//! does both for its range. So several ranges are written back, all at once, and a ranged
//! `fdatasync` is requested for one of them. Its flush is the device's and its journal commit the
//! inode's, and so both cover all ranges. This requires a file system that ends writeback only
//! after it has converted extents that were reserved and not written: ext4 and XFS. On others the
//! whole file is synced. So it is where bytes bypass the page cache, since nothing else of it is
//! dirty then.

use std::fs::File;
use std::ops::Range;

use super::ring::RingPool;
use crate::error::Errno;

/// The unit of the page cache, in which ranges are synced.
const UNIT: u64 = 4096;

/// The longest range that the kernel's interface takes, in whole units.
const LENGTH_MOST: u64 = u32::MAX as u64 / UNIT * UNIT;

/// With more ranges than this, syncing the whole file costs no more.
const RANGES_MOST: usize = 4096;

/// Returns the parts to sync for `ranges`: whole units, in order, without gaps between neighbours
/// and none of them too long. `None` if there are too many.
fn parts(ranges: &[Range<u64>]) -> Option<Vec<(u64, u32)>> {
    let mut units: Vec<Range<u64>> = ranges
        .iter()
        .filter(|range| !range.is_empty())
        .map(|range| range.start / UNIT..range.end.div_ceil(UNIT))
        .collect();
    units.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(units.len());
    for next in units {
        match merged.last_mut() {
            Some(last) if next.start <= last.end => last.end = last.end.max(next.end),
            _ => merged.push(next),
        }
    }
    let mut parts = Vec::with_capacity(merged.len());
    for range in merged {
        let (mut at, end) = (range.start.checked_mul(UNIT)?, range.end.checked_mul(UNIT)?);
        while at < end {
            if parts.len() == RANGES_MOST {
                return None;
            }
            let length = (end - at).min(LENGTH_MOST);
            parts.push((at, length as u32));
            at += length;
        }
    }
    Some(parts)
}

/// Makes `ranges` of `file` durable, and other parts only by chance. `None` if this is impossible,
/// and nothing was synced.
pub(super) fn sync_ranges(
    rings: &RingPool,
    file: &File,
    ranges: &[Range<u64>],
) -> Option<Result<(), Errno>> {
    let parts = parts(ranges)?;
    let Some(&(offset, length)) = parts.first() else { return Some(Ok(())) };
    if parts.len() > 1 {
        let written = rings.write_back(file, &parts)?;
        if let Err(errno) = written {
            return Some(Err(errno));
        }
    }
    rings.sync_range(file, offset, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_whole_units_that_neither_touch_nor_are_too_long() {
        let parts = |ranges: &[Range<u64>]| parts(ranges).unwrap();
        assert_eq!(parts(&[]), []);
        assert_eq!(parts(&[5..5, 100..100]), []);
        assert_eq!(parts(&[8192..8193, 0..1, 4096..4100]), [(0, 12288)]);
        assert_eq!(parts(&[20_000..30_000, 0..10]), [(0, 4096), (16_384, 16_384)]);
        assert_eq!(parts(&[0..9000, 100..200]), [(0, 12_288)], "one inside another");
        let long = parts(std::slice::from_ref(&(0..10 << 30)));
        assert_eq!(long.len(), 3);
        assert_eq!(long.iter().map(|(_, length)| u64::from(*length)).sum::<u64>(), 10 << 30);
        assert!(long.windows(2).all(|pair| pair[0].0 + u64::from(pair[0].1) == pair[1].0));
    }

    #[test]
    fn too_many_ranges_are_the_whole_file() {
        let scattered = |count: u64| (0..count).map(|at| at * 2 * UNIT..at * 2 * UNIT + 1);
        assert!(parts(&scattered(RANGES_MOST as u64).collect::<Vec<_>>()).is_some());
        assert!(parts(&scattered(RANGES_MOST as u64 + 1).collect::<Vec<_>>()).is_none());
        assert!(parts(std::slice::from_ref(&(0..u64::MAX))).is_none());
    }
}
