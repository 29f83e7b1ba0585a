//! Journal of finished cells on disk: one line per cell, appended when the cell ends.
//!
//! Rewriting all rows after every cell would cost more than some cells. A line that a kill cut
//! off does not count, and its cell is run again.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::{Number, Value as Json, json};

use super::cell::Fields;
use millpond_lab::table::Value;

/// The file's name in a result directory.
pub(super) const NAME: &str = "cells.jsonl";

/// Rows of finished cells, by key and in the order of finishing.
pub(super) struct Journal {
    file: File,
    cells: Vec<(String, Vec<Fields>)>,
    by_key: HashMap<String, usize>,
}

impl Journal {
    /// Opens the journal of a result directory; its content counts only with `keeps`.
    pub fn open(folder: &Path, keeps: bool) -> io::Result<Journal> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(!keeps);
        let mut file = options.open(folder.join(NAME))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let mut journal = Journal { file, cells: Vec::new(), by_key: HashMap::new() };
        let mut whole = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let Some((key, rows)) = line.strip_suffix(b"\n").and_then(read) else { break };
            journal.keep(key, rows);
            whole += line.len() as u64;
        }
        // A partial last line would spoil the next one.
        journal.file.set_len(whole)?;
        journal.file.seek(SeekFrom::Start(whole))?;
        Ok(journal)
    }

    fn keep(&mut self, key: String, rows: Vec<Fields>) {
        self.by_key.insert(key.clone(), self.cells.len());
        self.cells.push((key, rows));
    }

    /// Returns `true` if the cell with this key is finished.
    pub fn has(&self, key: &str) -> bool {
        self.by_key.contains_key(key)
    }

    /// Appends the rows of a cell.
    pub fn append(&mut self, key: &str, rows: Vec<Fields>) -> io::Result<()> {
        let written: Vec<Json> = rows.iter().map(write).collect();
        let mut line = json!([key, written]).to_string();
        line.push('\n');
        self.file.write_all(line.as_bytes())?;
        self.keep(key.to_string(), rows);
        Ok(())
    }

    /// Returns the rows of a cell; none if it is not finished.
    pub fn rows(&self, key: &str) -> &[Fields] {
        self.by_key.get(key).map_or(&[], |at| &self.cells[*at].1)
    }
}

/// Writes a row as a list of names and values, since an object would lose the order.
fn write(row: &Fields) -> Json {
    let field = |(name, value): &(String, Value)| {
        let value = match value {
            // All digits, unlike in tables for people.
            Value::Float(x) => Number::from_f64(*x).map_or(Json::Null, Json::Number),
            other => Json::from(other),
        };
        json!([name, value])
    };
    Json::Array(row.iter().map(field).collect())
}

fn read(line: &[u8]) -> Option<(String, Vec<Fields>)> {
    let line: Json = serde_json::from_slice(line).ok()?;
    let key = line.get(0)?.as_str()?.to_string();
    let row = |row: &Json| row.as_array()?.iter().map(field).collect::<Option<Fields>>();
    let rows = line.get(1)?.as_array()?.iter().map(row).collect::<Option<Vec<Fields>>>()?;
    Some((key, rows))
}

fn field(pair: &Json) -> Option<(String, Value)> {
    let value = match pair.get(1)? {
        Json::String(text) => Value::Text(text.clone()),
        Json::Number(n) => match n.as_u64() {
            Some(n) => Value::Int(n),
            None => Value::Float(n.as_f64()?),
        },
        Json::Null => Value::Empty,
        _ => return None,
    };
    Some((pair.get(0)?.as_str()?.to_string(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(hits: u64, ratio: f64) -> Fields {
        let fields = [("z", Value::from("a|b\n")), ("hits", hits.into()), ("ratio", ratio.into())];
        fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    }

    #[test]
    fn what_was_finished_is_there_again_and_a_torn_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), false).unwrap();
        journal.append("one", vec![row(1, 1.0 / 3.0), row(2, 2.0)]).unwrap();
        journal.append("two", Vec::new()).unwrap();
        drop(journal);
        let path = folder.path().join(NAME);
        let mut torn = std::fs::read(&path).unwrap();
        torn.extend_from_slice(b"[\"three\",[[[\"hits\"");
        std::fs::write(&path, torn).unwrap();
        let mut journal = Journal::open(folder.path(), true).unwrap();
        assert!(journal.has("one") && journal.has("two") && !journal.has("three"));
        assert_eq!(journal.rows("one"), [row(1, 1.0 / 3.0), row(2, 2.0)]);
        journal.append("three", vec![row(3, 0.5)]).unwrap();
        let journal = Journal::open(folder.path(), true).unwrap();
        assert_eq!(journal.rows("three"), [row(3, 0.5)], "the torn line is gone");
        assert!(!Journal::open(folder.path(), false).unwrap().has("one"), "from the beginning");
    }
}
