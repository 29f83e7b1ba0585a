//! Running one command with its output passed through.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::tally::Tally;
use crate::tree::root;

/// Variable for the number of tests of a program that run at once; Rust's test harness reads it.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// Returns three threads per processor, since tests of stores wait for the disk half of their
/// time.
fn test_threads() -> usize {
    3 * std::thread::available_parallelism().map_or(1, usize::from)
}

/// A command line that a reader can repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Environment variables of the command.
    pub variables: Vec<(&'static str, String)>,
    pub words: Vec<String>,
}

impl Line {
    pub fn new(words: &[&str]) -> Self {
        Line { variables: Vec::new(), words: words.iter().map(ToString::to_string).collect() }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// Returns the command that only compiles, if cargo can separate that from running.
    pub fn compiling(&self) -> Option<Self> {
        let is_test = self.words.starts_with(&["cargo".to_string(), "test".to_string()]);
        if !is_test || self.words.iter().any(|word| word == "--doc") {
            return None;
        }
        let mut line = self.clone();
        let end = line.words.iter().position(|word| word == "--").unwrap_or(line.words.len());
        line.words.insert(end, "--no-run".to_string());
        Some(line)
    }

    /// Returns `true` if the command compiles or checks, and runs nothing that it compiled.
    pub fn only_compiles(&self) -> bool {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        matches!(
            words.as_slice(),
            ["cargo", "build" | "check" | "clippy" | "doc", ..] | ["cargo", "xtask", "api"]
        )
    }

    /// Runs the command in the root. Its errors pass straight through, and tests are counted in
    /// its output.
    pub fn run(&self) -> Result<(bool, Tally)> {
        let (program, arguments) = self.words.split_first().context("an empty command")?;
        let mut command = Command::new(program);
        if std::env::var_os("CI").is_some() {
            // A build that nobody repeats is faster without incremental state.
            command.env("CARGO_INCREMENTAL", "0");
        }
        if std::env::var_os(TEST_THREADS).is_none() {
            command.env(TEST_THREADS, test_threads().to_string());
        }
        let mut child = command
            .args(arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(root())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting `{self}`"))?;
        let mut tally = Tally::default();
        if let Some(output) = child.stdout.take() {
            for line in BufReader::new(output).split(b'\n') {
                let line = String::from_utf8_lossy(&line?).into_owned();
                if let Some(counted) = Tally::of_line(&line) {
                    tally += counted;
                }
                println!("{line}");
            }
        }
        let status = child.wait().with_context(|| format!("waiting for `{self}`"))?;
        Ok((status.success(), tally))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(f, "{name}='{value}' ")?;
        }
        let words = self.words.iter().map(|word| {
            let is_plain = word.chars().all(|c| c.is_alphanumeric() || "-_=+./:".contains(c));
            if is_plain { word.clone() } else { format!("'{word}'") }
        });
        f.write_str(&words.collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_prints_as_a_shell_would_read_it() {
        let line = Line::new(&["cargo", "test", "--test", "shuttle_*"]).with("RUSTFLAGS", "-D x");
        assert_eq!(line.to_string(), "RUSTFLAGS='-D x' cargo test --test 'shuttle_*'");
    }

    #[test]
    fn tests_are_compiled_before_they_run_and_examples_as_they_run() {
        let compiling = |words: &[&str]| Line::new(words).compiling().map(|l| l.to_string());
        let found = compiling(&["cargo", "test", "-p", "x", "name", "--", "--exact"]);
        assert_eq!(found.as_deref(), Some("cargo test -p x name --no-run -- --exact"));
        assert_eq!(compiling(&["cargo", "test", "--doc"]), None);
        assert_eq!(compiling(&["cargo", "clippy"]), None);
        let only = |words: &[&str]| Line::new(words).only_compiles();
        assert!(only(&["cargo", "clippy", "--workspace"]) && only(&["cargo", "xtask", "api"]));
        assert!(!only(&["cargo", "xtask", "crash"]) && !only(&["cargo", "test", "--doc"]));
    }

    #[test]
    fn results_in_the_output_are_counted_and_failure_is_seen() {
        let script = "echo 'test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured'; exit 3";
        let (is_ok, tally) = Line::new(&["sh", "-c", script]).run().unwrap();
        assert!(!is_ok);
        assert_eq!(tally, Tally { passed: 2, failed: 0, skipped: 1 });
    }
}
