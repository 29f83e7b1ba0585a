//! Reads the log from a position to its end.

use std::path::PathBuf;

use millpond_base::Lsn;

use super::error::LogError;
use super::record::Header;
use super::window::Window;

/// A record: its start, its header, its body.
pub type Found<'a> = (Lsn, Header, &'a [u8]);

/// Reads one record after the other, up to the log's tail at the time when the reader was created.
/// Reads ahead by 1 MiB.
pub struct Reader {
    window: Window,
    at: u64,
    path: PathBuf,
    /// The error that prevents reading.
    refused: Option<LogError>,
}

impl Reader {
    pub(super) fn new(
        window: Window,
        from: u64,
        path: PathBuf,
        refused: Option<LogError>,
    ) -> Reader {
        Reader { window, at: from, path, refused }
    }

    /// Returns the position at which the next record begins, or would.
    pub fn position(&self) -> Lsn {
        Lsn(self.at)
    }

    /// Returns the position at which this reader stops.
    pub fn end(&self) -> Lsn {
        Lsn(self.window.limit())
    }

    /// Returns the next record: its position, its header and its body. Returns `None` at the end.
    ///
    /// # Errors
    /// If there is no whole record, or it was forgotten, or cannot be read; or if the reader cannot
    /// read from its first position. The reader stays where it is.
    pub fn next_record(&mut self) -> Result<Option<Found<'_>>, LogError> {
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        if self.at >= self.window.limit() {
            return Ok(None);
        }
        let start = Lsn(self.at);
        match self.window.record(self.at)? {
            Some((header, body)) => {
                debug_assert!(header.end > start, "LSNs grow");
                self.at = header.end.0;
                Ok(Some((start, header, body)))
            }
            None => Err(LogError::NoRecord { path: self.path.clone(), at: start }),
        }
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("at", &self.at).field("end", &self.window.limit()).finish()
    }
}
