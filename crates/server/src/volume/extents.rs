//! The holes of a volume, and the content of its cache.

use millpond_tier::Residency;

use super::error::VolumeError;
use super::requests::Volume;
use crate::protocol::{Extent, allocation, residency};

/// Blocks looked up under one lock of the cache's tables.
const STEP: u64 = 4096;
/// Maximum number of blocks in one reply: a client asks again for those behind them.
const TOLD: u64 = 64 * STEP;

impl Volume {
    /// Returns the status of `length` bytes from `offset` on, as at most `most` extents of
    /// `base:allocation`. Holes of the backing file are zeros; everything else is data, including
    /// bytes of unknown status. There is at least one extent, and together they cover at most
    /// `length` bytes.
    ///
    /// # Errors
    /// The bytes are not within the volume.
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

    /// Returns the cached part of `length` bytes from `offset` on, as at most `most` extents of
    /// [`residency::NAME`]. There is at least one extent, and together they cover at most `length`
    /// bytes. Reads and writes continue in the meantime: each block had its status at some time
    /// during the call.
    ///
    /// # Errors
    /// The bytes are not within the volume.
    pub fn residency(
        &self,
        offset: u64,
        length: u32,
        most: usize,
    ) -> Result<Vec<Extent>, VolumeError> {
        self.check(offset, length.into())?;
        let Some(tier) = &self.tier else { return Ok(vec![Extent { length, status: 0 }]) };
        // A copy that is still to be written does not count yet.
        self.write_waiting(true);
        let step = STEP * u64::from(self.block);
        let end = (offset + u64::from(length)).min(offset + TOLD * u64::from(self.block));
        let mut extents: Vec<Extent> = Vec::new();
        let mut at = offset;
        while at < end {
            let next = (at - at % step + step).min(end);
            for (until, what) in tier.residency(at..next) {
                let length = (until - at) as u32;
                at = until;
                let status = match what {
                    Residency::Absent => 0,
                    Residency::Clean => residency::CACHED,
                    Residency::Dirty => residency::CACHED | residency::DIRTY,
                };
                let count = extents.len();
                match extents.last_mut() {
                    Some(last) if last.status == status => last.length += length,
                    Some(_) if count >= most => return Ok(extents),
                    _ => extents.push(Extent { length, status }),
                }
            }
        }
        Ok(extents)
    }
}
