//! The list of advisories, from a checkout of RustSec's database.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Returns the list from the newest commit of the git directory `database`.
pub fn list(database: &Path) -> Result<String> {
    let newest = git(database, &["log", "-1", "--format=%H of %cs"])?;
    let mut text = format!(
        "# RustSec's advisories (https://github.com/rustsec/advisory-db, CC0), commit {}.\n\
         # Made by `cargo xtask supply --update DATABASE`.\n",
        newest.trim()
    );
    let files = git(database, &["ls-tree", "-r", "--name-only", "HEAD", "crates/"])?;
    let mut lines = Vec::new();
    for file in files.lines().filter(|file| file.ends_with(".md")) {
        let advisory = git(database, &["show", &format!("HEAD:{file}")])?;
        lines.extend(line(&advisory).with_context(|| format!("reading {file}"))?);
    }
    lines.sort();
    for line in lines {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
}

fn git(directory: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output();
    let output = output.context("starting git")?;
    if !output.status.success() {
        bail!("git {arguments:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).context("git printed something that is not text")
}

/// Returns the line of an advisory, or `None` if it was withdrawn.
fn line(text: &str) -> Result<Option<String>> {
    let head = text.split("```toml").nth(1).and_then(|rest| rest.split("```").next());
    let head: toml::Table = head.context("it has no head")?.parse().context("its head")?;
    let advisory = head.get("advisory").and_then(toml::Value::as_table);
    let advisory = advisory.context("it has no [advisory]")?;
    if advisory.contains_key("withdrawn") {
        return Ok(None);
    }
    let field = |name: &str| advisory.get(name).and_then(toml::Value::as_str);
    let versions = |name: &str| {
        let versions = head.get("versions").and_then(|versions| versions.get(name));
        let versions = versions.and_then(toml::Value::as_array).into_iter().flatten();
        versions.filter_map(toml::Value::as_str).map(str::trim).collect::<Vec<_>>().join(";")
    };
    Ok(Some(format!(
        "{}\t{}\t{}\t{}\t{}",
        field("id").context("it has no id")?,
        field("package").context("it names no package")?,
        field("informational").unwrap_or("vulnerability"),
        versions("patched"),
        versions("unaffected"),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advisory_becomes_a_line() {
        let text = "```toml\n[advisory]\nid = \"R-1\"\npackage = \"a\"\n[versions]\n\
                    patched = [\"< 2.0.0, >= 1.2.3\", \">= 2.1\"]\n```\n# Title\n";
        let wanted = "R-1\ta\tvulnerability\t< 2.0.0, >= 1.2.3;>= 2.1\t";
        assert_eq!(line(text).unwrap().as_deref(), Some(wanted));
        assert!(super::super::advisories::parse(wanted).is_ok());
        let withdrawn = text.replace("package", "withdrawn = \"2025-01-01\"\npackage");
        assert_eq!(line(&withdrawn).unwrap(), None);
        assert!(line("no head").is_err());
    }
}
