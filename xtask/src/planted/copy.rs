//! The copy of the tree in which bugs are planted.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::patch::Patch;
use crate::tree::listed;

/// A copy of the tree, and the directory into which it is built.
pub struct TreeCopy {
    pub tree: PathBuf,
    pub target: PathBuf,
}

impl TreeCopy {
    /// Makes `target`/tree a copy of the files under `root`. Equal files stay untouched, so
    /// that cargo compiles only the changes. A written file gets the present time, since cargo
    /// would take code with an older time for compiled.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn of(root: &Path, target: &Path) -> Result<TreeCopy> {
        let copy = TreeCopy { tree: target.join("tree"), target: target.join("build") };
        let files: HashSet<PathBuf> = listed(root)?.into_iter().map(PathBuf::from).collect();
        fs::create_dir_all(&copy.tree)?;
        copy.remove_others(Path::new(""), &files)?;
        for file in &files {
            // A file that was deleted but not yet committed is still listed.
            let Ok(bytes) = fs::read(root.join(file)) else { continue };
            let to = copy.tree.join(file);
            if fs::read(&to).is_ok_and(|there| there == bytes) {
                continue;
            }
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(&to, bytes).with_context(|| format!("writing {}", to.display()))?;
        }
        Ok(copy)
    }

    /// Removes files in `folder` of the copy that are not among `files`.
    fn remove_others(&self, folder: &Path, files: &HashSet<PathBuf>) -> Result<()> {
        for entry in fs::read_dir(self.tree.join(folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.remove_others(&path, files)?;
            } else if !files.contains(&path) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Plants a bug.
    ///
    /// # Errors
    /// If the patch does not apply.
    pub fn apply(&self, patch: &Patch) -> Result<()> {
        self.git_apply(patch, &[])
    }

    /// Removes a planted bug.
    ///
    /// # Errors
    /// If the patch has not been applied.
    pub fn revert(&self, patch: &Patch) -> Result<()> {
        self.git_apply(patch, &["--reverse"])
    }

    fn git_apply(&self, patch: &Patch, options: &[&str]) -> Result<()> {
        let done = Command::new("git")
            .arg("apply")
            .args(options)
            .arg(patch.path())
            .current_dir(&self.tree)
            // The copy is in a folder that git ignores. Git must not treat the copy as a part
            // of the repository around it.
            .env("GIT_CEILING_DIRECTORIES", self.tree.parent().unwrap_or(&self.tree))
            .output()
            .context("git applies patches: install git")?;
        if !done.status.success() {
            let why = String::from_utf8_lossy(&done.stderr);
            bail!("{} does not apply: {}", patch.path(), why.trim());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_follows_the_tree_and_takes_patches() {
        let (root, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let text = "A rule is broken.\n\nCaught by: log\n\ndiff --git a/x.rs b/x.rs\n--- a/x.rs\n\
                    +++ b/x.rs\n@@ -1,3 +1,2 @@\n begin();\n-wait();\n end();\n";
        let (patch, code) = (Patch::parse("no-wait", text).unwrap(), "begin();\nwait();\nend();\n");
        fs::create_dir_all(root.path().join("tests/planted")).unwrap();
        fs::write(root.path().join(patch.path()), text).unwrap();
        fs::write(root.path().join("x.rs"), code).unwrap();
        fs::write(root.path().join("old.rs"), "").unwrap();
        let copy = TreeCopy::of(root.path(), target.path()).unwrap();
        let read = |name: &str| fs::read_to_string(copy.tree.join(name));
        copy.apply(&patch).unwrap();
        assert_eq!(read("x.rs").unwrap(), "begin();\nend();\n");
        assert!(copy.apply(&patch).is_err(), "it is planted already");
        copy.revert(&patch).unwrap();
        assert_eq!(read("x.rs").unwrap(), code);
        // A run that was interrupted left its bug.
        copy.apply(&patch).unwrap();
        fs::remove_file(root.path().join("old.rs")).unwrap();
        TreeCopy::of(root.path(), target.path()).unwrap();
        assert_eq!(read("x.rs").unwrap(), code);
        assert!(read("old.rs").is_err(), "it is not in the tree any more");
    }
}
