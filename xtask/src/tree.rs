//! The files of the repository, read once.
//!
//! A check sees the tree as a map from path to text. So its tests can plant a violation in a tree
//! of three lines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Larger files are data, to which no house rule applies.
const TEXT_BYTES_MAX: u64 = 2 << 20;

/// All files that git tracks or would track, with the text of text files.
pub struct Tree {
    paths: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

/// Returns the directory that holds the workspace's `Cargo.toml`.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Returns the directory into which cargo builds.
pub fn target_directory(root: &Path) -> String {
    std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| root.join("target").display().to_string())
}

/// Returns the build directory of the site's generator, which is compiled separately, without
/// optimisation.
pub fn site_target(root: &Path) -> String {
    format!("{}/site/build", target_directory(root))
}

impl Tree {
    /// Reads the tree under `root`.
    pub fn load(root: &Path) -> Result<Self> {
        let mut tree = Tree { paths: BTreeSet::new(), texts: BTreeMap::new() };
        for path in listed(root)? {
            let file = root.join(&path);
            // A file that was deleted but not yet committed is still listed.
            let Ok(metadata) = std::fs::symlink_metadata(&file) else { continue };
            if metadata.is_file() && metadata.len() <= TEXT_BYTES_MAX {
                let bytes = std::fs::read(&file).with_context(|| format!("reading {path}"))?;
                if let Ok(text) = String::from_utf8(bytes) {
                    tree.texts.insert(path.clone(), text);
                }
            }
            tree.paths.insert(path);
        }
        Ok(tree)
    }

    /// Makes a tree for a test.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        Tree {
            paths: files.iter().map(|(path, _)| path.to_string()).collect(),
            texts: files.iter().map(|(p, t)| (p.to_string(), t.to_string())).collect(),
        }
    }

    /// Returns the text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// Returns all text files, in order of path.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the paths of all files, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// Returns `true` if `path` is a file of the tree, or a directory that holds one.
    pub fn holds(&self, path: &str) -> bool {
        let directory = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.paths.contains(path)
            || self
                .paths
                .range(directory.clone()..)
                .next()
                .is_some_and(|p| p.starts_with(&directory))
    }
}

/// Lists the files that git tracks or would track. Without git (an unpacked archive), it lists
/// every file outside build directories.
pub fn listed(root: &Path) -> Result<Vec<String>> {
    let git = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    if let Ok(output) = git
        && output.status.success()
    {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        return Ok(text.split('\0').filter(|p| !p.is_empty()).map(str::to_string).collect());
    }
    let mut found = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        let entries = std::fs::read_dir(&directory)
            .with_context(|| format!("listing {}", directory.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                if !["target", ".git", "results", ".venv"].contains(&name.as_str()) {
                    open.push(entry.path());
                }
            } else if let Ok(path) = entry.path().strip_prefix(root) {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_knows_files_and_their_directories() {
        let tree = Tree::of(&[("docs/a.md", "x"), ("docs-old", "y")]);
        assert!(tree.holds("docs/a.md") && tree.holds("docs") && tree.holds("docs/"));
        assert!(!tree.holds("doc") && !tree.holds("docs/b.md"));
        assert_eq!(tree.text("docs/a.md"), Some("x"));
    }

    #[test]
    fn this_repository_is_found_and_read() {
        let tree = Tree::load(&root()).unwrap();
        assert!(tree.text("Cargo.toml").is_some_and(|t| t.contains("[workspace]")));
        assert!(tree.holds("xtask/src"));
    }
}
