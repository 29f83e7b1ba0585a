//! Memory that this process may use: the machine's, or less if a control group limits it.
//!
//! A container sees all of the machine's memory in `/proc/meminfo` and is killed long before it has
//! used it. Its limits are in files of its control group and of every group above, and the lowest
//! counts:
//!
//! - version 2: `memory.max` (the kill) and `memory.high` (the kernel slows the process down to
//!   a crawl) below `/sys/fs/cgroup` and the path that `/proc/self/cgroup` gives with `0::`;
//! - version 1: `memory.limit_in_bytes` below `/sys/fs/cgroup/memory` and the path given with
//!   the controller `memory`. "No limit" is a number near 2⁶³ there.
//!
//! Inside a container, the path is often the one outside, and does not exist. The group's files are
//! then at the root of the mount, so missing files are skipped on the way up. An unreadable file
//! sets no limit: a store must open on systems that have none of this.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Version 1 writes "no limit" as 2⁶³ − 1, rounded down to a page.
const ABSURD: u64 = 1 << 62;

/// Assumed quarter of the limit if neither a limit nor the size of the machine can be found.
const DEFAULT_MEMORY_UNKNOWN: u64 = 256 << 20;

/// Root folders of the system's files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemRoots {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys/fs/cgroup`.
    pub cgroup: PathBuf,
}

impl Default for SystemRoots {
    fn default() -> Self {
        SystemRoots { proc: "/proc".into(), cgroup: "/sys/fs/cgroup".into() }
    }
}

/// The lowest of all limits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryLimit {
    /// The limit in bytes.
    pub bytes: u64,
    /// The file with the limit.
    pub source: PathBuf,
}

impl SystemRoots {
    /// Returns the limit of this process: the lowest of the machine's memory and of the limits of
    /// its control groups. `None` if nothing could be read.
    pub fn memory_limit(&self) -> Option<MemoryLimit> {
        let machine = self.machine_memory();
        machine.into_iter().chain(self.group_limits()).min_by_key(|limit| limit.bytes)
    }

    /// Returns the default memory of a store: a quarter of [`SystemRoots::memory_limit`], or 256
    /// MiB if the limit is unknown.
    ///
    /// It is no more than a quarter because a store is embedded. The program around it has its own
    /// data and may open a second store, and being killed is worse than a miss. It is a quarter
    /// instead of a fixed amount because most users never set it. It is a bound: frames that are
    /// not needed are never touched, unless `prefault` asks for it.
    pub fn default_memory(&self) -> u64 {
        self.memory_limit().map_or(DEFAULT_MEMORY_UNKNOWN, |limit| limit.bytes / 4)
    }

    fn machine_memory(&self) -> Option<MemoryLimit> {
        let source = self.proc.join("meminfo");
        let text = fs::read_to_string(&source).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(MemoryLimit { bytes: kib.checked_mul(1024)?, source })
    }

    fn group_limits(&self) -> Vec<MemoryLimit> {
        let groups = fs::read_to_string(self.proc.join("self/cgroup")).unwrap_or_default();
        let mut limits = Vec::new();
        for line in groups.lines() {
            // hierarchy:controllers:path, and the path may have colons.
            let mut fields = line.splitn(3, ':');
            let (Some(hierarchy), Some(controllers), Some(path)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            if hierarchy == "0" && controllers.is_empty() {
                let files = ["memory.max", "memory.high"];
                limits.extend(limits_above(&self.cgroup, path, &files));
            } else if controllers.split(',').any(|name| name == "memory") {
                let root = self.cgroup.join("memory");
                limits.extend(limits_above(&root, path, &["memory.limit_in_bytes"]));
            }
        }
        limits
    }
}

/// Returns the limits in `files` of the group `path` below `root`, and of every group above it.
fn limits_above(root: &Path, path: &str, files: &[&str]) -> Vec<MemoryLimit> {
    // A group outside of the namespace is shown as `/../other`: the part below the mount counts.
    let names = Path::new(path).components().filter(|c| matches!(c, Component::Normal(_)));
    let inside: PathBuf = names.collect();
    let read = |source: PathBuf| {
        let text = fs::read_to_string(&source).ok()?;
        // "max" means no limit, and is not a number.
        let bytes = text.trim().parse().ok().filter(|bytes| *bytes < ABSURD)?;
        Some(MemoryLimit { bytes, source })
    };
    let groups = inside.ancestors().map(|group| root.join(group));
    groups.flat_map(|group| files.iter().filter_map(move |file| read(group.join(file)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a made-up system of these files.
    fn system(files: &[(&str, &str)]) -> (tempfile::TempDir, SystemRoots) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let roots = SystemRoots { proc: dir.path().join("proc"), cgroup: dir.path().join("cg") };
        (dir, roots)
    }

    fn limit(files: &[(&str, &str)]) -> Option<u64> {
        let (_dir, roots) = system(files);
        roots.memory_limit().map(|limit| limit.bytes)
    }

    const MEMINFO: (&str, &str) =
        ("proc/meminfo", "MemFree: 1 kB\nMemTotal:       1048576 kB\nBuffers: 7 kB\n");
    const MACHINE: u64 = 1 << 30;

    #[test]
    fn without_control_groups_the_machine_is_the_limit() {
        assert_eq!(limit(&[MEMINFO]), Some(MACHINE));
        assert_eq!(limit(&[MEMINFO, ("proc/self/cgroup", "0::/gone\n")]), Some(MACHINE));
        assert_eq!(limit(&[]), None);
        assert_eq!(limit(&[("proc/meminfo", "MemTotal: many kB\n")]), None);
    }

    #[test]
    fn version_2_takes_the_least_limit_on_the_way_up() {
        let groups = ("proc/self/cgroup", "0::/a.slice/b\n");
        let tree = |b: &'static str, a: &'static str, root: &'static str| {
            let files = [
                MEMINFO,
                groups,
                ("cg/a.slice/b/memory.max", b),
                ("cg/a.slice/memory.max", a),
                ("cg/memory.max", root),
            ];
            limit(&files)
        };
        assert_eq!(tree("max\n", "max\n", "max\n"), Some(MACHINE));
        assert_eq!(tree("1000\n", "max\n", "max\n"), Some(1000));
        assert_eq!(tree("1000\n", "500\n", "max\n"), Some(500));
        assert_eq!(tree("max\n", "max\n", "700"), Some(700));
        assert_eq!(tree("99999999999999\n", "\n", "x"), Some(MACHINE));
    }

    #[test]
    fn version_2_s_soft_limit_counts_too() {
        let files = [
            MEMINFO,
            ("proc/self/cgroup", "0::/a\n"),
            ("cg/a/memory.max", "5000"),
            ("cg/a/memory.high", "4000"),
        ];
        let (_dir, roots) = system(&files);
        let found = roots.memory_limit().unwrap();
        assert_eq!((found.bytes, found.source), (4000, roots.cgroup.join("a/memory.high")));
    }

    #[test]
    fn version_1_reads_its_own_files_and_its_absurd_number_is_no_limit() {
        let groups = ("proc/self/cgroup", "5:cpu:/c\n4:hugetlb,memory:/a/b\n1:name=x:/n\n0::/\n");
        let tree = |b: &'static str, root: &'static str| {
            let files = [
                groups,
                ("cg/memory/a/b/memory.limit_in_bytes", b),
                ("cg/memory/memory.limit_in_bytes", root),
                ("cg/c/memory.limit_in_bytes", "1"),
            ];
            limit(&files)
        };
        assert_eq!(tree("9223372036854771712\n", "9223372036854771712\n"), None);
        assert_eq!(tree("2000\n", "9223372036854771712\n"), Some(2000));
        assert_eq!(tree("2000\n", "1500\n"), Some(1500));
    }

    #[test]
    fn a_container_whose_path_is_the_one_outside_finds_the_limit_at_its_root() {
        let path = "0::/docker/0123/with:colon\n";
        let files = [MEMINFO, ("proc/self/cgroup", path), ("cg/memory.max", "3000")];
        assert_eq!(limit(&files), Some(3000));
        let outside = ("proc/self/cgroup", "0::/../../other\n");
        let files = [MEMINFO, outside, ("cg/other/memory.max", "6000"), ("memory.max", "1")];
        assert_eq!(limit(&files), Some(6000));
    }

    #[test]
    fn the_default_is_a_quarter_of_the_limit() {
        let (_dir, roots) = system(&[MEMINFO]);
        assert_eq!(roots.default_memory(), MACHINE / 4);
        let (_dir, nothing) = system(&[]);
        assert_eq!(nothing.default_memory(), 256 << 20);
    }

    #[test]
    fn this_machine_has_a_limit_of_a_plausible_size() {
        if !Path::new("/proc/meminfo").exists() {
            println!("skipped: no /proc/meminfo");
            return;
        }
        let found = SystemRoots::default().memory_limit().unwrap();
        assert!((1 << 20..1 << 50).contains(&found.bytes), "{found:?}");
    }
}
