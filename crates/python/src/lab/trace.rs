//! Traces in memory.

use std::io::ErrorKind::Interrupted;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millpond_base::{Mark, Seed};
use millpond_lab::sweep::TraceInput;
use millpond_workload::formats::{self, ReadOptions};
use millpond_workload::generate::{generate as source_of, parse_params};
use millpond_workload::trace::{BATCH_LEN, Batch, Source, TraceError};
use millpond_workload::write::{WriteOptions, convert, create};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::path::AnyPath;
use crate::signals::{Signals, interruptibly};

/// References to pages, in memory: what policies are simulated on.
#[pyclass(frozen, module = "millpond")]
pub(crate) struct Trace {
    batch: Arc<Batch>,
    name: String,
    notes: Vec<String>,
}

pub(super) fn failed(error: &TraceError) -> PyErr {
    match error {
        TraceError::Io { path, error } => os_error(path, error),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// The error of the operating system: Python makes a `FileNotFoundError` of it, if it is one.
fn os_error(path: &Path, error: &std::io::Error) -> PyErr {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => {
            let text = text.split(" (os error").next().unwrap_or_default().to_string();
            PyOSError::new_err((number, text, path.to_path_buf()))
        }
        None => PyOSError::new_err(format!("{}: {text}", path.display())),
    }
}

/// A source over what is in memory.
struct Memory {
    batch: Arc<Batch>,
    at: usize,
}

impl Source for Memory {
    fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError> {
        let end = self.batch.len().min(self.at.saturating_add(limit));
        let range = self.at..end;
        batch.pages.extend_from_slice(&self.batch.pages[range.clone()]);
        batch.marks.extend_from_slice(&self.batch.marks[range.clone()]);
        if !self.batch.lsns.is_empty() {
            batch.lsns.extend_from_slice(&self.batch.lsns[range]);
        }
        let taken = end - self.at;
        self.at = end;
        Ok(taken)
    }

    fn progress(&self) -> Option<f64> {
        Some(self.at as f64 / self.batch.len().max(1) as f64)
    }
}

/// A source that fails when the handler of a signal has raised.
struct Interruptible<'s> {
    source: Box<dyn Source>,
    signals: &'s mut Signals,
}

impl Source for Interruptible<'_> {
    fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError> {
        match self.signals.stop() {
            true => Err(TraceError::Io { path: PathBuf::new(), error: Interrupted.into() }),
            false => self.source.fill(batch, limit),
        }
    }
}

/// All of a source, or what came until `stop` said that nobody wants it.
fn whole(
    mut source: Box<dyn Source>,
    stop: &dyn Fn() -> bool,
) -> Result<(Batch, Vec<String>), TraceError> {
    let mut batch = Batch::default();
    while source.fill(&mut batch, BATCH_LEN)? > 0 && !stop() {}
    batch.drop_dsyncs();
    Ok((batch, source.notes()))
}

impl Trace {
    pub(super) fn of(batch: Batch, name: &str) -> Trace {
        Trace { batch: Arc::new(batch), name: name.to_string(), notes: Vec::new() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn batch(&self) -> &Arc<Batch> {
        &self.batch
    }

    pub(super) fn source(&self) -> Box<dyn Source> {
        Box::new(Memory { batch: self.batch.clone(), at: 0 })
    }

    pub(super) fn input(&self) -> TraceInput {
        let batch = self.batch.clone();
        TraceInput {
            name: self.name.clone(),
            open: Box::new(move || Ok(Box::new(Memory { batch: batch.clone(), at: 0 }))),
            repeatable: true,
            fingerprint: String::new(),
        }
    }
}

#[pymethods]
impl Trace {
    /// A trace of a buffer of page numbers (64 bits, no sign), and of one that says which
    /// references are writes (bytes, 0 or 1). `millpond.trace` takes any array.
    #[new]
    #[pyo3(signature = (pages, writes = None, name = "array"))]
    fn new(
        py: Python<'_>,
        pages: PyBuffer<u64>,
        writes: Option<PyBuffer<u8>>,
        name: &str,
    ) -> PyResult<Trace> {
        let pages = pages.to_vec(py)?;
        let marks = match writes {
            None => vec![Mark::READ; pages.len()],
            Some(writes) => {
                let mark = |is_write: u8| if is_write == 0 { Mark::READ } else { Mark::WRITE };
                writes.to_vec(py)?.into_iter().map(mark).collect()
            }
        };
        if marks.len() != pages.len() {
            let (pages, marks) = (pages.len(), marks.len());
            let text = format!("{pages} pages and {marks} truth values are no trace");
            return Err(PyValueError::new_err(text));
        }
        let batch = Arc::new(Batch { pages, marks, lsns: Vec::new() });
        Ok(Trace { batch, name: name.to_string(), notes: Vec::new() })
    }

    /// Name of the trace in results.
    #[getter(name)]
    fn py_name(&self) -> &str {
        &self.name
    }

    /// The reader's remarks on the file.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn __len__(&self) -> usize {
        self.batch.len()
    }

    fn __repr__(&self) -> String {
        format!("<millpond.Trace {:?} of {} references>", self.name, self.batch.len())
    }

    /// The pages as bytes of 64-bit integers; `pages` is the array of them.
    fn page_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let pages = &self.batch.pages;
        PyBytes::new_with(py, pages.len() * 8, |bytes| {
            for (to, page) in bytes.chunks_exact_mut(8).zip(pages) {
                to.copy_from_slice(&page.to_ne_bytes());
            }
            Ok(())
        })
    }

    /// Which references are writes, as bytes of 0 and 1; `writes` is the array of them.
    fn write_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let marks = &self.batch.marks;
        PyBytes::new_with(py, marks.len(), |bytes| {
            bytes.iter_mut().zip(marks).for_each(|(to, mark)| *to = mark.is_write().into());
            Ok(())
        })
    }

    /// Writes it to a file, whose name says the format: `.parquet`, `.csv`, `.txt`, with `.gz` or
    /// `.zst` behind. The file appears when it is whole.
    fn write(&self, py: Python<'_>, path: AnyPath) -> PyResult<()> {
        let mut signals = Signals::new();
        let done = py.detach(|| {
            let mut sink = create(path.0, &WriteOptions::default())?;
            let mut source = Interruptible { source: self.source(), signals: &mut signals };
            convert(&mut source, &mut *sink).map(drop)
        });
        match signals.raised {
            Some(raised) => Err(raised),
            None => done.map_err(|error| failed(&error)),
        }
    }
}

/// Reads a trace from a file, whose format is detected; `format` and `columns` (as
/// `"page=3,op=5"` of a CSV) say what it cannot.
#[pyfunction]
#[pyo3(signature = (
    path, *, format = None, columns = None, ops = None, page_size = 4096, expand_sizes = false,
    map_ids = false,
))]
#[expect(clippy::too_many_arguments, reason = "the package has keywords for them")]
pub(crate) fn read_trace(
    py: Python<'_>,
    path: AnyPath,
    format: Option<&str>,
    columns: Option<&str>,
    ops: Option<&str>,
    page_size: u64,
    expand_sizes: bool,
    map_ids: bool,
) -> PyResult<Trace> {
    let options = ReadOptions {
        format: format.map(str::parse).transpose().map_err(|error| failed(&error))?,
        columns: columns.map(str::parse).transpose().map_err(|error| failed(&error))?,
        ops: ops.map(str::parse).transpose().map_err(|error| failed(&error))?.unwrap_or_default(),
        page_size,
        expand_sizes,
        map_ids,
    };
    let (AnyPath(path), file) = (&path, path.0.clone());
    let read = interruptibly(py, move |stop| whole(formats::open(&file, &options)?, stop))?;
    let (batch, notes) = read.map_err(|error| failed(&error))?;
    Ok(Trace { batch: Arc::new(batch), name: path.display().to_string(), notes })
}

/// Generates a trace: `generate("zipf-ro", "pages=1000,refs=100k,theta=0.8", seed=1)`.
#[pyfunction]
#[pyo3(signature = (generator, params = "", *, seed = 1))]
pub(crate) fn generate(
    py: Python<'_>,
    generator: &str,
    params: &str,
    seed: u64,
) -> PyResult<Trace> {
    let comma = if params.is_empty() { "" } else { "," };
    let name = format!("{generator}({params}{comma}seed={seed})");
    let (generator, params) = (generator.to_string(), params.to_string());
    let made = interruptibly(py, move |stop| {
        let params = parse_params(&params)?;
        whole(source_of(&generator, &params, Seed(seed))?, stop)
    })?;
    let (batch, notes) = made.map_err(|error| failed(&error))?;
    Ok(Trace { batch: Arc::new(batch), name, notes })
}
