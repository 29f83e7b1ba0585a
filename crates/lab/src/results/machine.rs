//! Which machine and which build made a result.

use std::sync::OnceLock;

use serde_json::{Value as Json, json};
use xxhash_rust::xxh3::xxh3_64;

/// The machine: operating system, architecture, processor, cores, memory in bytes.
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

/// Memory that can still be had, in bytes; `None` where the system does not tell.
pub fn memory_available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

/// Tells builds apart: the version and a hash of the running program's file. Another build may
/// give other results, so its rows are never taken for this one's.
pub fn build_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let program = std::env::current_exe().and_then(std::fs::read);
        let hash = program.map(|bytes| xxh3_64(&bytes)).unwrap_or(0);
        format!("{}-{hash:016x}", env!("CARGO_PKG_VERSION"))
    })
}
