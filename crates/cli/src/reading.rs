//! How traces are read, as commands are told.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use millpond_base::Size;
use millpond_lab::sweep::TraceInput;
use millpond_lab::units::TraceFile;
use millpond_workload::formats::{self, ReadOptions};

use crate::error::Failure;

/// How traces are read.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Reading {
    /// The traces' format, where detection fails
    #[arg(long, value_name = "FORMAT")]
    trace_format: Option<String>,
    /// Which CSV column is what: page=3,op=5
    #[arg(long, value_name = "COLUMNS")]
    columns: Option<String>,
    /// Bytes per page, for byte ranges and for sizes in bytes
    #[arg(long, default_value = "4096", value_name = "BYTES")]
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

    pub(crate) fn options(&self) -> Result<ReadOptions, Failure> {
        Ok(ReadOptions {
            format: self.trace_format.as_deref().map(str::parse).transpose()?,
            columns: self.columns.as_deref().map(str::parse).transpose()?,
            page_size: self.page_bytes()?,
            expand_sizes: self.expand_sizes,
            map_ids: self.map_ids,
        })
    }
    /// The traces as files that any machine can read.
    pub(crate) fn files(&self, traces: &[PathBuf]) -> Result<Vec<TraceFile>, Failure> {
        let file = |path: &PathBuf| match path.as_os_str() == "-" {
            true => Err(Failure::Usage(
                "--out-dir needs traces in files, and standard input is none".to_string(),
            )),
            false => Ok(TraceFile {
                name: path.display().to_string(),
                path: path.clone(),
                format: self.trace_format.clone(),
                columns: self.columns.clone(),
                expand_sizes: self.expand_sizes,
                map_ids: self.map_ids,
            }),
        };
        traces.iter().map(file).collect()
    }
}

pub(crate) fn trace_input(path: &Path, options: &ReadOptions) -> TraceInput {
    let (path, options) = (path.to_path_buf(), options.clone());
    let name = path.display().to_string();
    let is_stdin = path.as_os_str() == "-";
    let metadata = std::fs::metadata(&path).ok();
    let changed = metadata.as_ref().and_then(|m| {
        m.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok().map(|d| d.as_nanos())
    });
    let fingerprint = format!("{:?}/{changed:?}/{options:?}", metadata.map(|m| m.len()));
    TraceInput {
        name,
        open: Box::new(move || formats::open(&path, &options)),
        repeatable: !is_stdin,
        fingerprint,
    }
}
