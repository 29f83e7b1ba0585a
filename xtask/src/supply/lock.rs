//! Lock files: packages, their versions and their origins.

use anyhow::{Context, Result};
use semver::Version;
use serde::Deserialize;

/// The only allowed origin of code.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// A package of a lock file.
#[derive(Deserialize, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Package {
    pub name: String,
    pub version: Version,
    /// Origin of the package; our own packages have none.
    pub source: Option<String>,
    /// Checksum of the package's archive.
    pub checksum: Option<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Package>,
}

/// Returns the foreign packages in the text of a lock file.
pub fn packages(text: &str) -> Result<Vec<Package>> {
    let lock: Lock = toml::from_str(text).context("reading a lock file")?;
    Ok(lock.package.into_iter().filter(|package| package.source.is_some()).collect())
}

/// Returns the packages of another origin, and those whose archives have no checksum.
pub fn strangers(packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages {
        let Package { name, version, source, checksum } = package;
        if source.as_deref() != Some(REGISTRY) {
            let source = source.as_deref().unwrap_or("nowhere");
            found.push(format!("{name} {version} comes from {source}: take it from crates.io"));
        } else if checksum.is_none() {
            found.push(format!("{name} {version} has no checksum in the lock file: update it"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_from_elsewhere_is_found() {
        let text = format!(
            "version = 4\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n\
             [[package]]\nname = \"a\"\nversion = \"1.2.3\"\nsource = \"{REGISTRY}\"\n\
             checksum = \"12\"\n[[package]]\nname = \"b\"\nversion = \"1.0.0\"\n\
             source = \"git+https://example.org/b\"\n[[package]]\nname = \"c\"\n\
             version = \"1.0.0\"\nsource = \"{REGISTRY}\"\n"
        );
        let packages = packages(&text).unwrap();
        assert_eq!(packages.len(), 3);
        let found = strangers(&packages);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("b 1.0.0 comes from git+"));
        assert!(found[1].starts_with("c 1.0.0 has no checksum"));
    }
}
