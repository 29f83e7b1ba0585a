//! CSV by RFC 4180, with quotes where a field needs them.

use std::io::Write;

use super::{Table, TableError, Value};

impl Table {
    /// Writes header and rows as CSV.
    ///
    /// # Errors
    /// [`TableError::Write`].
    pub fn write_csv(&self, out: &mut dyn Write) -> Result<(), TableError> {
        self.write_csv_header(out)?;
        self.rows.iter().try_for_each(|row| Table::write_csv_row(row, out))
    }

    /// Writes only the header.
    ///
    /// # Errors
    /// [`TableError::Write`].
    pub fn write_csv_header(&self, out: &mut dyn Write) -> Result<(), TableError> {
        writeln!(out, "{}", self.columns.join(","))?;
        Ok(())
    }

    /// Writes only one row, for callers that write rows as they come.
    ///
    /// # Errors
    /// [`TableError::Write`].
    pub fn write_csv_row(row: &[Value], out: &mut dyn Write) -> Result<(), TableError> {
        let fields: Vec<String> = row.iter().map(|v| quoted(&v.to_string())).collect();
        writeln!(out, "{}", fields.join(","))?;
        Ok(())
    }
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_or_quotes_are_quoted() {
        let mut table = Table::new(["a", "b"]);
        table.rows.push(vec!["x,y".into(), 0.5.into()]);
        table.rows.push(vec!["say \"no\"".into(), Value::Empty]);
        let mut out = Vec::new();
        table.write_csv(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "a,b\n\"x,y\",0.5\n\"say \"\"no\"\"\",\n");
    }
}
