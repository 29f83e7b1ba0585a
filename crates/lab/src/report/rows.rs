//! A table as rows of HTML.

use std::fmt::Write as _;

use super::html::escaped;
use crate::table::{Table, Value};

/// Returns the rows of a table as HTML, including its header.
pub(super) fn table_rows(table: &Table) -> String {
    let mut html = String::from("<tr>");
    for column in &table.columns {
        let _ = write!(html, "<th>{}</th>", escaped(column));
    }
    html.push_str("</tr>");
    let digits: Vec<usize> = (0..table.columns.len()).map(|at| digits(table, at)).collect();
    for row in &table.rows {
        html.push_str("<tr>");
        for (value, digits) in row.iter().zip(&digits) {
            let (class, text) = match value {
                Value::Text(text) => ("", escaped(text)),
                Value::Float(x) if x.is_finite() => (" class=\"n\"", format!("{x:.digits$}")),
                other => (" class=\"n\"", other.to_string()),
            };
            let _ = write!(html, "<td{class}>{text}</td>");
        }
        html.push_str("</tr>");
    }
    html
}

/// Returns the digits after the decimal point in a column: none for whole numbers, and about four
/// significant digits for others.
fn digits(table: &Table, column: usize) -> usize {
    let numbers = table.rows.iter().filter_map(|row| row[column].number());
    match numbers.map(f64::abs).fold(0.0, f64::max) {
        _ if table.is_whole(column) => 0,
        most if most < 1.0 => 4,
        most if most < 10.0 => 3,
        most if most < 100.0 => 2,
        most if most < 10_000.0 => 1,
        _ => 0,
    }
}
