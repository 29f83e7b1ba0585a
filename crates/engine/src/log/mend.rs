//! A log whose first block is damaged.
//!
//! The block has two facts: the store's id, which the data file has, too, and the segment size.
//! Each slot's header names the store, so the distance between two of them is the size. A log of
//! one slot has the size of new logs, or another power of two. A size is right if the record from
//! which the log is read is whole with it: the checksums of records depend on the store's id.
//! Then the block is written again.

use std::sync::Arc;

use super::error::LogError;
use super::options::{BLOCK, LogOptions, is_segment_size};
use super::record;
use super::segments::Segments;
use super::slots::{self, SlotState};
use super::window::{AHEAD, Window};
use crate::io::{AlignedBuffer, Device};

/// Powers of two that a segment size may be.
const POWERS: std::ops::RangeInclusive<u32> = 14..=30;

impl Segments {
    /// As [`Segments::open`], and mends a damaged first block if a record of the store begins at
    /// `start`.
    ///
    /// # Errors
    /// As [`Segments::open`]; the block cannot be written.
    pub(super) fn open_or_mend(
        device: Arc<dyn Device>,
        uuid: [u8; 16],
        start: u64,
        options: &LogOptions,
    ) -> Result<Segments, LogError> {
        let error = match Segments::open(device.clone(), uuid) {
            Err(error @ LogError::NotALog { .. }) => error,
            opened => return opened,
        };
        let has_record = |size| -> Result<bool, LogError> {
            let segments = Arc::new(Segments::open_with(device.clone(), uuid, size)?);
            let limit = segments.end_of_run(start);
            let mut window = Window::new(segments, AHEAD, limit, record::salt(&uuid));
            Ok(window.record(start)?.is_some())
        };
        let usual = std::iter::once(options.segment_bytes).chain(POWERS.map(|power| 1 << power));
        let sizes = distances(&*device, &uuid).chain(usual);
        let mut sizes = sizes.filter(|size| is_segment_size(*size));
        let Some(size) = sizes.find(|size| has_record(*size).unwrap_or(false)) else {
            return Err(error);
        };
        drop(sizes);
        tracing::warn!(
            "the first block of the log {} was damaged, and is written again",
            device.path().display()
        );
        let written = device.write(0, &slots::log_header(&uuid, size));
        written.and_then(|()| device.sync()).map_err(LogError::Prepare)?;
        Segments::open(device, uuid)
    }
}

/// The distances from the first slot to each other block that is a slot's header.
fn distances(device: &dyn Device, uuid: &[u8; 16]) -> impl Iterator<Item = u64> {
    let first = slots::slot_offset(0, BLOCK);
    let mut block = AlignedBuffer::new(BLOCK as usize);
    let blocks = (first + 2 * BLOCK..device.length()).step_by(BLOCK as usize);
    blocks.filter_map(move |offset| {
        device.read(offset, &mut block).ok()?;
        let is_header = matches!(slots::read_slot_header(&block, uuid), SlotState::Holds(_));
        is_header.then(|| offset - first - BLOCK)
    })
}
