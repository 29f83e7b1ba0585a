//! JSON: rows as flat objects, inside the one object that every command prints.

use std::io::Write;

use serde_json::{Map, Number, Value as Json, json};

use super::{Table, TableError, Value};

impl From<&Value> for Json {
    fn from(value: &Value) -> Json {
        match value {
            Value::Text(text) => Json::String(text.clone()),
            Value::Int(n) => Json::Number((*n).into()),
            Value::Float(x) => {
                Number::from_f64(super::value::rounded(*x)).map_or(Json::Null, Json::Number)
            }
            Value::Empty => Json::Null,
        }
    }
}

impl Table {
    /// Returns the rows as a list of flat objects.
    pub fn to_json_rows(&self) -> Json {
        let rows = self.rows.iter().map(|row| {
            let fields = self.columns.iter().zip(row);
            Json::Object(fields.map(|(c, v)| (c.clone(), Json::from(v))).collect::<Map<_, _>>())
        });
        Json::Array(rows.collect())
    }

    /// Writes the object that every command prints: `command`, `version`, `params`, `machine` and
    /// `rows`.
    ///
    /// # Errors
    /// [`TableError::Write`].
    pub fn write_json(
        &self,
        command: &str,
        params: &Json,
        machine: &Json,
        out: &mut dyn Write,
    ) -> Result<(), TableError> {
        let object = json!({
            "command": command,
            "version": env!("CARGO_PKG_VERSION"),
            "params": params,
            "machine": machine,
            "rows": self.to_json_rows(),
        });
        serde_json::to_writer_pretty(&mut *out, &object).map_err(std::io::Error::from)?;
        writeln!(out)?;
        Ok(())
    }
}
