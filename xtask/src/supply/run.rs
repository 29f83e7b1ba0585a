//! `cargo xtask supply`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{advisories, licences, lock, update};
use crate::tree::root;

/// File of the allowed licences and accepted faults.
pub const RULES: &str = "supply.toml";
const LIST: &str = "xtask/advisories.tsv";
/// Folders of all workspaces.
const WORKSPACES: [&str; 5] = [".", "crates/compare", "crates/site", "crates/slate", "fuzz"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    licences: Vec<String>,
    /// Reasons by crate.
    licence_exceptions: BTreeMap<String, String>,
    /// Reasons by advisory.
    accepted_advisories: BTreeMap<String, String>,
}

/// `cargo xtask supply [--update DATABASE]`; returns `true` if there is no fault.
pub fn main(arguments: &[String]) -> Result<bool> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => check(),
        ["--update", database] => {
            let list = update::list(Path::new(database))?;
            let place = root().join(LIST);
            fs::write(&place, &list).with_context(|| format!("writing {}", place.display()))?;
            println!("{} advisories are in {LIST}", advisories::parse(&list)?.len());
            check()
        }
        _ => bail!("supply takes nothing, or --update and the folder of RustSec's database"),
    }
}

/// Checks origins, licences and advisories, and prints each fault; returns `true` if there is
/// none.
fn check() -> Result<bool> {
    let root = root();
    let read =
        |file: &str| fs::read_to_string(root.join(file)).with_context(|| format!("reading {file}"));
    let rules: Rules = toml::from_str(&read(RULES)?).with_context(|| format!("reading {RULES}"))?;
    let list = advisories::parse(&read(LIST)?).with_context(|| format!("reading {LIST}"))?;
    let mut packages = Vec::new();
    for workspace in WORKSPACES {
        let file = format!("{workspace}/Cargo.lock");
        packages.extend(lock::packages(&read(&file)?).with_context(|| file)?);
    }
    packages.sort();
    packages.dedup();
    let mut found = lock::strangers(&packages);
    found.extend(advisories::judge(&packages, &list, &rules.accepted_advisories));
    let mut described = Vec::new();
    for workspace in WORKSPACES {
        match licences::described(&root.join(workspace)) {
            Ok(packages) => described.extend(packages),
            // Without a network, only the crates of the main workspace are certain to be
            // present.
            Err(error) if workspace != "." => {
                println!("supply: licences of {workspace} are left out: {error:#}");
            }
            Err(error) => return Err(error),
        }
    }
    described.sort();
    described.dedup();
    let exceptions: Vec<&str> = rules.licence_exceptions.keys().map(String::as_str).collect();
    found.extend(licences::judge(&described, &rules.licences, &exceptions));
    for line in &found {
        println!("supply: {line}");
    }
    if found.is_empty() {
        println!("supply: {} packages, {} advisories, nothing to say", packages.len(), list.len());
    }
    Ok(found.is_empty())
}
