//! Examines a log that does not open because it is damaged, without changing it.
//!
//! The reliable part ends with the last whole record of an unbroken sequence, as it does when a log
//! is opened. The rest is searched for other whole records, to report the loss. A block that the
//! device cannot read is a hole like any other.

use std::sync::Arc;

use millpond_base::Lsn;
use millpond_device::{AlignedBuffer, Device};

use super::error::LogError;
use super::log::Log;
use super::options::BLOCK;
use super::options::LogOptions;
use super::record;
use super::record::Header;
use super::segments::Segments;
use super::shared::FIRST;
use super::slots;
use super::tail;
use super::window::AHEAD;
use super::window::Window;

/// Contents of a log before and behind a hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Survey {
    /// End of the last whole record, where the hole begins.
    pub end: Lsn,
    /// Offset of the hole in the log's file; `None` if no readable segment header covers it.
    pub offset: Option<u64>,
    /// Whole records behind the hole.
    pub behind: Option<Behind>,
    /// Position up to which the log had been durable, according to a record behind the hole, if
    /// that is behind `end`: no crash makes such a hole.
    pub durable: Option<Lsn>,
}

/// A whole record in a survey.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Header of the record.
    pub header: &'a Header,
    /// Body of the record.
    pub body: &'a [u8],
    /// True if the record is behind the hole.
    pub is_behind: bool,
}

/// Whole records behind a hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Behind {
    /// Position at which the first one begins.
    pub first: Lsn,
    /// Position at which the last one ends.
    pub until: Lsn,
    /// Number of records.
    pub records: u64,
}

impl Log {
    /// Examines the log on `device` from `start` on, where a record begins or began. Calls `visit`
    /// with each whole record: those that follow each other from `start`, and those behind the
    /// hole. Nothing is written.
    ///
    /// # Errors
    /// If the device holds no log, or a log of another store or version, or its headers cannot be
    /// read.
    pub fn survey(
        device: Arc<dyn Device>,
        uuid: [u8; 16],
        start: Lsn,
        visit: &mut dyn FnMut(Found<'_>),
    ) -> Result<Survey, LogError> {
        let start = start.0.max(FIRST);
        if !start.is_multiple_of(8) {
            return Err(LogError::NoRecord { path: device.path().to_path_buf(), at: Lsn(start) });
        }
        let segments = Arc::new(Segments::open(device, uuid)?);
        let limit = segments.end_of_run(start);
        let window = Window::new(segments.clone(), AHEAD, limit, record::salt(&uuid));
        let (mut window, mut end) = (window.lenient(), start);
        while let Some((header, body)) = window.record(end)? {
            visit(Found { header: &header, body, is_behind: false });
            end = header.end.0;
        }
        let mut behind: Option<Behind> = None;
        let found = tail::behind(&segments, &mut window, end, &mut |header, body| {
            debug_assert!(header.start.0 > end, "what lies behind begins behind the hole");
            visit(Found { header, body, is_behind: true });
            let (first, records) = behind.map_or((header.start, 0), |b| (b.first, b.records));
            behind = Some(Behind { first, until: header.end, records: records + 1 });
        })?;
        let offset = segments.offset(end).ok();
        let durable = found.durable.filter(|&durable| durable > end).map(Lsn);
        Ok(Survey { end: Lsn(end), offset, behind, durable })
    }

    /// Calls `visit` with the records of the log on `device` from the one at `start` on, as long as
    /// they follow each other. Nothing is written.
    ///
    /// # Errors
    /// See [`Log::survey`].
    pub(crate) fn walk(
        device: Arc<dyn Device>,
        uuid: [u8; 16],
        start: Lsn,
        visit: &mut dyn FnMut(&Header, &[u8]),
    ) -> Result<(), LogError> {
        let segments = Arc::new(Segments::open(device, uuid)?);
        let limit = segments.end_of_run(start.0);
        let mut window = Window::new(segments, AHEAD, limit, record::salt(&uuid)).lenient();
        let mut at = start.0;
        while let Some((header, body)) = window.record(at)? {
            visit(&header, body);
            at = header.end.0;
        }
        Ok(())
    }

    /// Returns whether the log on `device`, of any store, has records behind its first one of kind
    /// `kind`. A log that has forgotten its beginning has.
    ///
    /// # Errors
    /// If the device holds no log or a log of another version, or cannot be read.
    pub(crate) fn goes_on_behind(device: Arc<dyn Device>, kind: u8) -> Result<bool, LogError> {
        let mut block = AlignedBuffer::new(BLOCK as usize);
        if device.length() < BLOCK {
            return Err(LogError::NotALog { path: device.path().to_path_buf() });
        }
        device.read(0, &mut block).map_err(LogError::Read)?;
        let uuid = slots::store_id(&block);
        let segments = Arc::new(Segments::open(device, uuid)?);
        let limit = segments.end_of_run(FIRST);
        if limit == FIRST {
            return Ok(segments.next_held(FIRST).is_some());
        }
        let mut window = Window::new(segments, AHEAD, limit, record::salt(&uuid));
        let (mut at, mut is_behind) = (FIRST, false);
        while let Some((header, _)) = window.record(at)? {
            if is_behind {
                return Ok(true);
            }
            (at, is_behind) = (header.end.0, header.kind == kind);
        }
        Ok(false)
    }

    /// Returns whether `device`, which holds no log, has nothing but zeros and the header of one
    /// slot. An interrupted creation of a log leaves no more than that.
    ///
    /// # Errors
    /// If the device cannot be read.
    pub(crate) fn is_blank(device: &dyn Device) -> Result<bool, LogError> {
        let (length, align) = (device.length(), device.alignment().offset.max(1));
        let mut bytes = AlignedBuffer::new(BLOCK as usize);
        for offset in (0..length).step_by(BLOCK as usize).filter(|offset| *offset != BLOCK) {
            let count = (length - offset).min(BLOCK) / align * align;
            let part = &mut bytes[..count as usize];
            device.read(offset, part).map_err(LogError::Read)?;
            if part.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Opens the log on `device` for reading, as if it ended at `end`, the end of a record. Nothing
    /// must be appended: it would overwrite the records there.
    ///
    /// # Errors
    /// See [`Log::survey`].
    pub(crate) fn open_up_to(
        device: Arc<dyn Device>,
        uuid: [u8; 16],
        end: Lsn,
        options: &LogOptions,
    ) -> Result<Log, LogError> {
        options.check(device.path())?;
        let segments = Segments::open(device, uuid)?;
        segments.keep_run(end.0, FIRST);
        let options = LogOptions { flush_interval: std::time::Duration::ZERO, ..*options };
        Self::start(segments, &uuid, end.0, &options)
    }
}
