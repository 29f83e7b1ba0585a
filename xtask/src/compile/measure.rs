//! A release build from nothing, with the CPU time of each crate.
//!
//! Cargo runs this program in place of the compiler (`RUSTC_WRAPPER`). It runs the compiler, and
//! adds a line to the file that [`LOG`] names.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

/// Names the file to which the wrapper adds a line for each crate.
const LOG: &str = "MILLPOND_COMPILE_LOG";

/// Cost of a build.
pub struct Cost {
    /// User and system seconds of all compilers.
    pub seconds: f64,
    /// Crates with their seconds, the dearest first.
    pub crates: Vec<(String, f64)>,
}

/// Builds the package in `folder` for release, with an empty target directory in `work`.
///
/// # Errors
/// The build fails, or its log cannot be read.
pub fn build(folder: &Path, work: &Path) -> Result<Cost> {
    let (target, log) = (work.join("target"), work.join("crates.txt"));
    fs::create_dir_all(work).with_context(|| format!("making {}", work.display()))?;
    fs::write(&log, "").with_context(|| format!("writing {}", log.display()))?;
    let before = children_seconds();
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--quiet", "-j1"]).current_dir(folder);
    cargo.env("CARGO_TARGET_DIR", &target).env(LOG, &log);
    let status = cargo.env("RUSTC_WRAPPER", std::env::current_exe()?).status();
    let status = status.context("starting cargo")?;
    if !status.success() {
        bail!("cargo build failed in {}: {status}", folder.display());
    }
    let seconds = children_seconds() - before;
    let text = fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
    Ok(Cost { seconds, crates: parsed(&text) })
}

/// Runs the compiler if cargo started this program for it; `None` otherwise.
pub fn as_compiler() -> Option<ExitCode> {
    let log = std::env::var_os(LOG)?;
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let status = Command::new(arguments.first()?).args(&arguments[1..]).status();
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    let named = words.iter().position(|word| word == "--crate-name");
    if let Some(name) = named.and_then(|at| words.get(at + 1))
        && let Ok(mut file) = OpenOptions::new().append(true).open(log)
    {
        // A line that is lost is missed in a list, and the sum has it.
        let _ = file.write_all(format!("{} {name}\n", children_seconds()).as_bytes());
    }
    let succeeded = status.is_ok_and(|status| status.success());
    Some(if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn parsed(text: &str) -> Vec<(String, f64)> {
    let line = |line: &str| {
        let (seconds, name) = line.split_once(' ')?;
        // Questions that cargo asks the compiler.
        (name != "___").then_some((name.to_string(), seconds.parse().ok()?))
    };
    let mut crates: Vec<(String, f64)> = text.lines().filter_map(line).collect();
    crates.sort_by(|a, b| b.1.total_cmp(&a.1));
    crates
}

/// User and system seconds of the processes that this one has waited for, and theirs; 0 where
/// there is no `/proc`.
fn children_seconds() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may hold spaces: the state is field 3, and the times are 16 and 17.
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |field: usize| fields.get(field - 3).and_then(|n| n.parse::<f64>().ok());
    // Linux tells programs about hundredths of a second on every machine.
    ticks(16).zip(ticks(17)).map_or(0.0, |(user, system)| (user + system) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_sorted_and_questions_left_out() {
        let crates = parsed("0.5 libc\n0.01 ___\n12 millpond\nnonsense\n");
        assert_eq!(crates, [("millpond".to_string(), 12.0), ("libc".to_string(), 0.5)]);
    }
}
