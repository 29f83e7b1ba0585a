//! Licences of the packages that a workspace compiles.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use spdx::{Expression, LicenseReq, ParseMode};

/// A package, as cargo describes it.
#[derive(Deserialize, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Described {
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Described>,
}

/// Returns the foreign packages of the workspace at `root` on Linux.
pub fn described(root: &Path) -> Result<Vec<Described>> {
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform"];
    let mut command = Command::new("cargo");
    command.args(arguments).arg("x86_64-unknown-linux-gnu").current_dir(root);
    let output = command.output().context("starting cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).context("reading what cargo metadata printed")?;
    Ok(metadata.packages.into_iter().filter(|package| package.source.is_some()).collect())
}

/// Returns the packages without a licence, or with one that `allowed` does not cover, unless
/// `exceptions` names them.
pub fn judge(packages: &[Described], allowed: &[String], exceptions: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages {
        let Described { name, version, license, .. } = package;
        if exceptions.contains(&name.as_str()) {
            continue;
        }
        let Some(license) = license else {
            found.push(format!("{name} {version} states no licence"));
            continue;
        };
        // Older crates write MIT/Apache-2.0.
        let permits = |req: &LicenseReq| allowed.iter().any(|one| *one == req.to_string());
        match Expression::parse_mode(license, ParseMode::LAX) {
            Ok(expression) if expression.evaluate(permits) => {}
            Ok(_) => found.push(format!(
                "{name} {version} is under {license}: do without, or enter it in supply.toml"
            )),
            Err(error) => found.push(format!("{name} {version}: `{license}`: {error}")),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, license: Option<&str>) -> Described {
        let license = license.map(str::to_string);
        Described { name: name.to_string(), version: "1.0.0".to_string(), license, source: None }
    }

    #[test]
    fn what_is_not_allowed_is_found() {
        let allowed = ["MIT".to_string(), "Apache-2.0 WITH LLVM-exception".to_string()];
        let judged = |license| judge(&[package("a", license)], &allowed, &[]).len();
        assert_eq!(judged(Some("MIT")), 0);
        assert_eq!(judged(Some("MIT/Apache-2.0")), 0);
        assert_eq!(judged(Some("GPL-2.0-only OR MIT")), 0);
        assert_eq!(judged(Some("Apache-2.0 WITH LLVM-exception")), 0);
        assert_eq!(judged(Some("Apache-2.0")), 1);
        assert_eq!(judged(Some("MIT AND GPL-2.0-only")), 1);
        assert_eq!(judged(Some("free for all")), 1);
        assert_eq!(judged(None), 1);
        assert!(judge(&[package("b", None)], &allowed, &["b"]).is_empty());
    }
}
