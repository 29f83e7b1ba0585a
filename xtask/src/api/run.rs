//! Documenting the engine for programs, and comparing the count with the bound.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use super::count::count;
use super::crate_docs::CrateDocs;
use super::examples::without_example;
use super::visit::public_items;
use crate::test::Line;
use crate::tidy::Components;
use crate::tree::{root, target_directory};

/// Variable with the path of the real rustdoc, for which this program stands in.
const RUSTDOC: &str = "XTASK_RUSTDOC";
/// Public items that may be without an example, one a line.
const WITHOUT_EXAMPLE: &str = "xtask/without_example.txt";

/// `cargo xtask api [--list]`: returns `true` if the engine has no more public functions than
/// allowed, and each public item has an example that runs, except those that
/// `xtask/without_example.txt` lists.
pub fn main(arguments: &[String]) -> Result<bool> {
    let list = match arguments {
        [] => false,
        [flag] if flag == "--list" => true,
        _ => bail!("api knows --list, not `{}`", arguments.join(" ")),
    };
    let root = root();
    let most = most(&root)?;
    let target = target_directory(&root);
    let line = line()?;
    println!("$ {line}");
    ensure!(line.run()?.0, "the documentation was not written");
    let path = format!("{target}/doc/millpond.json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let items = public_items(&CrateDocs::parse(&text)?);
    let counts = count(&items);
    let sum: usize = counts.values().sum();
    ensure!(sum > 0, "{path} documents no function: is its format another than the one known?");
    if list {
        print!("{}", table(&counts));
    }
    println!("{}", verdict(sum, most));
    let listed = std::fs::read_to_string(root.join(WITHOUT_EXAMPLE));
    let listed = listed.with_context(|| format!("reading {WITHOUT_EXAMPLE}"))?;
    let complaints = complaints(&without_example(&items), &listed);
    complaints.iter().for_each(|complaint| println!("{complaint}"));
    Ok(sum <= most && complaints.is_empty())
}

/// Returns the limit that the map sets.
fn most(root: &Path) -> Result<usize> {
    let map = Components::FILE;
    let text = std::fs::read_to_string(root.join(map)).with_context(|| format!("reading {map}"))?;
    let components = Components::parse(&text).with_context(|| format!("reading {map}"))?;
    let api = components.api.with_context(|| format!("{map} has no [api] public_functions_max"))?;
    Ok(api.public_functions_max)
}

/// Returns the command that documents the engine; rustdoc checks it and compiles nothing. On a
/// stable compiler its format for programs needs `RUSTC_BOOTSTRAP`. If cargo had that variable too,
/// it would compile all dependencies again. So cargo runs this program as rustdoc: see
/// [`as_rustdoc`].
fn line() -> Result<Line> {
    let own = std::env::current_exe().context("finding the path of this program")?;
    let words = ["cargo", "rustdoc", "-p", "millpond", "--lib", "--quiet"];
    let format = ["--", "-Zunstable-options", "--output-format", "json"];
    let line = Line::new(&[&words[..], &format].concat());
    Ok(line.with("RUSTDOC", own.display().to_string()).with(RUSTDOC, "rustdoc"))
}

/// Runs rustdoc with this program's arguments, if cargo called this program as rustdoc.
pub fn as_rustdoc() -> Option<ExitCode> {
    let rustdoc = std::env::var_os(RUSTDOC)?;
    let arguments = std::env::args_os().skip(1);
    let status = Command::new(rustdoc).args(arguments).env("RUSTC_BOOTSTRAP", "1").status();
    let is_ok = status.is_ok_and(|status| status.success());
    Some(if is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Formats one line per type, those with most methods first.
fn table(counts: &BTreeMap<String, usize>) -> String {
    let mut rows: Vec<_> = counts.iter().collect();
    rows.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
    rows.iter().map(|(name, count)| format!("{count:>5}  {name}\n")).collect()
}

/// Returns a line for each item that has no example and is not listed, or is listed but has one.
fn complaints(missing: &BTreeSet<String>, listed: &str) -> Vec<String> {
    let lines = listed.lines().map(str::trim);
    let listed: BTreeSet<String> =
        lines.filter(|l| !l.is_empty() && !l.starts_with('#')).map(str::to_string).collect();
    let new = missing.difference(&listed).map(|name| {
        format!("example: {name} has none that runs: write one into its documentation")
    });
    let done = listed.difference(missing).map(|name| {
        format!("{WITHOUT_EXAMPLE}: {name} has an example, or is gone: remove the line")
    });
    new.chain(done).collect()
}

fn verdict(sum: usize, most: usize) -> String {
    let map = Components::FILE;
    match sum.cmp(&most) {
        std::cmp::Ordering::Greater => format!(
            "{map}: public-functions: {sum} in the documentation, {most} are the most: hide some; \
             `cargo xtask api --list` shows them by type"
        ),
        std::cmp::Ordering::Equal => format!("api: {sum} public functions and methods"),
        std::cmp::Ordering::Less => format!(
            "api: {sum} public functions and methods; {map} allows {most}: lower it to {sum}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_aligned_and_begins_with_the_largest() {
        let counts = [("a", 2), ("b", 120), ("c", 2)];
        let counts = counts.map(|(name, count)| (name.to_string(), count)).into();
        assert_eq!(table(&counts), "  120  b\n    2  a\n    2  c\n");
    }

    #[test]
    fn the_verdict_tells_what_to_do() {
        assert!(verdict(11, 10).contains("10 are the most"));
        assert_eq!(verdict(10, 10), "api: 10 public functions and methods");
        assert!(verdict(9, 10).ends_with("lower it to 9"));
    }

    #[test]
    fn an_item_without_example_is_listed_or_a_complaint_and_the_list_holds_no_other() {
        let missing = ["A::f", "B"].map(str::to_string).into();
        let found = complaints(&missing, "# data\nB\nC\n");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("A::f") && found[1].contains(": C has an example"));
        assert!(complaints(&missing, "A::f\nB").is_empty());
    }

    #[test]
    fn the_map_of_this_repository_sets_a_bound() {
        assert!(most(&root()).unwrap() > 0);
    }
}
