//! A memory cgroup (version 1) for a process that must make do with little.
//!
//! The user makes a group and may write to it; below it each process gets one of its own, so that
//! page cache that one engine has filled is not charged to the next.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// A group that this process made and entered.
#[derive(Debug)]
pub struct MemoryGroup {
    parent: PathBuf,
    path: PathBuf,
}

impl MemoryGroup {
    /// Makes a group below `parent` that may use `limit` bytes, page cache included, and enters it.
    ///
    /// # Errors
    /// `parent` is no memory cgroup of version 1, or may not be written to.
    pub fn enter(parent: &Path, limit: u64) -> anyhow::Result<MemoryGroup> {
        let what = || {
            format!(
                "{} is no memory cgroup (version 1) that this user may write to",
                parent.display()
            )
        };
        anyhow::ensure!(parent.join("memory.limit_in_bytes").is_file(), what());
        let pid = std::process::id();
        let path = parent.join(format!("millpond-compare-{pid}"));
        std::fs::create_dir(&path).with_context(what)?;
        let group = MemoryGroup { parent: parent.to_path_buf(), path };
        let write =
            |path: PathBuf, text: u64| std::fs::write(path, text.to_string()).with_context(what);
        write(group.path.join("memory.limit_in_bytes"), limit)?;
        write(group.path.join("cgroup.procs"), u64::from(pid))?;
        Ok(group)
    }
}

impl Drop for MemoryGroup {
    /// Back to the parent. What cannot be cleaned up is an empty folder, and no reason to fail.
    fn drop(&mut self) {
        let pid = std::process::id().to_string();
        let _ = std::fs::write(self.parent.join("cgroup.procs"), pid);
        let _ = std::fs::write(self.path.join("memory.force_empty"), "0");
        let _ = std::fs::remove_dir(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_no_cgroup_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = MemoryGroup::enter(folder.path(), 1 << 30).unwrap_err();
        assert!(error.to_string().contains("no memory cgroup"), "{error}");
    }
}
