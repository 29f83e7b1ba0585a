//! Sweeps in units: here, on other machines, and the files of both.

use millpond_base::PastPoison;
use millpond_lab::registry::Registry;
use millpond_lab::results::{ResultDir, ResultError, SweepFolder};
use millpond_lab::sweep::{Plan, Shard};
use millpond_lab::units::{
    Event, Local, TraceFile, Unit, UnitError, common_settings, run_local, sources, table_of, units,
};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::sweep::{model_of, sizes, specs, stop_of, wrong};
use super::table::columns;
use crate::path::AnyPath;
use crate::signals::Signals;

fn failed(error: &UnitError) -> PyErr {
    match error {
        UnitError::Trace { .. } | UnitError::Result(ResultError::Io { .. }) => {
            PyOSError::new_err(error.to_string())
        }
        UnitError::Stopped => PyKeyboardInterrupt::new_err("stopped"),
        UnitError::Other { .. } | UnitError::Stalled(_) => {
            PyRuntimeError::new_err(error.to_string())
        }
        other => wrong(other),
    }
}

fn unreadable(error: ResultError) -> PyErr {
    failed(&UnitError::Result(error))
}

/// Labels of units that failed, and why.
type Failures = Vec<(String, String)>;

/// Names of traces, and the reader's notes on them.
type Notes = Vec<(String, String)>;

/// A sweep in units, and the folder of its files.
#[pyclass(frozen, module = "millpond")]
pub(crate) struct Sweep {
    units: Vec<Unit>,
    folder: SweepFolder,
}

#[pymethods]
impl Sweep {
    /// Cuts a sweep over traces (names and paths) into units, and makes the folder.
    #[new]
    #[pyo3(signature = (
        traces, policies, sizes, seeds, out, *, page_size, warmup, blocks, batch, model,
        charge_ghosts, scan_hints, format, columns, ops, expand_sizes, map_ids, shard
    ))]
    #[expect(clippy::too_many_arguments, reason = "the package has keywords for them")]
    fn new(
        py: Python<'_>,
        traces: Vec<(String, AnyPath)>,
        policies: Vec<String>,
        sizes: Vec<String>,
        seeds: Vec<u64>,
        out: AnyPath,
        page_size: u64,
        warmup: &str,
        blocks: u32,
        batch: u32,
        model: &str,
        charge_ghosts: u64,
        scan_hints: bool,
        format: Option<String>,
        columns: Option<String>,
        ops: Option<String>,
        expand_sizes: bool,
        map_ids: bool,
        shard: Option<&str>,
    ) -> PyResult<Sweep> {
        let mut plan = Plan::new(specs(&policies)?, self::sizes(&sizes)?);
        plan.seeds = seeds;
        plan.page_size = page_size;
        plan.warmup = warmup.parse().map_err(wrong)?;
        plan.blocks = blocks;
        plan.batch = batch;
        plan.model = model_of(model)?;
        plan.charge_ghosts = charge_ghosts;
        plan.scan_hints = scan_hints;
        plan.shard = shard.map(str::parse::<Shard>).transpose().map_err(wrong)?;
        let traces: Vec<TraceFile> = traces
            .into_iter()
            .map(|(name, path)| {
                let (format, columns, ops) = (format.clone(), columns.clone(), ops.clone());
                TraceFile { name, path: path.0, format, columns, ops, expand_sizes, map_ids }
            })
            .collect();
        py.detach(|| {
            let units = units(&traces, &plan, &Registry::builtin()).map_err(|e| failed(&e))?;
            let settings = common_settings(&plan, &traces);
            let folder = SweepFolder::create(&out.0, &settings, sources()).map_err(unreadable)?;
            Ok(Sweep { units, folder })
        })
    }

    fn __len__(&self) -> usize {
        self.units.len()
    }

    /// The units whose files are not there: for each its name, its description, its label, and the
    /// bytes of memory that it may need.
    fn missing(&self, py: Python<'_>) -> PyResult<Vec<(String, String, String, u64)>> {
        py.detach(|| {
            let registry = Registry::builtin();
            let mut missing = Vec::new();
            for unit in &self.units {
                let name = unit.name(&registry)?;
                if !self.folder.has(&name) {
                    let memory = unit.memory(&registry)?;
                    missing.push((name, unit.describe(), unit.label(), memory));
                }
            }
            Ok(missing)
        })
        .map_err(|error: UnitError| failed(&error))
    }

    /// Runs what is missing on this machine's cores; `progress` is called with the units that are
    /// done, how many there are, and a label. Returns the labels of those that failed, and why, and
    /// the notes on the traces that were read.
    fn run(
        &self,
        py: Python<'_>,
        threads: usize,
        memory: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Failures, Notes)> {
        let mut signals = Signals::new();
        let (mut done, all) = (0, self.units.len());
        let outcome = py.detach(|| {
            let mut watch = |event: Event<'_>| {
                if let Event::Done(unit) = event {
                    done += 1;
                    if let Some(progress) = &progress {
                        let call = |py: Python<'_>| progress.call1(py, (done, all, unit.label()));
                        if let Err(raised) = Python::attach(call) {
                            signals.raised.get_or_insert(raised);
                        }
                    }
                }
                !signals.stop()
            };
            let how = Local { threads, memory: None, unit_memory: memory };
            run_local(&self.units, &self.folder, &Registry::builtin(), how, &mut watch)
        });
        let outcome = outcome.map_err(|error| failed(&error))?;
        if outcome.is_stopped {
            return Err(stop_of(signals));
        }
        Ok((
            outcome.failed.into_iter().map(|(label, error)| (label, error.to_string())).collect(),
            outcome.notes,
        ))
    }

    /// Writes the file of a unit.
    fn store(&self, py: Python<'_>, name: &str, bytes: &[u8]) -> PyResult<()> {
        py.detach(|| self.folder.store(name, bytes)).map_err(unreadable)
    }

    /// The rows of its units, as columns, which a part without units has, too.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let table = py.detach(|| {
            let registry = Registry::builtin();
            let names: Result<Vec<String>, UnitError> =
                self.units.iter().map(|unit| unit.name(&registry)).collect();
            match &names?[..] {
                [] => Ok(table_of(&[])),
                names => Ok(self.folder.rows_of_units(names)?),
            }
        });
        columns(py, &table.map_err(|error: UnitError| failed(&error))?)
    }
}

/// Runs a unit by its description; returns the bytes of its file, and the notes on its trace. It is
/// refused if it does not have this name here.
#[pyfunction]
pub(crate) fn run_unit<'py>(
    py: Python<'py>,
    description: &str,
    name: &str,
) -> PyResult<(Bound<'py, PyBytes>, Vec<String>)> {
    let signals = std::sync::Mutex::new(Signals::new());
    let ran = py.detach(|| {
        let stop = || signals.lock().is_ok_and(|mut signals| signals.stop());
        Unit::read(description)?.run(&Registry::builtin(), 1, Some(name), &stop)
    });
    let signals = signals.into_inner().past_poison();
    if let Some(raised) = signals.raised {
        return Err(raised);
    }
    let ran = ran.map_err(|error| failed(&error))?;
    Ok((PyBytes::new(py, &ran.file), ran.notes))
}

/// The rows of a result directory, or of a sweep's folder, as columns.
#[pyfunction]
pub(crate) fn read_results(py: Python<'_>, path: AnyPath) -> PyResult<Bound<'_, PyDict>> {
    let rows = py.detach(|| ResultDir::open(&path.0)?.rows());
    columns(py, &rows.map_err(unreadable)?)
}
