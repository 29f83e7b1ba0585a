//! Crates depend downwards only: each `Cargo.toml` against `components.toml`.

use toml::{Table, Value};

use super::components::{Components, Crate};
use super::violation::Violation;
use crate::tree::Tree;

const RULE: &str = "crate-arrow";

/// Reports dependencies on our own crates that the map does not allow, and crates that it does
/// not know.
pub fn check(tree: &Tree, components: &Components) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in tree.texts() {
        let Some(directory) = path.strip_suffix("/Cargo.toml") else { continue };
        let Some((name, declared)) = components.crates.iter().find(|(_, c)| c.path == directory)
        else {
            let what = "this crate is not in components.toml: add [crates.NAME] with what it uses";
            found.push(Violation::new(path, 1, RULE, what));
            continue;
        };
        match text.parse::<Table>() {
            Ok(manifest) => {
                check_manifest(path, text, &manifest, name, declared, components, &mut found);
            }
            Err(error) => found.push(Violation::new(path, 1, RULE, error.message().to_string())),
        }
    }
    found
}

fn check_manifest(
    path: &str,
    text: &str,
    manifest: &Table,
    name: &str,
    declared: &Crate,
    components: &Components,
    found: &mut Vec<Violation>,
) {
    let package = manifest.get("package").and_then(|p| p.get("name")).and_then(Value::as_str);
    if package != Some(declared.package.as_str()) {
        let what = format!("the package is not called `{}`: rename one", declared.package);
        found.push(Violation::new(path, 1, RULE, what));
    }
    for (dependency, is_dev) in dependencies(manifest) {
        let Some((target, _)) = components.crates.iter().find(|(_, c)| c.package == dependency)
        else {
            continue;
        };
        let is_allowed = declared.uses.contains(target)
            || (is_dev && (declared.tests_use.contains(target) || target == name));
        if !is_allowed {
            let line = text.lines().position(|l| l.contains(&dependency)).map_or(1, |at| at + 1);
            let what = format!(
                "`{name}` may not use `{target}`: move the code down, or argue for the arrow in \
                 components.toml"
            );
            found.push(Violation::new(path, line, RULE, what));
        }
    }
}

/// Returns the package names in every dependency table, with `true` for a table of tests only.
fn dependencies(manifest: &Table) -> Vec<(String, bool)> {
    let mut names = Vec::new();
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(Value::as_table) {
        tables.extend(targets.values().filter_map(Value::as_table));
    }
    for table in tables {
        for key in ["dependencies", "build-dependencies", "dev-dependencies"] {
            let Some(entries) = table.get(key).and_then(Value::as_table) else { continue };
            for (name, entry) in entries {
                let package = entry.get("package").and_then(Value::as_str).unwrap_or(name);
                names.push((package.to_string(), key == "dev-dependencies"));
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::violation::brief;
    use super::*;

    const MAP: &str = r#"
unsafe_files = []
[crates.base]
path = "crates/base"
package = "m-base"
uses = []
[crates.lab]
path = "crates/lab"
package = "m-lab"
uses = ["base"]
[crates.cli]
path = "crates/cli"
package = "m-cli"
uses = ["base", "lab"]
"#;

    fn found(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        brief(&check(&Tree::of(&[(path, text)]), &Components::parse(MAP).unwrap()))
    }

    #[test]
    fn an_arrow_that_the_map_allows_passes() {
        let text = "[package]\nname = \"m-lab\"\n[dependencies]\nm-base.workspace = true\n";
        assert_eq!(found("crates/lab/Cargo.toml", text), []);
    }

    #[test]
    fn an_upward_arrow_is_found_at_its_line() {
        let text = "[package]\nname = \"m-base\"\n[dependencies]\nserde = \"1\"\nm-lab = \"1\"\n";
        assert_eq!(found("crates/base/Cargo.toml", text), [(5, RULE)]);
    }

    #[test]
    fn renaming_or_a_target_table_does_not_hide_an_arrow() {
        let text = "[package]\nname = \"m-base\"\n[target.'cfg(loom)'.dependencies]\n\
                    innocent = { package = \"m-lab\", version = \"1\" }\n";
        assert_eq!(found("crates/base/Cargo.toml", text), [(4, RULE)]);
    }

    #[test]
    fn a_crate_that_the_map_does_not_know_is_found() {
        assert_eq!(found("crates/new/Cargo.toml", "[package]\nname = \"m-new\"\n"), [(1, RULE)]);
    }
}
