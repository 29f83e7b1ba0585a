//! Advice and comparisons.

use millpond_lab::advise::{AdviseError, AdviseOptions, advise as advise_on};
use millpond_lab::compare::{CompareOptions, Contest, Metric, Outcome, Replicate, Run};
use millpond_lab::registry::Registry;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::sweep::{sizes, specs, wrong};
use super::table::{columns, table};
use super::trace::{Trace, failed};
use crate::signals::interruptibly;

/// Which policy for a trace: a dictionary with the advice in three lines, what it rests on, and
/// the table of all runs, as columns.
#[pyfunction]
#[pyo3(signature = (trace, sizes, more, *, default, page_size, write_weight))]
pub(crate) fn advise<'py>(
    py: Python<'py>,
    trace: &Bound<'py, Trace>,
    sizes: Vec<String>,
    more: Vec<String>,
    default: &str,
    page_size: u64,
    write_weight: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let options = AdviseOptions {
        more,
        sizes: self::sizes(&sizes)?,
        page_size,
        write_weight,
        ..AdviseOptions::new(default)
    };
    let trace = trace.get();
    let (name, mut source) = (trace.name().to_string(), trace.source());
    let advice = interruptibly(py, move |stop| {
        let registry = Registry::builtin();
        advise_on(&name, source.as_mut(), &registry, &options, &mut |_, _| !stop())
    })?;
    let advice = advice.map_err(|error| match &error {
        AdviseError::Trace(trace) => failed(trace),
        other => wrong(other),
    })?;
    let found = PyDict::new(py);
    found.set_item("lines", advice.lines().to_vec())?;
    found.set_item("choice", &advice.choice)?;
    found.set_item("default", &advice.default)?;
    found.set_item("references", advice.references)?;
    found.set_item("pages", advice.pages)?;
    found.set_item("write_share", advice.write_share)?;
    found.set_item("once_share", advice.once_share)?;
    found.set_item("has_scans", advice.has_scans)?;
    found.set_item("summary", columns(py, &advice.summary())?)?;
    found.set_item("table", columns(py, &advice.table())?)?;
    Ok(found)
}

/// Compares policies over the rows of simulations: a dictionary with the sentence, and the tables
/// of pairs, of Luan's marks and of his scores, as columns.
#[pyfunction]
#[pyo3(signature = (runs, *, metric, policies, to, replicate, margin, level))]
#[expect(clippy::too_many_arguments, reason = "the package has keywords for them")]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    runs: Vec<(String, Bound<'py, PyDict>)>,
    metric: Option<&str>,
    policies: Vec<String>,
    to: Option<&str>,
    replicate: Option<&str>,
    margin: f64,
    level: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let runs: Vec<Run> = runs
        .into_iter()
        .map(|(name, columns)| Ok(Run { name, rows: table(&columns)? }))
        .collect::<PyResult<_>>()?;
    let metric = metric.map(Metric::parse).transpose().map_err(wrong)?;
    let only: Vec<String> = specs(&policies)?.iter().map(ToString::to_string).collect();
    let replicate = replicate.map(replicate_of).transpose()?;
    let to = to.map(str::to_string);
    let options = CompareOptions { replicate, to, margin, level, ..CompareOptions::default() };
    let outcome = py.detach(|| Outcome::of(Contest::of(&runs, metric, &only)?, options));
    let outcome = outcome.map_err(wrong)?;
    let found = PyDict::new(py);
    found.set_item("sentence", outcome.sentence())?;
    found.set_item("basis", outcome.basis())?;
    found.set_item("metric", outcome.contest.metric.to_string())?;
    found.set_item("replicate", outcome.replicate.to_string())?;
    found.set_item("contestants", outcome.contest.contestants.clone())?;
    found.set_item("pairs", columns(py, &outcome.table())?)?;
    let marks = outcome.marks().map(|marks| columns(py, &marks)).transpose()?;
    found.set_item("marks", marks)?;
    let ranking = outcome.ranking().map(|ranking| columns(py, &ranking)).transpose()?;
    found.set_item("ranking", ranking)?;
    Ok(found)
}

fn replicate_of(text: &str) -> PyResult<Replicate> {
    let all = Replicate::ALL;
    let known = all.iter().find(|replicate| replicate.to_string() == text);
    known.copied().ok_or_else(|| {
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        wrong(format!("'{text}' is no replicate: {} are", all.join(", ")))
    })
}
