//! Identity of the publishing process, and a test of whether it still lives.

use std::fs;
use std::path::Path;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::store::stats::json::Object;

/// Identity of a process, which distinguishes it from another one with the same pid. Fields that
/// the system does not report are empty or 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default))]
pub struct Process {
    /// Pid of the process, in its own namespace.
    pub pid: u32,
    /// Start time of the process, in clock ticks since boot.
    pub start_ticks: u64,
    /// Id of the machine's boot.
    pub boot_id: String,
    /// Namespace of pids.
    pub pid_namespace: String,
}

impl Process {
    pub(super) fn write_json(&self, json: &mut String) {
        let mut object = Object::begin(json);
        object.number("pid", u64::from(self.pid));
        object.number("start_ticks", self.start_ticks);
        object.text("boot_id", &self.boot_id);
        object.text("pid_namespace", &self.pid_namespace);
        object.end();
    }

    /// Returns the identity of this process according to `proc`, usually `/proc`.
    pub fn current(proc: &Path) -> Process {
        let pid = std::process::id();
        let boot_id = fs::read_to_string(proc.join("sys/kernel/random/boot_id"));
        let namespace = fs::read_link(proc.join("self/ns/pid"));
        Process {
            pid,
            start_ticks: start_ticks(proc, pid).unwrap_or(0),
            boot_id: boot_id.unwrap_or_default().trim().to_string(),
            pid_namespace: namespace.map_or(String::new(), |n| n.to_string_lossy().into_owned()),
        }
    }

    /// Returns `true` if the process is alive; `None` if this process cannot know.
    pub fn is_alive(&self, proc: &Path) -> Option<bool> {
        let here = Process::current(proc);
        let is_known = here.start_ticks != 0
            && self.start_ticks != 0
            && !here.boot_id.is_empty()
            && !here.pid_namespace.is_empty();
        if !is_known || self.pid_namespace.is_empty() || self.boot_id.is_empty() {
            return None;
        }
        // Another boot id is that of this machine before a restart, or that of another machine.
        if self.boot_id != here.boot_id || self.pid_namespace != here.pid_namespace {
            return None;
        }
        Some(start_ticks(proc, self.pid) == Some(self.start_ticks))
    }
}

/// Returns field 22 of `/proc/PID/stat`. Field 2 is the program's name in parentheses and may hold
/// anything, including parentheses, so fields are counted from the last one. `None` for a process
/// that is gone, or dead and not yet waited for.
pub(in crate::store::stats) fn start_ticks(proc: &Path, pid: u32) -> Option<u64> {
    let text = fs::read(proc.join(pid.to_string()).join("stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X" | "x");
    if is_dead { None } else { fields.nth(18)?.parse().ok() }
}
