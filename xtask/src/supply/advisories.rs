//! Known faults of crates: a list in the tree, which `update` makes from RustSec's database.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use semver::{Version, VersionReq};

use super::lock::Package;

/// One advisory. Its line has these fields, separated by tabs: id, crate, kind, versions with the
/// fault mended, versions that never had it. Versions are separated by `;`.
#[derive(Clone, PartialEq, Debug)]
pub struct Advisory {
    pub id: String,
    pub name: String,
    /// `vulnerability`, `unsound`, `unmaintained`, `notice`.
    pub kind: String,
    pub patched: Vec<VersionReq>,
    pub unaffected: Vec<VersionReq>,
}

/// Parses a list of advisories. Lines that start with `#` state its origin.
pub fn parse(text: &str) -> Result<Vec<Advisory>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    lines
        .map(|(at, line)| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [id, name, kind, patched, unaffected] = fields[..] else {
                bail!("line {}: {} fields, five are needed", at + 1, fields.len());
            };
            let reqs = |text: &str| requirements(text).with_context(|| format!("line {}", at + 1));
            Ok(Advisory {
                id: id.to_string(),
                name: name.to_string(),
                kind: kind.to_string(),
                patched: reqs(patched)?,
                unaffected: reqs(unaffected)?,
            })
        })
        .collect()
}

fn requirements(text: &str) -> Result<Vec<VersionReq>> {
    let one = |text: &str| {
        VersionReq::parse(text).with_context(|| format!("`{text}` is no range of versions"))
    };
    text.split(';').filter(|text| !text.is_empty()).map(one).collect()
}

impl Advisory {
    /// Returns `true` if the package's version has the fault.
    fn is_of(&self, package: &Package) -> bool {
        // A range matches pre-releases only if it names one, so they count as the release they
        // precede.
        let Version { major, minor, patch, .. } = package.version;
        let version = Version::new(major, minor, patch);
        let is_within = |reqs: &[VersionReq]| reqs.iter().any(|req| req.matches(&version));
        self.name == package.name && !is_within(&self.patched) && !is_within(&self.unaffected)
    }
}

/// Returns a line for each advisory that applies to `packages` and is not in `accepted` (reasons
/// by id), and for each accepted id that applies to no package.
pub fn judge(
    packages: &[Package],
    advisories: &[Advisory],
    accepted: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut used = Vec::new();
    for advisory in advisories {
        for package in packages.iter().filter(|package| advisory.is_of(package)) {
            if accepted.contains_key(&advisory.id) {
                used.push(&advisory.id);
                continue;
            }
            let Advisory { id, kind, patched, .. } = advisory;
            let mended: Vec<String> = patched.iter().map(ToString::to_string).collect();
            let what = if mended.is_empty() {
                "no version is without it: do without the crate".to_string()
            } else {
                format!("mended in {}: update it", mended.join(" and "))
            };
            found.push(format!("{} {}: {id} ({kind}), {what}", package.name, package.version));
        }
    }
    for (id, why) in accepted {
        if !used.contains(&id) {
            found.push(format!("{id} is accepted ({why}), and nothing has it: remove that"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str) -> Package {
        let version = version.parse().unwrap();
        Package { name: name.to_string(), version, source: None, checksum: None }
    }

    const LIST: &str = "# from\nR-1\ta\tvulnerability\t>=1.2.3, <2.0.0;>=2.1.0\t<1.0.0\n\
                        R-2\tb\tunmaintained\t\t\n";

    #[test]
    fn versions_with_a_fault_are_found() {
        let list = parse(LIST).unwrap();
        let none = BTreeMap::new();
        for (version, is_bad) in [
            ("0.9.0", false),
            ("1.0.0", true),
            ("1.2.2", true),
            ("1.2.3", false),
            ("2.0.0", true),
            ("2.1.0", false),
            ("2.1.0-rc.1", false),
        ] {
            let found = judge(&[package("a", version)], &list, &none);
            assert_eq!(!found.is_empty(), is_bad, "{version}: {found:?}");
        }
        assert!(judge(&[package("c", "1.0.0")], &list, &none).is_empty());
        assert!(judge(&[package("b", "1.0.0")], &list, &none)[0].contains("no version"));
    }

    #[test]
    fn what_is_accepted_must_be_there() {
        let list = parse(LIST).unwrap();
        let accepted = BTreeMap::from([("R-2".to_string(), "tests only".to_string())]);
        assert!(judge(&[package("b", "1.0.0")], &list, &accepted).is_empty());
        assert_eq!(judge(&[], &list, &accepted).len(), 1);
    }

    #[test]
    fn a_list_that_is_none_is_refused() {
        assert!(parse("R-1\ta\n").is_err());
        assert!(parse("R-1\ta\tx\t>=one\t\n").is_err());
    }
}
