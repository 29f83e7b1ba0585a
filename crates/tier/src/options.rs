//! Options of a second tier.

use crate::back_layout::BackLayout;
use crate::directory::Layout;
use crate::dirty::EXTENT_BYTES;
use crate::error::TierError;
use crate::frames::{FRAME_BYTES, FRAMES_MIN, frames_of, spare_of};

/// Options of a second tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TierOptions {
    /// Maximum bytes of the cache's file.
    pub bytes: u64,
    /// Maximum bytes of a page.
    pub page_bytes: u32,
    /// Offsets and lengths of pages are multiples of this number of bytes.
    pub unit: u32,
    /// Seed of the policy's random choices.
    pub seed: u64,
    /// Set if writes stay in the cache.
    pub writes_back: bool,
}

impl TierOptions {
    pub(super) fn layout(&self) -> Layout {
        Layout::within(self.bytes, self.page_bytes, self.unit)
    }

    pub(super) fn back_layout(&self) -> BackLayout {
        BackLayout::within(self.bytes, self.page_bytes, self.unit)
    }

    fn slots(&self) -> u32 {
        if self.writes_back { self.back_layout().slots.slots } else { self.layout().slots }
    }

    /// Returns the number of pages that fit.
    ///
    /// # Errors
    /// [`TierError::TooSmall`].
    pub fn frames(&self) -> Result<u32, TierError> {
        let slots = self.slots();
        let frames = match self.writes_back {
            true => slots.saturating_sub(spare_of(slots)),
            false if slots < FRAMES_MIN => 0,
            false => frames_of(slots),
        };
        if frames == 0 || (self.writes_back && frames < FRAMES_MIN) {
            let slots = u64::from(FRAMES_MIN);
            let least = match self.writes_back {
                true => BackLayout::least_bytes(slots + u64::from(spare_of(0)), self.page_bytes),
                false => Layout::bytes_of(slots, self.page_bytes),
            };
            return Err(TierError::TooSmall { bytes: self.bytes, least });
        }
        Ok(frames)
    }

    /// Returns the most bytes of memory that a tier's tables take, without its policy.
    pub fn table_bytes(&self) -> u64 {
        let each = FRAME_BYTES + if self.writes_back { EXTENT_BYTES } else { 0 };
        u64::from(self.slots()) * each
    }
}
