//! Requests of a disk.

/// Virtual time, in nanoseconds from the start.
pub type Nanos = u64;

/// Bytes of a sector.
pub const SECTOR: u64 = 512;

/// Maximum sectors of a request: 512 KiB, as in Linux.
const SECTORS_MAX: u64 = 1024;

/// One request of a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Request {
    /// First sector.
    pub sector: u64,
    /// Number of sectors, at least 1.
    pub sectors: u64,
    /// `true` for a write.
    pub is_write: bool,
    /// Id of the completed request, chosen by the submitter.
    pub id: u64,
}

/// Merges neighbouring pages into requests. `pages` ascend, and each has `page_sectors` sectors.
/// Returns the first sector and the number of sectors of each request, at most 512 KiB.
///
/// ```
/// use millpond_papers::storage::merged;
/// assert_eq!(merged(&[3, 4, 5, 9], 8), [(24, 24), (72, 8)]);
/// ```
pub fn merged(pages: &[u64], page_sectors: u64) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for page in pages {
        let sector = page * page_sectors;
        match all.last_mut() {
            Some((first, count))
                if *first + *count == sector && *count + page_sectors <= SECTORS_MAX =>
            {
                *count += page_sectors;
            }
            _ => all.push((sector, page_sectors)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_request_up_to_its_limit() {
        let pages: Vec<u64> = (10..10 + 40).collect();
        assert_eq!(merged(&pages, 32), [(320, 1024), (320 + 1024, 256)]);
        assert_eq!(merged(&[], 8), []);
        assert_eq!(merged(&[7, 9], 8), [(56, 8), (72, 8)]);
    }
}
