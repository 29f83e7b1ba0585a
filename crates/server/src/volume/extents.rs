//! The holes of a volume, and the content of its cache.

use millpond_tier::Residency;

use super::error::VolumeError;
use super::requests::Volume;
use crate::protocol::{Extent, allocation, residency};

/// Blocks that are looked up while nobody else uses the cache's tables.
const STEP: u64 = 4096;
/// Blocks that are in one reply, at most: a client asks again for what is behind them.
const TOLD: u64 = 64 * STEP;

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

    /// What the cache holds of `length` bytes from `offset` on, as extents of
    /// [`residency::NAME`], `most` at most. There is at least one extent, and together they have no
    /// more than `length` bytes. Nobody is kept from reading and writing meanwhile: the
    /// status of a block was so at some time during the call.
    ///
    /// # Errors
    /// They are not within the volume.
    pub fn residency(
        &self,
        offset: u64,
        length: u32,
        most: usize,
    ) -> Result<Vec<Extent>, VolumeError> {
        self.check(offset, length.into())?;
        let Some(tier) = &self.tier else { return Ok(vec![Extent { length, status: 0 }]) };
        // A copy that waits is none yet.
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
