//! A memory limit for this process, by a control group that it creates, enters and leaves.
//!
//! Memory that a process first touches in a group counts for that group, including page cache and
//! shared file mappings. Earlier memory still counts for the group that the process came from. So a
//! run with little memory allocates after [`MemoryGroup::enter`]. No privilege is assumed or
//! acquired. A limit is possible if the process may write to its own group; otherwise the error
//! names the obstacle.
//!
//! - Version 1 (a `memory` line in `/proc/self/cgroup`): a group below the process's own.
//! - Version 2: a group that contains processes cannot have limited groups below. So this process
//!   first moves into a group beside the limited one. That works if the process is alone in its
//!   group and the memory controller is present, as in a scope that the user's service manager
//!   delegates.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use millpond::internals::store::options::memory_limit::SystemRoots;

/// Reason that no memory limit is possible here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// The system has no control group that limits memory.
    #[error("no memory control group is mounted for this process")]
    NoGroup,
    /// The group is of version 2 and has no memory controller.
    #[error("the memory controller is not delegated to {path}: {HOW}")]
    NoController {
        /// The group.
        path: PathBuf,
    },
    /// The group is of version 2 and has other processes.
    #[error("other processes are in {path}: {HOW}")]
    NotAlone {
        /// The group.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("{path} may not be written to ({error})")]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
}

/// Advice for version 2.
const HOW: &str = "begin with `systemd-run --user --scope -p Delegate=yes millpond …`";

/// A group that this process created and entered; dropping the value leaves it.
#[derive(Debug)]
pub struct MemoryGroup {
    /// The group with the limit.
    limited: PathBuf,
    /// Group from which the process came.
    own: PathBuf,
    /// With version 2, the group to which the process moved first.
    beside: Option<PathBuf>,
}

fn refused(path: &Path) -> impl Fn(io::Error) -> LimitError {
    let path = path.to_path_buf();
    move |error| LimitError::Refused { path: path.clone(), error }
}

fn write(path: &Path, text: impl ToString) -> Result<(), LimitError> {
    fs::write(path, text.to_string()).map_err(refused(path))
}

/// Returns the folder of a group below `root`, or `root` itself if the path does not exist, as in a
/// container that sees only its own part.
fn folder(root: &Path, path: &str) -> Option<PathBuf> {
    let below = root.join(path.trim_start_matches('/'));
    [below, root.to_path_buf()].into_iter().find(|at| at.join("cgroup.procs").is_file())
}

impl MemoryGroup {
    /// Creates a group that may use `limit` bytes and no swap, and enters it with all threads.
    ///
    /// # Errors
    /// [`LimitError`]; the process is then still in its old group.
    pub fn enter(limit: u64) -> Result<MemoryGroup, LimitError> {
        MemoryGroup::enter_at(&SystemRoots::default(), limit)
    }

    fn enter_at(roots: &SystemRoots, limit: u64) -> Result<MemoryGroup, LimitError> {
        let groups = fs::read_to_string(roots.proc.join("self/cgroup")).unwrap_or_default();
        let fields = groups.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            fields.next().zip(fields.next())
        });
        let fields: Vec<(&str, &str)> = fields.collect();
        let is_old = |names: &str| names.split(',').any(|name| name == "memory");
        if let Some((_, path)) = fields.iter().find(|(names, _)| is_old(names)) {
            let own = folder(&roots.cgroup.join("memory"), path).ok_or(LimitError::NoGroup)?;
            return MemoryGroup::below(own, None, limit, Names::OLD);
        }
        let new = fields.iter().find(|(names, _)| names.is_empty());
        let own = new.and_then(|(_, path)| folder(&roots.cgroup, path));
        let own = own.ok_or(LimitError::NoGroup)?;
        let beside = step_aside(&own)?;
        MemoryGroup::below(own, beside, limit, Names::NEW)
    }

    fn below(
        own: PathBuf,
        beside: Option<PathBuf>,
        limit: u64,
        names: Names,
    ) -> Result<MemoryGroup, LimitError> {
        let pid = std::process::id();
        let limited = own.join(format!("millpond-limited-{pid}"));
        // From here on, dropping the group removes everything that was created.
        let group = MemoryGroup { limited, own, beside };
        fs::create_dir(&group.limited).map_err(refused(&group.limited))?;
        write(&group.limited.join(names.limit), limit)?;
        // Systems without swap may lack this file.
        let _ = fs::write(group.limited.join(names.swap), names.swap_limit(limit).to_string());
        write(&group.limited.join("cgroup.procs"), pid)?;
        Ok(group)
    }
}

/// Names of the limits in the two versions.
#[derive(Clone, Copy)]
struct Names {
    limit: &'static str,
    swap: &'static str,
    /// `true` if the swap limit covers memory and swap together.
    is_sum: bool,
}

impl Names {
    const OLD: Names =
        Names { limit: "memory.limit_in_bytes", swap: "memory.memsw.limit_in_bytes", is_sum: true };
    const NEW: Names = Names { limit: "memory.max", swap: "memory.swap.max", is_sum: false };

    fn swap_limit(self, limit: u64) -> u64 {
        if self.is_sum { limit } else { 0 }
    }
}

/// Makes room for a limited group below `own`, a group of version 2. Returns the group to which
/// this process moved, if it had to.
fn step_aside(own: &Path) -> Result<Option<PathBuf>, LimitError> {
    let has_memory = |file: &str| {
        let text = fs::read_to_string(own.join(file)).unwrap_or_default();
        text.split_whitespace().any(|name| name == "memory")
    };
    if has_memory("cgroup.subtree_control") {
        return Ok(None);
    }
    if !has_memory("cgroup.controllers") {
        return Err(LimitError::NoController { path: own.to_path_buf() });
    }
    let pid = std::process::id().to_string();
    let procs = own.join("cgroup.procs");
    let others = fs::read_to_string(&procs).map_err(refused(&procs))?;
    if others.split_whitespace().any(|other| other != pid) {
        return Err(LimitError::NotAlone { path: own.to_path_buf() });
    }
    let beside = own.join(format!("millpond-beside-{pid}"));
    fs::create_dir(&beside).map_err(refused(&beside))?;
    let moved = write(&beside.join("cgroup.procs"), &pid);
    let control = own.join("cgroup.subtree_control");
    if let Err(error) = moved.and_then(|()| write(&control, "+memory")) {
        let _ = fs::write(&procs, &pid);
        let _ = fs::remove_dir(&beside);
        return Err(error);
    }
    Ok(Some(beside))
}

impl Drop for MemoryGroup {
    /// Moves the process back to its old group. A leftover is only an empty folder, and no reason
    /// to fail.
    fn drop(&mut self) {
        let pid = std::process::id().to_string();
        if let Some(beside) = &self.beside {
            let _ = fs::write(beside.join("cgroup.procs"), &pid);
            let _ = fs::remove_dir(&self.limited);
            let _ = fs::write(self.own.join("cgroup.subtree_control"), "-memory");
            let _ = fs::write(self.own.join("cgroup.procs"), &pid);
            let _ = fs::remove_dir(beside);
            return;
        }
        let _ = fs::write(self.own.join("cgroup.procs"), &pid);
        // Version 1 keeps a group's page cache until it is removed explicitly.
        let _ = fs::write(self.limited.join("memory.force_empty"), "0");
        let _ = fs::remove_dir(&self.limited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folders and files like the system's, without their effect.
    struct Fake {
        _folder: tempfile::TempDir,
        roots: SystemRoots,
    }

    impl Fake {
        fn new(files: &[(&str, &str)]) -> Fake {
            let folder = tempfile::tempdir().unwrap();
            let roots =
                SystemRoots { proc: folder.path().join("proc"), cgroup: folder.path().join("cg") };
            for (path, text) in files {
                let path = folder.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Fake { _folder: folder, roots }
        }

        fn read(&self, path: &str) -> String {
            let path = path.replace("PID", &std::process::id().to_string());
            fs::read_to_string(self.roots.cgroup.join(path)).unwrap()
        }
    }

    #[test]
    fn version_1_has_a_limited_group_below_the_own_one() {
        let pid = std::process::id().to_string();
        let fake = Fake::new(&[
            ("proc/self/cgroup", "4:cpu,memory:/a\n0::/\n"),
            ("cg/memory/a/cgroup.procs", ""),
        ]);
        let group = MemoryGroup::enter_at(&fake.roots, 4096).unwrap();
        assert_eq!(fake.read("memory/a/millpond-limited-PID/memory.limit_in_bytes"), "4096");
        assert_eq!(fake.read("memory/a/millpond-limited-PID/memory.memsw.limit_in_bytes"), "4096");
        assert_eq!(fake.read("memory/a/millpond-limited-PID/cgroup.procs"), pid);
        drop(group);
        assert_eq!(fake.read("memory/a/cgroup.procs"), pid, "it went back");
    }

    #[test]
    fn with_version_2_the_process_steps_aside_first() {
        let pid = std::process::id().to_string();
        let fake = Fake::new(&[
            ("proc/self/cgroup", "0::/user/scope\n"),
            ("cg/user/scope/cgroup.procs", &format!("{pid}\n")),
            ("cg/user/scope/cgroup.controllers", "cpu memory pids\n"),
            ("cg/user/scope/cgroup.subtree_control", ""),
        ]);
        let group = MemoryGroup::enter_at(&fake.roots, 8192).unwrap();
        assert_eq!(fake.read("user/scope/cgroup.subtree_control"), "+memory");
        assert_eq!(fake.read("user/scope/millpond-beside-PID/cgroup.procs"), pid);
        assert_eq!(fake.read("user/scope/millpond-limited-PID/memory.max"), "8192");
        assert_eq!(fake.read("user/scope/millpond-limited-PID/memory.swap.max"), "0");
        assert_eq!(fake.read("user/scope/millpond-limited-PID/cgroup.procs"), pid);
        drop(group);
        assert_eq!(fake.read("user/scope/cgroup.subtree_control"), "-memory");
        assert_eq!(fake.read("user/scope/cgroup.procs"), pid, "it went back");
    }

    #[test]
    fn what_is_in_the_way_is_said() {
        let said = |files: &[(&str, &str)]| {
            let fake = Fake::new(files);
            MemoryGroup::enter_at(&fake.roots, 4096).unwrap_err().to_string()
        };
        assert!(said(&[]).contains("no memory control group"));
        let scope = ("proc/self/cgroup", "0::/s\n");
        let procs = ("cg/s/cgroup.procs", "1 2\n");
        let text = said(&[scope, procs]);
        assert!(text.contains("not delegated") && text.contains("Delegate=yes"), "{text}");
        let text = said(&[scope, procs, ("cg/s/cgroup.controllers", "memory")]);
        assert!(text.contains("other processes"), "{text}");
    }
}
