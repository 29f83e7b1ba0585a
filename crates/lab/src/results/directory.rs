//! One result directory: `run.json` (the run) and `rows.parquet` (its rows).
//!
//! Both files appear under their names only once they are complete. A killed run therefore leaves a
//! directory marked as partial, or none.

use std::io::Write;
use std::path::{Path, PathBuf};

use millpond_workload::write::WholeFile;
use serde_json::{Value as Json, json};

use super::error::ResultError;
use super::folder::SweepFolder;
use super::machine::{build_id, machine};
use crate::table::Table;

/// The run behind a result.
#[derive(Clone, Debug)]
pub struct RunInfo {
    /// The command, `sim` for example.
    pub command: String,
    /// The command line that repeats the run.
    pub command_line: String,
    /// Parameters of the run, as one flat object.
    pub params: Json,
}

/// A result directory that is being written, or was written before.
#[derive(Debug)]
pub struct ResultDir {
    path: PathBuf,
}

impl ResultDir {
    /// Opens the directory `root/COMMAND-HASH`, or creates it.
    ///
    /// # Errors
    /// [`ResultError::Io`].
    pub fn create(root: &Path, command: &str, hash: &str) -> Result<ResultDir, ResultError> {
        let path = root.join(format!("{command}-{hash}"));
        std::fs::create_dir_all(&path)
            .map_err(|error| ResultError::Io { path: path.clone(), error })?;
        Ok(ResultDir { path })
    }

    /// Opens an existing directory, or the folder of a sweep.
    ///
    /// # Errors
    /// [`ResultError::Damaged`] if it holds neither `run.json` nor `sweep.json`.
    pub fn open(path: &Path) -> Result<ResultDir, ResultError> {
        if !path.join("run.json").is_file() && !SweepFolder::is(path) {
            return Err(ResultError::Damaged {
                path: path.to_path_buf(),
                reason: "run.json is missing".to_string(),
            });
        }
        Ok(ResultDir { path: path.to_path_buf() })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the run and the rows so far; `complete` is `false` if more rows were to come.
    ///
    /// # Errors
    /// [`ResultError`].
    pub fn write(&self, info: &RunInfo, rows: &Table, complete: bool) -> Result<(), ResultError> {
        rows.write_parquet(&self.path.join("rows.parquet"))?;
        let run = json!({
            "command": info.command,
            "command_line": info.command_line,
            "version": env!("CARGO_PKG_VERSION"),
            "build": build_id(),
            "params": info.params,
            "machine": machine(),
            "rows": rows.rows.len(),
            "complete": complete,
        });
        let path = self.path.join("run.json");
        let io = |error| ResultError::Io { path: path.clone(), error };
        let mut file = WholeFile::create(&path).map_err(io)?;
        serde_json::to_writer_pretty(&mut file, &run).map_err(|e| io(e.into()))?;
        writeln!(file).map_err(io)?;
        file.finish().map_err(io)
    }

    /// Returns the run as stored in `run.json`.
    ///
    /// # Errors
    /// [`ResultError`].
    pub fn run(&self) -> Result<Json, ResultError> {
        if SweepFolder::is(&self.path) {
            return SweepFolder::open(&self.path)?.run();
        }
        let path = self.path.join("run.json");
        let text = std::fs::read_to_string(&path)
            .map_err(|error| ResultError::Io { path: path.clone(), error })?;
        serde_json::from_str(&text).map_err(|e| ResultError::Damaged {
            path: self.path.clone(),
            reason: format!("run.json: {e}"),
        })
    }

    /// Returns the rows as stored in `rows.parquet`.
    ///
    /// # Errors
    /// [`ResultError`].
    pub fn rows(&self) -> Result<Table, ResultError> {
        if SweepFolder::is(&self.path) {
            return SweepFolder::open(&self.path)?.rows();
        }
        Ok(Table::read_parquet(&self.path.join("rows.parquet"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_directory_is_read_back_and_says_whether_it_is_complete() {
        let root = tempfile::tempdir().unwrap();
        let dir = ResultDir::create(root.path(), "sim", "0123").unwrap();
        let mut rows = Table::new(["policy", "hits"]);
        rows.rows.push(vec!["lru".into(), 7u64.into()]);
        let info = RunInfo {
            command: "sim".into(),
            command_line: "millpond sim x".into(),
            params: json!({"seed": 1}),
        };
        dir.write(&info, &rows, false).unwrap();
        let again = ResultDir::open(dir.path()).unwrap();
        assert_eq!(again.rows().unwrap(), rows);
        assert_eq!(again.run().unwrap()["complete"], json!(false));
        assert!(matches!(ResultDir::open(root.path()), Err(ResultError::Damaged { .. })));
    }
}
