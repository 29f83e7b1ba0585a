//! Programs of a comparison: a Python with libCacheSim's wheel, and our release build.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::tree::root;

/// Version of libCacheSim whose figures are published here.
pub const WHEEL: &str = "libcachesim==0.3.5";

/// The Python half, embedded in this program.
const PEER: &str = include_str!("peer.py");

/// Both sides, ready to run.
pub struct Tools {
    python: PathBuf,
    script: PathBuf,
    pub millpond: PathBuf,
    /// Holds traces, the virtual environment and scratch directories.
    pub directory: PathBuf,
}

impl Tools {
    /// Makes the virtual environment on the first call, and our build unless one is given.
    pub fn prepare(millpond: Option<&Path>) -> Result<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root().join("target"), PathBuf::from);
        let directory = target.join("peers");
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("making {}", directory.display()))?;
        let script = directory.join("peer.py");
        std::fs::write(&script, PEER).with_context(|| format!("writing {}", script.display()))?;
        let python = environment(&target.join("peers-venv"))?;
        let millpond = match millpond {
            Some(file) => file.to_path_buf(),
            None => build(&target)?,
        };
        let millpond = millpond
            .canonicalize()
            .with_context(|| format!("{} is not there", millpond.display()))?;
        Ok(Tools { python, script, millpond, directory })
    }

    /// Runs the Python half in `directory` and reads its result.
    pub fn peer(&self, directory: &Path, arguments: &[&str]) -> Result<Value> {
        let output = Command::new(&self.python)
            .arg(&self.script)
            .args(arguments)
            .current_dir(directory)
            .output()
            .with_context(|| format!("starting {}", self.python.display()))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("peer.py {} failed: {}", arguments.join(" "), errors.trim());
        }
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("reading the answer of peer.py {}", arguments.join(" ")))
    }
}

/// Creates a virtual environment with the wheel, if it is missing; returns its Python.
fn environment(directory: &Path) -> Result<PathBuf> {
    let python = directory.join("bin/python");
    let has_wheel = || {
        let check = "import libcachesim, numpy";
        Command::new(&python).args(["-c", check]).output().is_ok_and(|o| o.status.success())
    };
    if has_wheel() {
        return Ok(python);
    }
    eprintln!("making a virtual environment in {} with {WHEEL}", directory.display());
    let place = directory.to_string_lossy().into_owned();
    run(Command::new("python3").args(["-m", "venv", &place]), "python3 -m venv")?;
    let install = ["-m", "pip", "install", "--quiet", WHEEL, "numpy"];
    run(Command::new(&python).args(install), "pip install")?;
    Ok(python)
}

/// Builds Millpond in release mode; returns the program's path.
fn build(target: &Path) -> Result<PathBuf> {
    let arguments = ["build", "--release", "--package", "millpond-cli"];
    run(Command::new("cargo").args(arguments).current_dir(root()), "cargo build")?;
    Ok(target.join("release/millpond"))
}

fn run(command: &mut Command, what: &str) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {what}"))?;
    if !status.success() {
        bail!("{what} failed: {status}");
    }
    Ok(())
}
