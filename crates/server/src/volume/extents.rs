//! Where a volume has holes.

use super::error::VolumeError;
use super::requests::Volume;
use crate::protocol::{Extent, allocation};

impl Volume {
    /// What `length` bytes from `offset` on are, as extents of `base:allocation`, `most` at most:
    /// holes of the backing file are zeros. What is not known is data. There is at least one
    /// extent, and together they have no more than `length` bytes.
    ///
    /// # Errors
    /// They are not within the volume.
    pub fn allocation(
        &self,
        offset: u64,
        length: u32,
        most: usize,
    ) -> Result<Vec<Extent>, VolumeError> {
        self.check(offset, length.into())?;
        let data = Extent { length, status: 0 };
        let Some(backing) = &self.backing else { return Ok(vec![data]) };
        let end = offset + u64::from(length);
        let mut extents = Vec::new();
        let mut at = offset;
        while at < end && extents.len() < most.max(1) {
            let Some((is_hole, until)) = backing.extent_at(at) else { break };
            let until = until.clamp(at, end);
            if until == at {
                break;
            }
            let status = if is_hole { allocation::HOLE | allocation::ZERO } else { 0 };
            extents.push(Extent { length: (until - at) as u32, status });
            at = until;
        }
        Ok(if extents.is_empty() { vec![data] } else { extents })
    }
}
