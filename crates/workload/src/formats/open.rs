//! Opening a trace: detection, the reader, and the checks that hold for every format.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

use crate::trace::{Batch, Source, TraceError};

use super::csv::Csv;
use super::detect::{SAMPLE, detect};
use super::extents::Extents;
use super::input::{Input, foreign_packing};
use super::lines::Lines;
use super::lirs::Lirs;
use super::lis::Lis;
use super::msr::Msr;
use super::native::Native;
use super::options::{Format, ReadOptions};
use super::oracle_general::OracleGeneral;
use super::parameters::{COLUMNS, EXPAND_SIZES, MAP_IDS, OPS};
use super::spc::Spc;
use super::text::Text;
use millpond_base::Parameter;

/// Opens the trace at `path` (`-` is standard input), detecting format and compression.
///
/// # Errors
/// [`TraceError::Io`] if the file cannot be opened, [`TraceError::UnknownFormat`] if no format
/// fits, [`TraceError::Empty`] if there is nothing in it, [`TraceError::Options`] for a page size
/// of 0 or columns for a format that has none.
pub fn open(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Box<dyn Source>, TraceError> {
    let path = path.as_ref();
    check(options)?;
    let file = open_once(path)?;
    let may_be_parquet = options.format.unwrap_or(Format::Parquet) == Format::Parquet;
    let input = match file {
        Some(file) if may_be_parquet && is_parquet(path, &file)? => {
            return Ok(Box::new(Checked::new(path.into(), Native::open(path, file, options)?)));
        }
        _ if options.format == Some(Format::Parquet) => {
            let reason = "it is no Parquet file (they begin with PAR1, and cannot be piped)";
            return Err(TraceError::UnknownFormat { path: path.into(), reason: reason.into() });
        }
        Some(file) => Input::new(path.into(), Box::new(file))?,
        None => Input::new("(standard input)".into(), Box::new(io::stdin()))?,
    };
    from_input(input, options)
}

/// Returns `true` if the trace at `path` can be read only once: standard input (`-`), a pipe, a
/// socket or a terminal. Opening such a trace again would wait for ever, or lose what was read.
pub fn is_read_once(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    let is_stream = |found: std::fs::Metadata| {
        let kind = found.file_type();
        kind.is_fifo() || kind.is_socket() || kind.is_char_device()
    };
    path.as_os_str() == "-" || std::fs::metadata(path).is_ok_and(is_stream)
}

/// Opens a storage-level trace of Millpond's own format; the log position of each reference is its
/// recLSN, 0 where it has none, and not the log's end at that time. Traces without recLSNs have no
/// log positions at all.
///
/// # Errors
/// As [`open`]; [`TraceError::UnknownFormat`] for another format.
pub fn open_rec_lsns(path: impl AsRef<Path>) -> Result<Box<dyn Source>, TraceError> {
    let path = path.as_ref();
    if let Some(file) = open_once(path)?
        && is_parquet(path, &file)?
    {
        return Ok(Box::new(Checked::new(path.into(), Native::rec_lsns(path, file)?)));
    }
    let reason = "only Parquet files have recLSNs (they begin with PAR1)".into();
    Err(TraceError::UnknownFormat { path: path.into(), reason })
}

/// Opens a trace that `reader` delivers; `name` is the file's name in messages and detection.
///
/// Every format but Parquet can be read so, compressed or not.
///
/// # Errors
/// As [`open`].
pub fn open_reader(
    name: impl Into<PathBuf>,
    reader: Box<dyn Read + Send>,
    options: &ReadOptions,
) -> Result<Box<dyn Source>, TraceError> {
    check(options)?;
    from_input(Input::new(name.into(), reader)?, options)
}

fn check(options: &ReadOptions) -> Result<(), TraceError> {
    if options.page_size == 0 {
        return Err(TraceError::Options("a page size of 0 bytes holds nothing".into()));
    }
    match (options.format, &options.columns) {
        (Some(format), Some(_)) if !matches!(format, Format::Csv | Format::Parquet) => {
            Err(TraceError::Options(format!(
                "{COLUMNS} goes with the formats csv and parquet, not with {}",
                format.id()
            )))
        }
        _ => Ok(()),
    }
}

/// Opens the file at `path`; `None` for standard input (`-`).
///
/// A trace is opened once, here: a named pipe that is opened, closed and opened again loses what
/// was written to it, or has no writer any more.
fn open_once(path: &Path) -> Result<Option<File>, TraceError> {
    if path.as_os_str() == "-" {
        return Ok(None);
    }
    let io = |error| TraceError::Io { path: path.into(), error };
    let file = File::open(path).map_err(io)?;
    if file.metadata().map_err(io)?.is_dir() {
        return Err(io(io::Error::from(io::ErrorKind::IsADirectory)));
    }
    Ok(Some(file))
}

/// Returns `true` if the file itself (not what is compressed in it) begins as Parquet does. The
/// file's position stays at its beginning; a pipe is not read at all.
fn is_parquet(path: &Path, file: &File) -> Result<bool, TraceError> {
    let io = |error| TraceError::Io { path: path.into(), error };
    if !file.metadata().map_err(io)?.is_file() {
        return Ok(false);
    }
    let mut magic = [0; 4];
    match file.read_exact_at(&mut magic, 0) {
        Ok(()) => Ok(magic == *b"PAR1"),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(io(error)),
    }
}

fn from_input(mut input: Input, options: &ReadOptions) -> Result<Box<dyn Source>, TraceError> {
    input.peek(SAMPLE);
    if input.data().is_empty() {
        // A stream that fails at once is damaged, not empty.
        input.more(1)?;
    }
    let path = input.path().to_path_buf();
    if let Some((packing, unpack)) = foreign_packing(input.data()) {
        let file = path.display();
        let reason = format!(
            "it is packed with {packing}, which is not read (gzip and zstd are): \
             {unpack} {file} | millpond … -"
        );
        return Err(TraceError::UnknownFormat { path, reason });
    }
    let format = match options.format {
        Some(format) => format,
        None => detect(&path, input.data(), input.is_at_end(), options)?,
    };
    let unused = unused(format, options);
    Ok(match format {
        Format::Text => lines(unused, input, Text::new(options)),
        Format::Lirs => lines(unused, input, Lirs::new(options)),
        Format::Csv => lines(unused, input, Csv::new(options)),
        Format::Extents => lines(unused, input, Extents::default()),
        Format::Lis => lines(unused, input, Lis::default()),
        Format::Spc => lines(unused, input, Spc::new(options)),
        Format::Msr => lines(unused, input, Msr::new(options)),
        Format::OracleGeneral => {
            let reader = OracleGeneral::new(input, options.page_size, options.expand_sizes);
            Box::new(Checked { unused, ..Checked::new(path, reader) })
        }
        Format::Parquet => {
            let reason = "Parquet cannot be read from a pipe: name the file".into();
            return Err(TraceError::UnknownFormat { path, reason });
        }
    })
}

fn lines<F: super::lines::LineFormat + 'static>(
    unused: Option<String>,
    input: Input,
    format: F,
) -> Box<dyn Source> {
    let path = input.path().to_path_buf();
    Box::new(Checked { unused, ..Checked::new(path, Lines::new(input, format)) })
}

/// The note on options that were given and that `format` does not use.
fn unused(format: Format, options: &ReadOptions) -> Option<String> {
    use Format::{Csv, Lirs, Msr, OracleGeneral, Parquet, Spc, Text};
    let all = [
        (OPS, !options.ops.is_empty(), &[Text, Csv, Spc, Msr, Parquet][..]),
        (EXPAND_SIZES, options.expand_sizes, &[Csv, OracleGeneral, Parquet]),
        (MAP_IDS, options.map_ids, &[Text, Lirs, Csv, Parquet]),
    ];
    let is_unused =
        |(_, is_given, of): &(Parameter, bool, &[Format])| *is_given && !of.contains(&format);
    let unused = all.into_iter().filter(is_unused);
    let names: Vec<String> = unused.map(|(parameter, ..)| parameter.to_string()).collect();
    (!names.is_empty())
        .then(|| format!("not used with the format {}: {}", format.id(), names.join(", ")))
}

/// A reader whose trace must hold at least one reference, and that stays ended once it ended.
struct Checked<S> {
    path: PathBuf,
    inner: S,
    /// The note on options that the format does not use.
    unused: Option<String>,
    is_empty: bool,
    has_ended: bool,
}

impl<S: Source> Checked<S> {
    fn new(path: PathBuf, inner: S) -> Checked<S> {
        Checked { path, inner, unused: None, is_empty: true, has_ended: false }
    }
}

impl<S: Source> Source for Checked<S> {
    fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError> {
        if self.has_ended || limit == 0 {
            return Ok(0);
        }
        match self.inner.fill(batch, limit) {
            Ok(0) => {
                self.has_ended = true;
                if self.is_empty {
                    return Err(TraceError::Empty { path: self.path.clone() });
                }
                Ok(0)
            }
            Ok(n) => {
                self.is_empty = false;
                Ok(n)
            }
            Err(error) => {
                self.has_ended = true;
                Err(error)
            }
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.inner.notes();
        notes.extend(self.unused.clone());
        notes
    }
}
