//! Writing a trace to a file, with progress.

use std::path::PathBuf;

use millpond_workload::trace::{Batch, Source, TraceError};
use millpond_workload::write::{self, WriteOptions};

use crate::error::Failure;
use crate::interrupt;
use crate::output::complain;
use crate::progress::Progress;

/// Writes all of `source` to `path`, with progress; returns the number of references. `path`
/// appears only if the end was reached.
pub(super) fn write_trace(
    source: &mut dyn Source,
    path: &PathBuf,
    format: Option<&str>,
    quiet: bool,
) -> Result<u64, Failure> {
    let format = format.map(str::parse).transpose()?;
    let mut sink = write::create(path, &WriteOptions { format, ..WriteOptions::default() })?;
    let progress = Progress::new(quiet);
    let (mut batch, mut references) = (Batch::default(), 0);
    loop {
        batch.clear();
        let read = source.fill(&mut batch, 1 << 16)?;
        if read == 0 {
            break;
        }
        if interrupt::asked() {
            return Err(Failure::Interrupted);
        }
        sink.write(&batch)?;
        references += read as u64;
        progress.show(&path.display().to_string(), source.progress(), references, "references");
    }
    if references == 0 {
        return Err(TraceError::Empty { path: path.clone() }.into());
    }
    sink.finish()?;
    progress.finish();
    source.notes().iter().chain(&sink.notes()).for_each(|note| complain(note));
    Ok(references)
}
