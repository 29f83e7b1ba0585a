//! Names of files: text, byte strings, and everything that has one.

use std::path::PathBuf;

use pyo3::prelude::*;

/// The name of a file, by any object that Python's own functions take for one.
pub(crate) struct AnyPath(pub(crate) PathBuf);

impl<'a, 'py> FromPyObject<'a, 'py> for AnyPath {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<AnyPath> {
        let text = object.py().import("os")?.call_method1("fsdecode", (object,))?;
        Ok(AnyPath(text.extract()?))
    }
}
