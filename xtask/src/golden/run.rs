//! Runs the golden tests and the published tables, and rewrites the report that shows them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::agreement::table;
use super::page::{BEGIN, END, replace};
use crate::tree::root;

const PAGE: &str = "docs/reports/fidelity/golden.md";

const USAGE: &str = "\
usage: cargo xtask golden [--quick]

  Runs the golden tests over every trace, then the tables that papers print, and puts the results
  into docs/reports/fidelity/golden.md. Real traces are looked for in traces/ and ../shared/traces/;
  where they are not, their part is skipped and the page stays as it is.

  --quick   short traces only; prints the results and leaves the page alone
";

/// `cargo xtask golden`: returns `true` if every gate held.
pub fn main(arguments: &[String]) -> Result<bool> {
    let mut is_quick = false;
    for argument in arguments {
        match argument.as_str() {
            "--quick" => is_quick = true,
            "--help" | "-h" => {
                print!("{USAGE}");
                return Ok(true);
            }
            other => bail!("golden knows --quick, not `{other}`\n\n{USAGE}"),
        }
    }
    let start = Instant::now();
    let summary = summary_file()?;
    let held = golden_tests(is_quick, &summary)?;
    let lines = std::fs::read_to_string(&summary).unwrap_or_default();
    let text = format!("{}\n{}", table(&lines)?, published_tables(is_quick)?);
    let is_complete = !lines.is_empty() && !text.contains("\nSkipped: ");
    if is_quick || !is_complete || !held {
        println!("{text}");
        let why = match (is_quick, held) {
            (true, _) => "a quick run is not the whole",
            (_, false) => "a golden test failed",
            _ => "some traces are not here",
        };
        println!("{PAGE} stays as it is: {why}");
    } else {
        rewrite(&text)?;
        println!("{PAGE} is up to date");
    }
    println!("golden: {:.0} s", start.elapsed().as_secs_f64());
    Ok(held)
}

/// Returns the path of the golden tests' summary, after deleting an old one.
fn summary_file() -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let directory = target.unwrap_or_else(|| root().join("target"));
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("making {}", directory.display()))?;
    let directory = directory.canonicalize().context("resolving the target directory")?;
    let file = directory.join("golden-summary.jsonl");
    match std::fs::remove_file(&file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", file.display()))
        }
        _ => Ok(file),
    }
}

/// Runs the golden tests with their output passed through; returns `true` if they passed.
fn golden_tests(is_quick: bool, summary: &Path) -> Result<bool> {
    let words = ["test", "--release", "-p", "millpond-lab", "--test", "goldens"];
    let mut command = Command::new("cargo");
    command.args(words).args(["--", "--nocapture"]).env("MILLPOND_GOLDEN_SUMMARY", summary);
    if !is_quick {
        command.env("MILLPOND_GOLDEN", "all");
    }
    let all = if is_quick { "" } else { "MILLPOND_GOLDEN=all " };
    println!("$ {all}cargo {}", words.join(" "));
    let status = command.current_dir(root()).stdin(Stdio::null()).status();
    Ok(status.context("starting cargo")?.success())
}

/// Returns the tables of papers beside ours, as Markdown.
fn published_tables(is_quick: bool) -> Result<String> {
    let mut words = vec!["run", "--release", "-p", "millpond-papers", "--bin", "published"];
    if is_quick {
        words.extend(["--", "--quick"]);
    }
    println!("$ cargo {}", words.join(" "));
    let mut command = Command::new("cargo");
    command.args(&words).current_dir(root()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().context("starting cargo")?;
    if !output.status.success() {
        bail!("the published tables could not be computed: `cargo {}`", words.join(" "));
    }
    String::from_utf8(output.stdout).context("reading the published tables")
}

fn rewrite(text: &str) -> Result<()> {
    let path = root().join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| format!("reading {PAGE}"))?;
    let new = replace(&page, text)
        .with_context(|| format!("{PAGE} needs one line `{BEGIN}` and below it one `{END}`"))?;
    std::fs::write(&path, new).with_context(|| format!("writing {PAGE}"))
}
