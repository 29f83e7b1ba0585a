//! Tables as Python has them: a dictionary of columns.

use millpond_lab::table::{Table, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The columns, by name, in order.
pub(super) fn columns<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    for (at, name) in table.columns.iter().enumerate() {
        let column = PyList::empty(py);
        for row in &table.rows {
            match &row[at] {
                Value::Text(text) => column.append(text)?,
                Value::Int(number) => column.append(number)?,
                Value::Float(number) => column.append(number)?,
                Value::Empty => column.append(py.None())?,
            }
        }
        columns.set_item(name, column)?;
    }
    Ok(columns)
}

/// A table of such a dictionary.
pub(super) fn table(columns: &Bound<'_, PyDict>) -> PyResult<Table> {
    let mut table = Table::default();
    for (name, column) in columns {
        let name: String = name.extract()?;
        let values: Vec<Bound<'_, PyAny>> = column.extract()?;
        table.rows.resize(table.rows.len().max(values.len()), Vec::new());
        let before = table.columns.len();
        for (row, value) in table.rows.iter_mut().zip(values) {
            row.resize(before, Value::Empty);
            row.push(cell(&value)?);
        }
        table.columns.push(name);
    }
    let width = table.columns.len();
    table.rows.iter_mut().for_each(|row| row.resize(width, Value::Empty));
    Ok(table)
}

fn cell(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Empty);
    }
    if let Ok(number) = value.extract::<u64>() {
        return Ok(Value::Int(number));
    }
    match value.extract::<f64>() {
        Ok(number) => Ok(Value::Float(number)),
        Err(_) => Ok(Value::Text(value.str()?.to_string())),
    }
}
