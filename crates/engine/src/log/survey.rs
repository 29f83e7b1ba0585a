//! Looking at a log that does not open because it is damaged, without changing it.
//!
//! What can be relied on ends with the last whole record of an unbroken row of them, as it does
//! when a log is opened. What lies behind is looked through for what else is whole, to tell what is
//! lost. A block that the device cannot read is a hole like any other.

use std::sync::Arc;

use millpond_base::Lsn;

use super::error::LogError;
use super::log::Log;
use super::options::LogOptions;
use super::record::{self, Header};
use super::segments::Segments;
use super::shared::FIRST;
use super::tail;
use super::window::{AHEAD, Window};
use crate::io::Device;

/// What a log has before and behind a hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Survey {
    /// End of the last whole record: here the hole begins.
    pub end: Lsn,
    /// Where that is in the log's file; `None` if no readable header of a segment says so.
    pub offset: Option<u64>,
    /// Whole records behind the hole.
    pub behind: Option<Behind>,
    /// A record behind the hole says that the log had been durable up to here, which is behind
    /// `end`: no crash makes that hole.
    pub durable: Option<Lsn>,
}

/// Whole records behind a hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Behind {
    /// Where the first one begins.
    pub first: Lsn,
    /// Where the last one ends.
    pub until: Lsn,
    /// How many there are.
    pub records: u64,
}

impl Log {
    /// Looks at the log on `device` from `start` on, where a record begins or begun: how far its
    /// records follow each other, and what lies behind. Each whole record behind is shown to
    /// `visit`. Nothing is written.
    ///
    /// # Errors
    /// If the device holds no log, that of another store or version, or its headers cannot be read.
    pub fn survey(
        device: Arc<dyn Device>,
        uuid: [u8; 16],
        start: Lsn,
        visit: &mut dyn FnMut(&Header),
    ) -> Result<Survey, LogError> {
        let start = start.0.max(FIRST);
        if !start.is_multiple_of(8) {
            return Err(LogError::NoRecord { path: device.path().to_path_buf(), at: Lsn(start) });
        }
        let segments = Arc::new(Segments::open(device, uuid)?);
        let limit = segments.end_of_run(start);
        let window = Window::new(segments.clone(), AHEAD, limit, record::salt(&uuid));
        let (mut window, mut end) = (window.lenient(), start);
        while let Some((header, _)) = window.record(end)? {
            end = header.end.0;
        }
        let mut behind: Option<Behind> = None;
        let found = tail::behind(&segments, &mut window, end, &mut |header| {
            visit(header);
            let (first, records) = behind.map_or((header.start, 0), |b| (b.first, b.records));
            behind = Some(Behind { first, until: header.end, records: records + 1 });
        })?;
        let offset = segments.offset(end).ok();
        let durable = found.durable.filter(|&durable| durable > end).map(Lsn);
        Ok(Survey { end: Lsn(end), offset, behind, durable })
    }

    /// The log on `device` as if it ended at `end`, the end of a record, for reading. Nothing must
    /// be appended: it would be written over what lies there.
    ///
    /// # Errors
    /// As [`Log::survey`].
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
