//! Built-in policies on traces: sweeps and curves.

use millpond_base::PastPoison;
use millpond_base::Size;
use millpond_lab::curve::{CurveError, CurveTask, Curves};
use millpond_lab::registry::Registry;
use millpond_lab::sim::Stalled;
use millpond_lab::sweep::{
    CONTENT, Model, OPTIONS, Observer, Plan, Row, Sweep, SweepError, rows_to_table,
};
use millpond_lab::table::Table;
use millpond_policies::config::Spec;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::table::columns;
use super::trace::{Trace, failed};
use crate::signals::{Signals, interruptibly};

/// Takes the rows of a sweep.
struct Rows {
    rows: Vec<Row>,
    stalled: Vec<String>,
    signals: std::sync::Mutex<Signals>,
}

impl Observer for Rows {
    fn stop(&self) -> bool {
        // A panic elsewhere ends the sweep anyway.
        self.signals.lock().is_ok_and(|mut signals| signals.stop())
    }

    fn row(&mut self, row: Row) -> Result<(), SweepError> {
        self.rows.push(row);
        Ok(())
    }

    fn stalled(&mut self, stalled: &Stalled) {
        self.stalled.push(stalled.to_string());
    }
}

pub(super) fn wrong(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

pub(super) fn specs(policies: &[String]) -> PyResult<Vec<Spec>> {
    let mut specs = Vec::new();
    for list in policies {
        specs.extend(Spec::parse_list(list).map_err(wrong)?);
    }
    Ok(specs)
}

pub(super) fn sizes(texts: &[String]) -> PyResult<Vec<Size>> {
    texts.iter().map(|text| text.parse::<Size>().map_err(wrong)).collect()
}

pub(super) fn stop_of(signals: Signals) -> PyErr {
    signals.raised.unwrap_or_else(|| PyKeyboardInterrupt::new_err("stopped"))
}

pub(super) fn model_of(text: &str) -> PyResult<Model> {
    match text {
        "pool" => Ok(Model::Pool),
        "read" => Ok(Model::Read),
        "rw" => Ok(Model::Rw),
        _ => Err(wrong(format!("'{text}' is no model: pool, read or rw"))),
    }
}

/// Runs policies on traces; the rows, as columns.
#[pyfunction]
#[pyo3(signature = (
    traces, policies, sizes, seeds, *, page_size, warmup, blocks, batch, model, threads
))]
#[expect(clippy::too_many_arguments, reason = "the package has keywords for them")]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    traces: Vec<Py<Trace>>,
    policies: Vec<String>,
    sizes: Vec<String>,
    seeds: Vec<u64>,
    page_size: u64,
    warmup: &str,
    blocks: u32,
    batch: u32,
    model: &str,
    threads: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let mut plan = Plan::new(specs(&policies)?, self::sizes(&sizes)?);
    plan.traces = traces.iter().map(|trace| trace.get().input()).collect();
    plan.seeds = seeds;
    plan.page_size = page_size;
    plan.warmup = warmup.parse().map_err(wrong)?;
    plan.blocks = blocks;
    plan.batch = batch;
    plan.model = model_of(model)?;
    plan.threads = threads;
    let signals = std::sync::Mutex::new(Signals::new());
    let mut rows = Rows { rows: Vec::new(), stalled: Vec::new(), signals };
    let done = py.detach(|| {
        let registry = Registry::builtin();
        Sweep::new(&plan, &registry)?.run(&mut rows)
    });
    let signals = rows.signals.into_inner().past_poison();
    if signals.raised.is_some() {
        return Err(stop_of(signals));
    }
    done.map_err(wrong)?;
    if let Some(stalled) = rows.stalled.first() {
        return Err(wrong(stalled));
    }
    columns(py, &rows_to_table(&rows.rows))
}

/// The miss-ratio curves of policies on a trace; the points, as columns.
#[pyfunction]
#[pyo3(signature = (trace, policies, sizes, *, page_size, seed, check))]
pub(crate) fn curve<'py>(
    py: Python<'py>,
    trace: &Bound<'py, Trace>,
    policies: Vec<String>,
    sizes: Vec<String>,
    page_size: u64,
    seed: u64,
    check: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let (policies, sizes) = (specs(&policies)?, self::sizes(&sizes)?);
    let trace = trace.get();
    let (input, specs) = (trace.input(), policies.clone());
    let rows = interruptibly(py, move |stop| {
        let registry = Registry::builtin();
        let (policies, sizes) = (&specs[..], &sizes[..]);
        let task = CurveTask { registry: &registry, policies, sizes, page_size, seed, check };
        task.run(&input, &mut |_, _, _| stop())
    })?;
    let rows = rows.map_err(|error| match &error {
        CurveError::Trace(trace) => failed(trace),
        other => wrong(other),
    })?;
    // A trace in memory has none of its own.
    let Curves { rows, content, notes: _ } = rows;
    let names = ["trace", "policy", "size", "miss_ratio", "method", "rate", CONTENT, OPTIONS];
    let mut table = Table::new(names.into_iter().chain(check.then_some("exact_miss_ratio")));
    for row in &rows {
        let mut values = vec![
            trace.name().into(),
            policies[row.point.policy].to_string().into(),
            row.point.size.into(),
            row.point.miss_ratio.into(),
            row.point.method.name().into(),
            row.point.rate.into(),
            format!("{content:016x}").into(),
            Model::Pool.to_string().into(),
        ];
        if check {
            values.push(row.exact.into());
        }
        table.rows.push(values);
    }
    columns(py, &table)
}

/// The built-in policies: for each, what it is called, by whom and when it was published, and its
/// parameters.
#[pyfunction]
pub(crate) fn policies() -> Vec<(String, Vec<String>)> {
    let registry = Registry::builtin();
    let one = |entry: &millpond_lab::registry::Entry| {
        let params = entry.params.iter().map(|param| param.name.to_string());
        (entry.info.id.to_string(), params.collect())
    };
    registry.entries().iter().map(one).collect()
}
