//! The machine and the build that made a result.

use std::sync::OnceLock;

use rustix::process::{Resource, getrlimit};
use serde_json::{Value as Json, json};
use xxhash_rust::xxh3::xxh3_64;

/// Returns the machine: operating system, architecture, processor, cores, memory in bytes.
pub fn machine() -> Json {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|l| l.starts_with(name))?;
        Some(line.split(':').nth(1)?.trim().to_string())
    };
    let memory_kib = field(&read("/proc/meminfo"), "MemTotal")
        .and_then(|m| m.split(' ').next()?.parse::<u64>().ok());
    json!({
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
        "cpu": field(&read("/proc/cpuinfo"), "model name"),
        "cores": std::thread::available_parallelism().map(usize::from).unwrap_or(1),
        "memory_bytes": memory_kib.map(|k| k * 1024),
    })
}

/// Returns the bytes of memory that are still available to this process: the machine's free memory,
/// limited by the rest of the address space (`ulimit -v`). `None` if the system does not report
/// either.
pub fn memory_available() -> Option<u64> {
    let free = kib_of("/proc/meminfo", "MemAvailable:");
    match (free, address_space_left()) {
        (Some(free), Some(left)) => Some(free.min(left)),
        (free, left) => free.or(left),
    }
}

/// Reads a number of KiB from a line of a system file, and returns it in bytes.
fn kib_of(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

/// Returns the bytes of address space that this process may still map, or `None` without a limit. A
/// quarter of the rest is left to threads' stacks and the allocator.
fn address_space_left() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    let mapped = kib_of("/proc/self/status", "VmSize:")?;
    let left = limit.saturating_sub(mapped);
    Some(left - left / 4)
}

/// Returns the id of the build: the version and a hash of the running program's file. Another build
/// may give other results, so its rows are never used as rows of this build.
pub fn build_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let program = std::env::current_exe().and_then(std::fs::read);
        let hash = program.map(|bytes| xxh3_64(&bytes)).unwrap_or(0);
        format!("{}-{hash:016x}", env!("CARGO_PKG_VERSION"))
    })
}
