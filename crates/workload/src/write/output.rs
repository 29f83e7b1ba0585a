//! The target of a written trace: a temporary file that is renamed on success, or a stream.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;

use super::whole::WholeFile;
use crate::trace::TraceError;

/// Bytes collected before they go to the system.
const BUFFER: usize = 256 << 10;

/// A file or stream under construction, compressed if its name ends in `.gz` or `.zst`.
pub(crate) struct Output {
    path: PathBuf,
    encoder: Encoder,
}

enum Encoder {
    Plain(BufWriter<WholeFile>),
    Gzip(GzEncoder<BufWriter<WholeFile>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<WholeFile>>),
}

impl Output {
    /// Starts writing `path`; `-` is standard output. The endings `.gz` and `.zst` select
    /// compression.
    pub(crate) fn create(path: &Path) -> Result<Output, TraceError> {
        let io = |error| TraceError::Io { path: path.into(), error };
        let target = match path.as_os_str() == "-" {
            true => WholeFile::stdout(),
            false => WholeFile::create(path).map_err(io)?,
        };
        let buffer = BufWriter::with_capacity(BUFFER, target);
        let encoder = match path.extension().and_then(|e| e.to_str()) {
            Some("gz") => Encoder::Gzip(GzEncoder::new(buffer, flate2::Compression::new(6))),
            Some("zst") => {
                let zstd = zstd::stream::write::Encoder::new(buffer, 3).map_err(io)?;
                Encoder::Zstd(zstd)
            }
            _ => Encoder::Plain(buffer),
        };
        Ok(Output { path: path.into(), encoder })
    }

    /// Returns the name of the file in messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Converts an error of the system to an error about this file.
    pub(crate) fn error(&self, source: io::Error) -> TraceError {
        TraceError::Io { path: self.path.clone(), error: source }
    }

    /// Appends bytes.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.write_all(bytes).map_err(|source| self.error(source))
    }

    /// Writes the remaining bytes and gives the file its name.
    pub(crate) fn finish(self) -> Result<(), TraceError> {
        let Output { path, encoder } = self;
        let buffer = match encoder {
            Encoder::Plain(buffer) => Ok(buffer),
            Encoder::Gzip(gzip) => gzip.finish(),
            Encoder::Zstd(zstd) => zstd.finish(),
        };
        let done = buffer
            .and_then(|buffer| buffer.into_inner().map_err(io::IntoInnerError::into_error))
            .and_then(WholeFile::finish);
        done.map_err(|error| TraceError::Io { path, error })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            Encoder::Plain(buffer) => buffer.write(bytes),
            Encoder::Gzip(gzip) => gzip.write(bytes),
            Encoder::Zstd(zstd) => zstd.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Plain(buffer) => buffer.flush(),
            Encoder::Gzip(gzip) => gzip.flush(),
            Encoder::Zstd(zstd) => zstd.flush(),
        }
    }
}
