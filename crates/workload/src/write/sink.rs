//! What every writer offers, and how one is chosen.

use std::path::Path;

use millpond_base::Lsn;

use crate::formats::{FORMATS, Format};
use crate::trace::{BATCH_LEN, Batch, Source, TraceError};

use super::csv::CsvSink;
use super::native::NativeSink;
use super::oracle_general::OracleGeneralSink;
use super::output::Output;
use super::text::TextSink;

/// A trace being written.
pub trait Sink: Send {
    /// Appends the references of `batch`.
    ///
    /// # Errors
    /// [`TraceError::Io`] if the file cannot be written, for instance on a full disk.
    fn write(&mut self, batch: &Batch) -> Result<(), TraceError>;

    /// Appends the requests of `batch`, and for each what is known of its page: the end of the last
    /// record about it, and, of a write, its recLSN. 0 is unknown. A format without a place for
    /// these, or a trace that was not made with [`WriteOptions::page_lsns`], leaves them away.
    ///
    /// # Errors
    /// As [`Sink::write`].
    fn write_with_lsns(&mut self, batch: &Batch, page_lsns: &[[Lsn; 2]]) -> Result<(), TraceError> {
        let _ = page_lsns;
        self.write(batch)
    }

    /// Completes the trace and gives the file its name. Without this, nothing appears.
    ///
    /// # Errors
    /// As [`Sink::write`]; the file then does not appear.
    fn finish(&mut self) -> Result<(), TraceError>;

    /// What the format could not hold.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// How to write a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// The format, where the file's name does not say it.
    pub format: Option<Format>,
    /// Whether there are the columns `page_lsn` and `rec_lsn`; Parquet only.
    pub page_lsns: bool,
}

/// Begins to write a trace to `path`; `-` is standard output.
///
/// The format follows from the name: `.parquet`, `.csv`, `.txt`, or `oracleGeneral` in it; all
/// but Parquet may end in `.gz` or `.zst` besides.
///
/// # Errors
/// [`TraceError::Options`] if the name does not say the format or the format cannot be written,
/// [`TraceError::Io`] if the file cannot be created.
pub fn create(path: impl AsRef<Path>, options: &WriteOptions) -> Result<Box<dyn Sink>, TraceError> {
    let path = path.as_ref();
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let bare = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst"));
    let is_packed = bare.is_some();
    let Some(format) = options.format.or_else(|| format_of_name(bare.unwrap_or(&name))) else {
        return Err(TraceError::Options(format!(
            "{}: the name does not say the format: end it in .parquet, .csv or .txt, put \
             oracleGeneral in it, or name a format",
            path.display()
        )));
    };
    if format == Format::Parquet && is_packed {
        return Err(TraceError::Options(format!(
            "{}: Parquet compresses itself: leave .gz or .zst away",
            path.display()
        )));
    }
    let is_writable = FORMATS.iter().any(|f| f.format == format && f.writable);
    if !is_writable {
        let all: Vec<&str> = FORMATS.iter().filter(|f| f.writable).map(|f| f.id).collect();
        return Err(TraceError::Options(format!(
            "{} cannot be written: choose one of {}",
            format.id(),
            all.join(", ")
        )));
    }
    let output = Output::create(path)?;
    Ok(match format {
        Format::Csv => Box::new(CsvSink::new(output)),
        Format::OracleGeneral => Box::new(OracleGeneralSink::new(output)?),
        Format::Parquet => Box::new(NativeSink::new(output, options.page_lsns)?),
        _ => Box::new(TextSink::new(output)),
    })
}

fn format_of_name(name: &str) -> Option<Format> {
    if name.contains("oraclegeneral") || name.contains("oracle-general") {
        return Some(Format::OracleGeneral);
    }
    let (_, extension) = name.rsplit_once('.')?;
    match extension {
        "parquet" => Some(Format::Parquet),
        "csv" => Some(Format::Csv),
        "txt" => Some(Format::Text),
        _ => None,
    }
}

/// Writes all that `source` has to `sink` and completes it; returns how many references there were.
///
/// # Errors
/// Whatever either reports. The target then does not appear under its name.
pub fn convert(source: &mut dyn Source, sink: &mut dyn Sink) -> Result<u64, TraceError> {
    let mut batch = Batch::with_capacity(BATCH_LEN);
    let mut references = 0;
    loop {
        match source.fill(&mut batch, BATCH_LEN)? {
            0 => break,
            n => references += n as u64,
        }
        sink.write(&batch)?;
        batch.clear();
    }
    sink.finish()?;
    Ok(references)
}

/// A sink was used after its end: a mistake of the caller's.
pub(crate) fn finished() -> TraceError {
    TraceError::Options("the trace is complete: nothing can be written to it any more".into())
}

/// Counts what a format cannot hold.
#[derive(Default)]
pub(crate) struct Losses {
    pub writes: u64,
    pub marks: u64,
    pub lsns: u64,
    pub dsyncs: u64,
}

impl Losses {
    pub(crate) fn notes(&self, format: &str) -> Vec<String> {
        let lost = [
            (self.writes, "writes became plain references"),
            (self.marks, "references lost their reason, kind, depth or scan mark"),
            (self.lsns, "log positions were dropped"),
            (self.dsyncs, "dsync records were dropped"),
        ];
        let some = lost.iter().filter(|(n, _)| *n > 0);
        some.map(|(n, what)| format!("{n} {what}: {format} has no place for them")).collect()
    }
}
