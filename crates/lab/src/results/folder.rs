//! The folder of a sweep that was cut into units: `sweep.json` (the settings that its files share)
//! and a Parquet file for each unit, named by a hash.
//!
//! Files appear under their names only once they are complete, and equal names have equal bytes.
//! Any number of programs may therefore write into one folder at once, and any of them may be
//! killed at any time.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use millpond_workload::write::WholeFile;
use serde_json::{Value as Json, json};

use super::command_line::of_units;
use super::error::ResultError;
use crate::table::{Table, TableError, Value};

/// Name of the note in a unit's file that describes the run.
pub(crate) const UNIT: &str = "millpond.unit";
/// Name of the file with the settings that all files share.
const COMMON: &str = "sweep.json";
/// Columns that identify the simulation of a row.
const CELL: [&str; 6] = ["trace", "policy", "params", "size", "seed", "block"];

/// A folder of a sweep's files.
#[derive(Debug)]
pub struct SweepFolder {
    path: PathBuf,
}

impl SweepFolder {
    /// Opens the folder `path` for files with these settings and sources, or creates it.
    ///
    /// # Errors
    /// [`ResultError::OtherSweep`] if the folder has files of another sweep.
    pub fn create(path: &Path, settings: &Json, sources: &str) -> Result<SweepFolder, ResultError> {
        let folder = SweepFolder { path: path.to_path_buf() };
        std::fs::create_dir_all(path).map_err(|error| folder.io(path, error))?;
        let common = json!({ "command": "sweep", "sources": sources, "settings": settings });
        if SweepFolder::is(path) {
            let there = folder.common()?;
            return match different(&there, &common) {
                None => Ok(folder),
                Some(reason) => Err(ResultError::OtherSweep { path: path.to_path_buf(), reason }),
            };
        }
        // Another program that creates the folder at the same time writes equal bytes.
        let text = format!("{common:#}\n");
        folder.whole(&path.join(COMMON), text.as_bytes())?;
        Ok(folder)
    }

    /// Returns `true` if `path` is the folder of a sweep.
    pub fn is(path: &Path) -> bool {
        path.join(COMMON).is_file()
    }

    /// Opens the existing folder of a sweep.
    ///
    /// # Errors
    /// [`ResultError::Damaged`] if `path` is not the folder of a sweep.
    pub fn open(path: &Path) -> Result<SweepFolder, ResultError> {
        let folder = SweepFolder { path: path.to_path_buf() };
        if SweepFolder::is(path) { Ok(folder) } else { Err(folder.damaged("no sweep.json")) }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a unit's file.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.parquet"))
    }

    /// Returns `true` if the file of a unit exists, which implies that it is complete.
    pub fn has(&self, name: &str) -> bool {
        self.file(name).is_file()
    }

    /// Writes the file of a unit.
    ///
    /// # Errors
    /// [`ResultError::Io`].
    pub fn store(&self, name: &str, bytes: &[u8]) -> Result<(), ResultError> {
        self.whole(&self.file(name), bytes)
    }

    /// Returns the settings that the files share, in the form that other result directories use for
    /// their run.
    ///
    /// # Errors
    /// [`ResultError`].
    pub fn run(&self) -> Result<Json, ResultError> {
        let mut run = self.common()?;
        let folder = self.path.display().to_string();
        let again = of_units(&self.units()?, &folder);
        run["command_line"] = again.unwrap_or_else(|| format!("sweep in {folder}")).into();
        run["build"] = run["sources"].clone();
        run["params"] = run["settings"].clone();
        Ok(run)
    }

    /// Returns the rows of all files, in the order of their columns. A simulation that occurs in
    /// several files appears once.
    ///
    /// # Errors
    /// [`ResultError`]; also if files have different rows for one simulation, which happens if a
    /// trace was changed.
    pub fn rows(&self) -> Result<Table, ResultError> {
        self.rows_of(&self.files()?)
    }

    /// Returns the keys of the units with an existing file, sorted by file name.
    fn units(&self) -> Result<Vec<Json>, ResultError> {
        let mut units = Vec::new();
        for file in self.files()? {
            let key = Table::parquet_note(&file, UNIT).map_err(ResultError::Unit)?;
            units.extend(key.and_then(|key| serde_json::from_str(&key).ok()));
        }
        Ok(units)
    }

    fn files(&self) -> Result<Vec<PathBuf>, ResultError> {
        let entries = std::fs::read_dir(&self.path).map_err(|e| self.io(&self.path, e))?;
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| self.io(&self.path, error))?.path();
            if path.extension().is_some_and(|end| end == "parquet") && path.is_file() {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }

    /// Returns the rows of some units; all their files must exist.
    ///
    /// # Errors
    /// The errors of [`SweepFolder::rows`].
    pub fn rows_of_units(&self, names: &[String]) -> Result<Table, ResultError> {
        let files: Vec<PathBuf> = names.iter().map(|name| self.file(name)).collect();
        self.rows_of(&files)
    }

    fn rows_of(&self, files: &[PathBuf]) -> Result<Table, ResultError> {
        let mut all = Table::default();
        let mut of_file = Vec::new();
        for (at, file) in files.iter().enumerate() {
            let of_unit = Table::read_parquet(file).map_err(|error| match error {
                damaged @ TableError::Parquet { .. } => ResultError::Unit(damaged),
                other => other.into(),
            })?;
            all.append(of_unit);
            of_file.resize(all.rows.len(), at);
        }
        let cell: Vec<Option<usize>> = CELL.iter().map(|name| all.column(name)).collect();
        let cell_of = |row: &[Value]| -> Vec<String> {
            cell.iter().map(|at| at.map(|at| row[at].to_string()).unwrap_or_default()).collect()
        };
        let mut first: HashMap<Vec<String>, usize> = HashMap::new();
        let mut kept = Vec::new();
        for (at, row) in all.rows.iter().enumerate() {
            let is_of = cell_of(row);
            let Some(&twin) = first.get(&is_of) else {
                first.insert(is_of, at);
                kept.push(at);
                continue;
            };
            if all.rows[twin] != *row {
                return Err(self.damaged(&format!(
                    "{} and {} have different rows for {}: was the trace changed? Delete the \
                     older one",
                    files[of_file[twin]].display(),
                    files[of_file[at]].display(),
                    is_of.join(" ").trim_end(),
                )));
            }
        }
        let number = |at: usize, column: usize| cell[column].and_then(|c| all.rows[at][c].number());
        kept.sort_by(|one, other| {
            let texts = |at: usize| {
                [0, 1, 2].map(|c| cell[c].map(|c| all.rows[at][c].to_string()).unwrap_or_default())
            };
            let numbers = |at: usize| [3, 4, 5].map(|c| number(at, c).unwrap_or(0.0) as u64);
            (texts(*one), numbers(*one)).cmp(&(texts(*other), numbers(*other)))
        });
        let rows = kept.into_iter().map(|at| all.rows[at].clone()).collect();
        Ok(Table { columns: all.columns, rows })
    }

    fn common(&self) -> Result<Json, ResultError> {
        let path = self.path.join(COMMON);
        let text = std::fs::read_to_string(&path).map_err(|error| self.io(&path, error))?;
        serde_json::from_str(&text).map_err(|error| self.damaged(&format!("{COMMON}: {error}")))
    }

    fn whole(&self, path: &Path, bytes: &[u8]) -> Result<(), ResultError> {
        let write = || {
            let mut file = WholeFile::create(path)?;
            file.write_all(bytes)?;
            file.finish()
        };
        write().map_err(|error| self.io(path, error))
    }

    fn io(&self, path: &Path, error: std::io::Error) -> ResultError {
        ResultError::Io { path: path.to_path_buf(), error }
    }

    fn damaged(&self, reason: &str) -> ResultError {
        ResultError::Damaged { path: self.path.clone(), reason: reason.to_string() }
    }
}

/// Returns the first difference between two sets of settings.
fn different(there: &Json, here: &Json) -> Option<String> {
    if there["sources"] != here["sources"] {
        let (there, here) = (&there["sources"], &here["sources"]);
        return Some(format!("they are of the build {there}, and this is {here}"));
    }
    let settings = here["settings"].as_object()?;
    let other = settings.iter().find(|(name, value)| there["settings"][name.as_str()] != **value);
    other.map(|(name, value)| {
        format!("they have {name} = {}, and not {value}", there["settings"][name.as_str()])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, u64, u64)]) -> Table {
        let mut table = Table::new(["trace", "policy", "params", "size", "seed", "misses"]);
        for (policy, size, misses) in rows {
            let row = ["t".into(), (*policy).into(), "".into(), (*size).into(), 1u64.into()];
            table.rows.push(row.into_iter().chain([Value::from(*misses)]).collect());
        }
        table
    }

    #[test]
    fn rows_of_all_files_are_read_once_each_and_in_order() {
        let root = tempfile::tempdir().unwrap();
        let folder = SweepFolder::create(root.path(), &json!({"batch": 1}), "a").unwrap();
        let store = |name: &str, rows: &[(&str, u64, u64)]| {
            folder.store(name, &table(rows).parquet_bytes(&[]).unwrap()).unwrap();
        };
        store("0", &[("lru", 20, 5), ("lru", 3, 7)]);
        store("1", &[("arc", 20, 4), ("lru", 20, 5)]);
        assert!(folder.has("0") && !folder.has("2"));
        let expected = table(&[("arc", 20, 4), ("lru", 3, 7), ("lru", 20, 5)]);
        assert_eq!(folder.rows().unwrap(), expected);
        assert_eq!(folder.rows_of_units(&["0".into()]).unwrap().rows.len(), 2);
        store("2", &[("lru", 20, 6)]);
        let error = folder.rows().unwrap_err().to_string();
        assert!(error.contains("different rows for t lru  20 1"), "{error}");
        assert!(error.contains("2.parquet"), "{error}");
    }

    #[test]
    fn other_settings_and_builds_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let create = |batch: u64, sources: &str| {
            let made = SweepFolder::create(root.path(), &json!({ "batch": batch }), sources);
            made.map(drop).map_err(|error| error.to_string())
        };
        create(1, "a").unwrap();
        create(1, "a").unwrap();
        assert!(create(2, "a").unwrap_err().contains("batch = 1, and not 2"));
        assert!(create(1, "b").unwrap_err().contains("\"a\", and this is \"b\""));
        assert!(SweepFolder::open(&root.path().join("none")).is_err());
    }
}
