//! Folders small enough to be read as a table of contents.

use std::collections::BTreeMap;

use super::components::Components;
use super::violation::Violation;
use crate::tree::Tree;

const RULE: &str = "folder-size";
const FILES_MAX: usize = 22;

/// Folders of sources with too many files, and entries of the map that could shrink or go.
pub fn check(tree: &Tree, components: &Components) -> Vec<Violation> {
    let mut found = Vec::new();
    let counts = counts(tree);
    for (folder, &count) in &counts {
        let entry = components.folders.iter().find(|f| f.path == *folder);
        let allowed = entry.map_or(FILES_MAX, |f| f.files_max.max(FILES_MAX));
        if count > allowed {
            let what = match entry {
                None => format!("{count} files in one folder, {FILES_MAX} are the most: split it"),
                Some(_) => format!("{count} files, but its entry allows {allowed}: split it"),
            };
            found.push(Violation::new(folder, 1, RULE, what));
        }
    }
    for entry in &components.folders {
        let count = counts.get(entry.path.as_str()).copied().unwrap_or(0);
        let what = if count <= FILES_MAX {
            format!("`{}` is gone or small enough: remove its entry", entry.path)
        } else if count < entry.files_max {
            format!("`{}` shrank from {}: write {count}", entry.path, entry.files_max)
        } else if entry.why.trim().is_empty() {
            format!("`{}` is not split, and `why` does not tell the reason", entry.path)
        } else {
            continue;
        };
        found.push(Violation::new(Components::FILE, 1, RULE, what));
    }
    found
}

/// Rust files that lie directly in each folder below `crates/*/src`, without its `mod.rs`.
fn counts(tree: &Tree) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for (path, _) in tree.texts() {
        let Some((folder, name)) = path.rsplit_once('/') else { continue };
        let is_source = folder.starts_with("crates/") && path.contains("/src/");
        if is_source && name.ends_with(".rs") && name != "mod.rs" {
            *counts.entry(folder).or_default() += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found where a folder has `files` files beside its `mod.rs` and a subfolder.
    fn found(files: usize, map: &str) -> Vec<(String, &'static str)> {
        let names: Vec<_> = (0..files).map(|n| format!("crates/a/src/m/f{n}.rs")).collect();
        let others = ["crates/a/src/m/mod.rs", "crates/a/src/m/n/x.rs", "crates/a/tests/m/x.rs"];
        let paths = names.iter().map(String::as_str).chain(others);
        let tree = Tree::of(&paths.map(|path| (path, "")).collect::<Vec<_>>());
        let map = Components::parse(&format!("unsafe_files = []\n[crates]\n{map}")).unwrap();
        check(&tree, &map).into_iter().map(|v| (v.file, v.rule)).collect()
    }

    fn entry(files_max: usize, why: &str) -> String {
        format!("[[folders]]\npath = \"crates/a/src/m\"\nfiles_max = {files_max}\nwhy = \"{why}\"")
    }

    #[test]
    fn twenty_two_files_pass_and_twenty_three_do_not() {
        assert_eq!(found(22, ""), []);
        assert_eq!(found(23, ""), [("crates/a/src/m".to_string(), RULE)]);
    }

    #[test]
    fn a_listed_folder_passes_at_its_size_only() {
        assert_eq!(found(30, &entry(30, "flat")), []);
        assert_eq!(found(31, &entry(30, "flat")), [("crates/a/src/m".to_string(), RULE)]);
    }

    #[test]
    fn an_entry_that_could_shrink_or_go_or_has_no_reason_is_found_in_the_map() {
        let in_map = [(Components::FILE.to_string(), RULE)];
        assert_eq!(found(29, &entry(30, "flat")), in_map);
        assert_eq!(found(22, &entry(30, "flat")), in_map);
        assert_eq!(found(30, &entry(30, " ")), in_map);
    }
}
