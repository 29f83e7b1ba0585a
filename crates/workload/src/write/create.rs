//! Choice and creation of a writer.

use std::path::Path;

use super::csv::CsvSink;
use super::native::NativeSink;
use super::oracle_general::OracleGeneralSink;
use super::output::Output;
use super::sink::Sink;
use super::text::TextSink;
use crate::formats::{FORMATS, Format};
use crate::trace::TraceError;

/// Options of writing a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// Format of the trace; `None` if the file's name determines it.
    pub format: Option<Format>,
    /// `true` to write the columns `page_lsn` and `rec_lsn`; Parquet only.
    pub page_lsns: bool,
}

/// Starts writing a trace to `path`; `-` is standard output.
///
/// The format follows from the name: `.parquet`, `.csv`, `.txt`, or a name that contains
/// `oracleGeneral`. All names except Parquet's may also end in `.gz` or `.zst`.
///
/// # Errors
/// [`TraceError::Options`] if the name does not determine the format or the format cannot be
/// written, [`TraceError::Io`] if the file cannot be created.
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
