//! Creates and opens logs.
//!
//! **A damaged first block** is written again. It holds two facts: the store's id, which the data
//! file has, too, and the segment size. Each slot's header names the store, so the distance between
//! two of them is the size. A log of one slot has the size of new logs, or another power of two. A
//! size is right if the record from which the log is read is whole with it, since the checksums of
//! records depend on the store's id.

use std::sync::Arc;

use millpond_base::Lsn;
use millpond_base::sync::Mutex;
use millpond_base::sync::atomic::{AtomicBool, AtomicU64};
use millpond_device::{AlignedBuffer, Device};

use super::error::LogError;
use super::group_commit::Flush;
use super::listeners::Listeners;
use super::log::Log;
use super::options::BLOCK;
use super::options::LogOptions;
use super::options::is_segment_size;
use super::record;
use super::record::HEADER_MAX;
use super::ring::Ring;
use super::segments::{LSN_MOST, Segments};
use super::shared::Alarm;
use super::shared::FIRST;
use super::shared::Shared;
use super::slots;
use super::slots::SlotState;
use super::tail;
use super::tail::Begin;
use super::tail::Tail;
use super::window::AHEAD;
use super::window::Window;
use super::writer;
use crate::stats::Statistics;

impl Log {
    /// Creates an empty log on `device`, durably. Its first record will begin at `Lsn(4096)` or, if
    /// `floor` is not 0, in the first segment behind `floor`: pages of the store may have LSNs up
    /// to it from an earlier log.
    ///
    /// # Errors
    /// If a size is not possible, or the device holds a log of the store `uuid` already, has no
    /// room, or fails.
    pub fn create(
        device: Arc<dyn Device>,
        uuid: [u8; 16],
        floor: Lsn,
        options: &LogOptions,
    ) -> Result<Log, LogError> {
        options.check(device.path())?;
        let size = options.segment_bytes;
        let first = FIRST + floor.0.min(LSN_MOST - size).next_multiple_of(size);
        let segments = Segments::create(device, uuid, size, first)?;
        Self::start(segments, &uuid, first, options)
    }

    /// Opens the log on `device` and finds its end: walks from `start` to the last whole record. At
    /// `start`, a record begins that is known to be durable, or the log ends. Bytes behind the last
    /// record were never acknowledged as durable; they are cut off, and will not come back. The log
    /// is durable up to its end when this returns.
    ///
    /// `options.segment_bytes` is ignored: the log keeps its own.
    ///
    /// # Errors
    /// If the device fails, or holds no log, a log of another store or version, or one that does
    /// not reach `start`; or if the log is damaged. If it lost records that had been durable,
    /// [`LogError::Damaged`] names the position. Nothing is changed in any of these cases.
    pub fn open(
        device: Arc<dyn Device>,
        uuid: [u8; 16],
        start: Lsn,
        options: &LogOptions,
    ) -> Result<(Log, Tail), LogError> {
        Self::open_from(device, uuid, start, Begin::RecordOrEnd, options)
    }

    /// Opens the log on `device` from `start`, where a record is known to begin: if that record is
    /// not whole, the log is damaged.
    ///
    /// # Errors
    /// The errors of [`Log::open`]; [`LogError::NoRecord`] if there is no record at `start`.
    pub fn open_from_record(
        device: Arc<dyn Device>,
        uuid: [u8; 16],
        start: Lsn,
        options: &LogOptions,
    ) -> Result<(Log, Tail), LogError> {
        Self::open_from(device, uuid, start, Begin::Record, options)
    }

    fn open_from(
        device: Arc<dyn Device>,
        uuid: [u8; 16],
        start: Lsn,
        begin: Begin,
        options: &LogOptions,
    ) -> Result<(Log, Tail), LogError> {
        options.check(device.path())?;
        let start = start.0.max(FIRST);
        if !start.is_multiple_of(8) {
            return Err(LogError::NoRecord { path: device.path().to_path_buf(), at: Lsn(start) });
        }
        let segments = Arc::new(Segments::open_or_mend(device.clone(), uuid, start, options)?);
        let salt = record::salt(&uuid);
        let tail = tail::find(&segments, start, begin, salt, options.buffer_bytes)?;
        segments.forget_doubles()?;
        // The bytes read may have been only in a cache of the operating system: rule 12.
        device.sync().map_err(LogError::Prepare)?;
        segments.keep_run(tail.end.0, FIRST);
        let segments = Arc::into_inner(segments);
        // Cannot fail: the only other owner was the search for the tail.
        let segments = segments.expect("the tail is found");
        Ok((Self::start(segments, &uuid, tail.end.0, options)?, tail))
    }

    pub(super) fn start(
        segments: Segments,
        uuid: &[u8; 16],
        end: u64,
        options: &LogOptions,
    ) -> Result<Log, LogError> {
        debug_assert!(end >= FIRST, "no log ends before its first record");
        debug_assert!(end.is_multiple_of(8), "records end at multiples of 8, not at {end}");
        debug_assert!(options.buffer_bytes / 4 > HEADER_MAX, "a record fits into the buffer");
        let mut block = AlignedBuffer::new(BLOCK as usize);
        if !end.is_multiple_of(BLOCK) {
            segments.read(end - end % BLOCK, &mut block)?;
        }
        let salt = record::salt(uuid);
        let (ring, consumer) = Ring::new(options.buffer_bytes, end, &block, salt);
        let shared = Arc::new(Shared {
            ring,
            path: segments.device().path().to_path_buf(),
            segments: Arc::new(segments),
            flush: Flush::new(consumer),
            alarm: Alarm::new(),
            listeners: Listeners::new(options.flush_interval.is_zero()),
            statistics: Statistics::default(),
            salt,
            record_max: options.buffer_bytes / 4 - HEADER_MAX,
            room_until: AtomicU64::new(0),
            growing_ahead: Mutex::new(()),
            reserved: AtomicU64::new(0),
            is_refusing: AtomicBool::new(false),
            opened_at: end,
        });
        let writer = match options.flush_interval {
            interval if interval.is_zero() => None,
            interval => Some(writer::start(&shared, interval)?),
        };
        Ok(Log { shared, writer: Mutex::new(writer) })
    }
}

/// Exponents of the powers of two that a segment size may be.
const POWERS: std::ops::RangeInclusive<u32> = 14..=30;

impl Segments {
    /// Opens the segments on `device`. Mends a damaged first block if a record of the store begins
    /// at `start`.
    ///
    /// # Errors
    /// If the device holds no log of the store, or fails, or the block cannot be written.
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

/// Returns the distances from the first slot to each other block that is a slot's header.
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
