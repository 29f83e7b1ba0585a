//! The Python module `millpond._millpond`, which the package `millpond` in `python/` shows.
//!
//! Every call that may take time lets other Python threads run. Handles of a store may be used by
//! several threads, and outlive it: see `core`.
#![deny(missing_docs)]

mod core;
mod entries;
mod error;
mod fork;
mod lab;
mod path;
mod place;
mod signals;
mod store;
mod transaction;
mod tree;
mod value;

use millpond::internals::store::options::POLICY_DEFAULT;
use millpond_base::Face;
use pyo3::prelude::*;

/// Everything that the package shows.
#[pymodule(gil_used = false)]
fn _millpond(module: &Bound<'_, PyModule>) -> PyResult<()> {
    Face::Python.show();
    error::register(module)?;
    module.add_class::<store::Store>()?;
    module.add_class::<tree::Tree>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_class::<transaction::Snapshot>()?;
    module.add_class::<entries::Cursor>()?;
    module.add_class::<entries::Entries>()?;
    module.add_function(wrap_pyfunction!(store::open, module)?)?;
    module.add_function(wrap_pyfunction!(store::in_memory, module)?)?;
    module.add_class::<lab::Trace>()?;
    module.add_class::<lab::Recording>()?;
    module.add_function(wrap_pyfunction!(lab::read_trace, module)?)?;
    module.add_function(wrap_pyfunction!(lab::generate, module)?)?;
    module.add_function(wrap_pyfunction!(lab::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(lab::simulate_own, module)?)?;
    module.add_function(wrap_pyfunction!(lab::curve, module)?)?;
    module.add_function(wrap_pyfunction!(lab::policies, module)?)?;
    module.add_function(wrap_pyfunction!(lab::advise, module)?)?;
    module.add_function(wrap_pyfunction!(lab::compare, module)?)?;
    module.add_class::<lab::Sweep>()?;
    module.add_function(wrap_pyfunction!(lab::read_results, module)?)?;
    module.add_function(wrap_pyfunction!(lab::run_unit, module)?)?;
    module.add("POLICY_DEFAULT", POLICY_DEFAULT)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}
