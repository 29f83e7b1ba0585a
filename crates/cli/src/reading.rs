//! Options of all commands for reading traces.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::SystemTime;

use millpond_base::Size;
use millpond_lab::sweep::TraceInput;
use millpond_lab::units::TraceFile;
use millpond_workload::formats::{self, ReadOptions};
use millpond_workload::trace::TraceError;

use crate::error::Failure;

/// Default bytes per page.
const PAGE_SIZE: &str = "4096";

/// How traces are read.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Reading {
    /// Format of the traces, if detection fails
    #[arg(long, value_name = "FORMAT")]
    trace_format: Option<String>,
    /// Meaning of the columns of CSV or Parquet: page=3,op=5. The meanings are page or offset
    /// (bytes) or sector (512 bytes), op, size or sectors, volume, kind, depth, reason, scan, lsn
    #[arg(long, value_name = "COLUMNS")]
    columns: Option<String>,
    /// Meanings of words for operations, beside R, W, read, get, …: gets=R,cas=W,D=skip
    #[arg(long, value_name = "OPS")]
    ops: Option<String>,
    /// Bytes per page, for byte ranges and for sizes in bytes
    #[arg(long, default_value = PAGE_SIZE, value_name = "BYTES")]
    pub page_size: String,
    /// Turn an object of several pages into as many references
    #[arg(long)]
    expand_sizes: bool,
    /// Number ids by first appearance even if they look like numbers
    #[arg(long)]
    map_ids: bool,
}

impl Reading {
    pub(crate) fn page_bytes(&self) -> Result<u64, Failure> {
        let wrong =
            || Failure::Usage(format!("page size '{}' is none: 4096 or 16KiB", self.page_size));
        match self.page_size.parse() {
            Ok(Size::Frames(n) | Size::Bytes(n)) => Ok(n),
            _ => Err(wrong()),
        }
    }

    /// Returns the first of these options that is not at its default.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let all = [
            (self.trace_format.is_some(), "--trace-format"),
            (self.columns.is_some(), "--columns"),
            (self.ops.is_some(), "--ops"),
            (self.page_size != PAGE_SIZE, "--page-size"),
            (self.expand_sizes, "--expand-sizes"),
            (self.map_ids, "--map-ids"),
        ];
        all.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }

    pub(crate) fn options(&self) -> Result<ReadOptions, Failure> {
        Ok(ReadOptions {
            format: self.trace_format.as_deref().map(str::parse).transpose()?,
            columns: self.columns.as_deref().map(str::parse).transpose()?,
            ops: self.ops.as_deref().map(str::parse).transpose()?.unwrap_or_default(),
            page_size: self.page_bytes()?,
            expand_sizes: self.expand_sizes,
            map_ids: self.map_ids,
        })
    }
    /// Returns the traces as files that any machine can read.
    pub(crate) fn files(&self, traces: &[PathBuf]) -> Result<Vec<TraceFile>, Failure> {
        let file = |path: &PathBuf| match formats::is_read_once(path) {
            true => Err(Failure::Usage(format!(
                "--out-dir needs traces in files, and {} is none: {STORE_IT}",
                if path.as_os_str() == "-" {
                    "standard input".into()
                } else {
                    path.display().to_string()
                },
            ))),
            false => Ok(TraceFile {
                name: path.display().to_string(),
                path: path.clone(),
                format: self.trace_format.clone(),
                columns: self.columns.clone(),
                ops: self.ops.clone(),
                expand_sizes: self.expand_sizes,
                map_ids: self.map_ids,
            }),
        };
        traces.iter().map(file).collect()
    }
}

/// The advice for a trace that can be read only once.
const STORE_IT: &str = "store it in a file";

/// Opens each trace once, so that a mistyped name does not cost the work on the others. A trace
/// that can be read only once stays unopened, because opening it would consume its start.
pub(crate) fn check_traces<'p>(
    traces: impl IntoIterator<Item = &'p PathBuf>,
    options: &ReadOptions,
) -> Result<(), Failure> {
    let mut once = Vec::new();
    for path in traces {
        if !formats::is_read_once(path) {
            formats::open(path, options)?;
            continue;
        }
        let stream = if path.as_os_str() == "-" { Path::new("/dev/stdin") } else { path };
        let stream = std::fs::metadata(stream).map(|found| (found.dev(), found.ino())).ok();
        if stream.is_some() && once.contains(&stream) {
            let text = format!("{} can be one trace only: {STORE_IT}", path.display());
            return Err(Failure::Usage(text));
        }
        once.push(stream);
    }
    Ok(())
}

pub(crate) fn trace_input(path: &Path, options: &ReadOptions) -> TraceInput {
    let (path, options) = (path.to_path_buf(), options.clone());
    let name = path.display().to_string();
    let is_read_once = formats::is_read_once(&path);
    let was_read = AtomicBool::new(false);
    let metadata = std::fs::metadata(&path).ok();
    let changed = metadata.as_ref().and_then(|m| {
        m.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok().map(|d| d.as_nanos())
    });
    let fingerprint = format!("{:?}/{changed:?}/{options:?}", metadata.map(|m| m.len()));
    TraceInput {
        name,
        open: Box::new(move || {
            if is_read_once && was_read.swap(true, Relaxed) {
                let text = format!("{} can be read only once: {STORE_IT}", path.display());
                return Err(TraceError::Options(text));
            }
            formats::open(&path, &options)
        }),
        repeatable: !is_read_once,
        fingerprint,
    }
}
