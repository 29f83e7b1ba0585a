//! Where a trace is written: a temporary file that is renamed on success, or a stream.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use tempfile::NamedTempFile;

use crate::trace::TraceError;

/// Bytes collected before they go to the system.
const BUFFER: usize = 256 << 10;

/// A file or stream being written, compressed if its name says so.
pub(crate) struct Output {
    path: PathBuf,
    encoder: Encoder,
}

enum Encoder {
    Plain(BufWriter<Target>),
    Gzip(GzEncoder<BufWriter<Target>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<Target>>),
}

/// What the bytes go to in the end.
enum Target {
    Temporary(NamedTempFile),
    /// A device, a pipe or standard output: it cannot be renamed, and must not be replaced.
    Stream(Box<dyn Write + Send>),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::Temporary(file) => file.write(bytes),
            Target::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Temporary(file) => file.flush(),
            Target::Stream(stream) => stream.flush(),
        }
    }
}

impl Output {
    /// Begins to write `path`; `-` is standard output. `.gz` and `.zst` at its end compress.
    pub(crate) fn create(path: &Path) -> Result<Output, TraceError> {
        let io = |source| TraceError::Io { path: path.into(), source };
        let buffer = BufWriter::with_capacity(BUFFER, target(path).map_err(io)?);
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

    /// The name of the file in messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// An error of the system as one about this file.
    pub(crate) fn error(&self, source: io::Error) -> TraceError {
        TraceError::Io { path: self.path.clone(), source }
    }

    /// Appends bytes.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.write_all(bytes).map_err(|source| self.error(source))
    }

    /// Writes out what is left and gives the file its name.
    pub(crate) fn finish(self) -> Result<(), TraceError> {
        let Output { path, encoder } = self;
        let buffer = match encoder {
            Encoder::Plain(buffer) => Ok(buffer),
            Encoder::Gzip(gzip) => gzip.finish(),
            Encoder::Zstd(zstd) => zstd.finish(),
        };
        let done = buffer
            .and_then(|buffer| buffer.into_inner().map_err(io::IntoInnerError::into_error))
            .and_then(|target| match target {
                // A full disk may only be noticed when the data really goes there.
                Target::Temporary(file) => {
                    file.as_file().sync_all()?;
                    file.persist(&path).map(|_| ()).map_err(|e| e.error)
                }
                Target::Stream(mut stream) => stream.flush(),
            });
        done.map_err(|source| TraceError::Io { path, source })
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

fn target(path: &Path) -> io::Result<Target> {
    if path.as_os_str() == "-" {
        return Ok(Target::Stream(Box::new(io::stdout())));
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Ok(found) if !found.is_file() => {
            Ok(Target::Stream(Box::new(File::options().write(true).open(path)?)))
        }
        _ => Ok(Target::Temporary(temporary(path)?)),
    }
}

/// A temporary file in the folder of `path`, with the permissions that a new file has.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".millpond-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder(path))
}

/// The folder that `path` is in.
pub(crate) fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
        _ => PathBuf::from("."),
    }
}
