//! Rows of named columns.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// One field of a row.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A text.
    Text(String),
    /// A count.
    Int(u64),
    /// A measurement; not-a-number is written as an empty field.
    Float(f64),
    /// An empty field: the column does not apply to this row.
    Empty,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Int(n) => write!(f, "{n}"),
            Value::Float(x) if x.is_finite() => write!(f, "{}", rounded(*x)),
            Value::Float(_) | Value::Empty => Ok(()),
        }
    }
}

/// Rounds to ten significant digits: enough for every ratio of counts, and free of noise.
pub(super) fn rounded(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let digits = 9 - x.abs().log10().floor() as i32;
    if !(0..=17).contains(&digits) {
        return x;
    }
    let factor = 10f64.powi(digits);
    (x * factor).round() / factor
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_string())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Value {
        Value::Int(n)
    }
}

impl From<u32> for Value {
    fn from(n: u32) -> Value {
        Value::Int(u64::from(n))
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Value {
        Value::Float(x)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Empty, Into::into)
    }
}

impl Value {
    /// Returns the number in the field, if the field is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Float(x) if x.is_finite() => Some(*x),
            _ => None,
        }
    }
}

/// Rows of named columns.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows, each as long as `columns`.
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    /// Returns a table without rows.
    pub fn new<'a>(columns: impl IntoIterator<Item = &'a str>) -> Table {
        Table { columns: columns.into_iter().map(str::to_string).collect(), rows: Vec::new() }
    }

    /// Returns the position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c == name)
    }

    /// Returns the field of row `row` in the column called `name`.
    pub fn get(&self, row: usize, name: &str) -> Option<&Value> {
        self.rows.get(row)?.get(self.column(name)?)
    }

    /// Returns the rows with a field in the column called `name` that equals `value` as text.
    /// Columns that are empty in all of these rows are dropped.
    #[must_use]
    pub fn only(&self, name: &str, value: &str) -> Table {
        let is_of = |row: &&Vec<Value>| {
            self.column(name).is_some_and(|at| row.get(at).is_some_and(|v| v.to_string() == value))
        };
        let rows: Vec<&Vec<Value>> = self.rows.iter().filter(is_of).collect();
        let is_used =
            |at: &usize| rows.iter().any(|row| !matches!(row.get(*at), None | Some(Value::Empty)));
        let used: Vec<usize> = (0..self.columns.len()).filter(is_used).collect();
        let pick = |row: &&Vec<Value>| used.iter().map(|at| row[*at].clone()).collect();
        Table {
            columns: used.iter().map(|at| self.columns[*at].clone()).collect(),
            rows: rows.iter().map(pick).collect(),
        }
    }

    /// Returns the table without the column called `name`.
    #[must_use]
    pub fn without(mut self, name: &str) -> Table {
        if let Some(at) = self.column(name) {
            self.columns.remove(at);
            self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
        self
    }

    /// Appends another table's rows. Columns are matched by name, and new columns are added.
    pub fn append(&mut self, other: Table) {
        for name in &other.columns {
            if self.column(name).is_none() {
                self.columns.push(name.clone());
                self.rows.iter_mut().for_each(|row| row.push(Value::Empty));
            }
        }
        let places: Vec<Option<usize>> = self.columns.iter().map(|c| other.column(c)).collect();
        for row in other.rows {
            let fields = places.iter().map(|p| p.map_or(Value::Empty, |p| row[p].clone()));
            self.rows.push(fields.collect());
        }
    }
}

/// Reason why a table could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file could not be written or read.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The output stream failed (a closed pipe, a full disk).
    #[error("cannot write results: {0}")]
    Write(io::Error),
    /// The Parquet file is damaged, or its columns cannot be read as a table.
    #[error("{path}: {reason}")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// A description of the fault.
        reason: String,
    },
}

millpond_base::from_variants! { TableError {
    Write(io::Error),
} }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_print_without_binary_noise() {
        assert_eq!(Value::Float(0.1 + 0.2).to_string(), "0.3");
        assert_eq!(Value::Float(1e-20).to_string(), "0.00000000000000000001");
        assert_eq!(Value::Float(123456.789).to_string(), "123456.789");
        assert_eq!(Value::Float(f64::NAN).to_string(), "");
    }

    #[test]
    fn appended_tables_line_up_by_column_name() {
        let mut a = Table::new(["x", "y"]);
        a.rows.push(vec![1u64.into(), 2u64.into()]);
        let mut b = Table::new(["y", "z"]);
        b.rows.push(vec![3u64.into(), 4u64.into()]);
        a.append(b);
        assert_eq!(a.columns, ["x", "y", "z"]);
        assert_eq!(a.rows[0], [1u64.into(), 2u64.into(), Value::Empty]);
        assert_eq!(a.rows[1], [Value::Empty, 3u64.into(), 4u64.into()]);
    }
}
