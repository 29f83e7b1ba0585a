//! A policy written in Python, simulated.

use std::time::Instant;

use hashbrown::HashMap;
use millpond_base::{Size, SizeError};
use millpond_lab::sweep::{CONTENT, Content, Model, OPTIONS};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};

use super::sweep::wrong;
use super::trace::Trace;

/// References between two looks at whether somebody wants to stop.
const LOOK: usize = 1 << 16;

/// State of a page, by its dense number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    Out,
    Clean,
    Dirty,
}

/// Counts of hits and evictions.
#[derive(Default)]
struct Seen {
    hits: u64,
    evictions: u64,
    dirty_evictions: u64,
}

/// Runs a policy's object on a trace: `hit(page)`, `miss(page)`, and `evict()`, which returns the
/// page that leaves; the row, as a dictionary.
///
/// `make` is called with the number of frames and returns the object.
#[pyfunction]
#[pyo3(signature = (trace, make, size, *, page_size))]
pub(crate) fn simulate_own<'py>(
    trace: &Bound<'py, Trace>,
    make: &Bound<'py, PyAny>,
    size: &str,
    page_size: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let py = trace.py();
    let size: Size = size.parse().map_err(|error: SizeError| wrong(error))?;
    Size::check_all(&[size], page_size).map_err(wrong)?;
    let trace = trace.get();
    let (dense, names) = py.detach(|| renumber(&trace.batch().pages));
    let frames = size.frames(page_size, names.len() as u64);
    let policy = make.call1((frames,))?;
    let begun = Instant::now();
    let mut pages = vec![Page::Out; names.len()];
    let seen = run(trace, &policy, &dense, &names, frames, &mut pages)?;
    let references = dense.len() as u64;
    let nanoseconds = begun.elapsed().as_nanos() as f64;
    let dirty_at_end = pages.iter().filter(|page| **page == Page::Dirty).count() as u64;
    let row = PyDict::new(py);
    row.set_item("trace", trace.name())?;
    row.set_item("policy", name_of(make, &policy)?)?;
    row.set_item("params", "")?;
    row.set_item("size", frames)?;
    row.set_item("seed", 1)?;
    row.set_item("references", references)?;
    row.set_item("hits", seen.hits)?;
    row.set_item("misses", references - seen.hits)?;
    row.set_item("writes", seen.dirty_evictions + dirty_at_end)?;
    row.set_item("hit_ratio", seen.hits as f64 / (references.max(1)) as f64)?;
    row.set_item("ns_per_reference", nanoseconds / (references.max(1)) as f64)?;
    row.set_item("dirty_evictions", seen.dirty_evictions)?;
    row.set_item("dirty_at_end", dirty_at_end)?;
    row.set_item("evictions", seen.evictions)?;
    let mut content = Content::default();
    content.add(trace.batch());
    row.set_item(CONTENT, format!("{:016x}", content.hash()))?;
    row.set_item(OPTIONS, Model::Pool.to_string())?;
    Ok(row)
}

/// Returns the policy's name for results: its attribute `name`, or its class's name.
fn name_of(make: &Bound<'_, PyAny>, policy: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(name) = policy.getattr("name").and_then(|name| name.extract::<String>()) {
        return Ok(name);
    }
    match make.getattr("__name__") {
        Ok(name) => name.extract(),
        Err(_) => Ok(policy.get_type().name()?.to_string()),
    }
}

/// The pages by dense numbers, and the page of each number.
fn renumber(pages: &[u64]) -> (Vec<u32>, Vec<u64>) {
    let mut numbers = HashMap::new();
    let mut names = Vec::new();
    let dense = pages.iter().map(|page| {
        *numbers.entry(*page).or_insert_with(|| {
            names.push(*page);
            names.len() as u32 - 1
        })
    });
    (dense.collect(), names)
}

fn run(
    trace: &Trace,
    policy: &Bound<'_, PyAny>,
    dense: &[u32],
    names: &[u64],
    frames: u64,
    pages: &mut [Page],
) -> PyResult<Seen> {
    let py = policy.py();
    let (hit, miss, evict) =
        (policy.getattr("hit")?, policy.getattr("miss")?, policy.getattr("evict")?);
    // One object for each page: callbacks then cost no allocation.
    let objects: Vec<Bound<'_, PyInt>> =
        names.iter().map(|name| name.into_pyobject(py)).collect::<Result<_, _>>()?;
    let numbers: HashMap<u64, u32> =
        names.iter().zip(0..).map(|(name, number)| (*name, number)).collect();
    let (mut seen, mut resident) = (Seen::default(), 0);
    for (at, (number, mark)) in dense.iter().zip(&trace.batch().marks).enumerate() {
        if at % LOOK == 0 {
            py.check_signals()?;
        }
        let index = *number as usize;
        let page = &objects[index];
        if pages[index] != Page::Out {
            seen.hits += 1;
            hit.call1((page,))?;
        } else {
            if resident == frames {
                let victim = evict.call0()?;
                let victim = numbers.get(&victim.extract::<u64>()?).copied();
                let left = victim.map(|victim| &mut pages[victim as usize]);
                match left {
                    Some(left) if *left != Page::Out => {
                        seen.evictions += 1;
                        seen.dirty_evictions += u64::from(*left == Page::Dirty);
                        *left = Page::Out;
                    }
                    _ => return Err(no_victim(at, evict.call_method0("__repr__"))),
                }
            } else {
                resident += 1;
            }
            miss.call1((page,))?;
            pages[index] = Page::Clean;
        }
        if mark.is_write() {
            pages[index] = Page::Dirty;
        }
    }
    Ok(seen)
}

fn no_victim(at: usize, evict: PyResult<Bound<'_, PyAny>>) -> PyErr {
    let evict = evict.map_or_else(|_| "evict".to_string(), |text| text.to_string());
    PyRuntimeError::new_err(format!(
        "reference {at}: {evict} returned a page that is not in the cache"
    ))
}
