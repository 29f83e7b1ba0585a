//! Instructions of one function, counted by callgrind over a process of its own.
//!
//! The process is this program with a hidden command, which prints what it did as JSON. callgrind
//! counts within the function only, and by thread: what other threads execute meanwhile is not in
//! the count. Counts are those of one build, and hardly any chance is in them: there are no rounds.

use std::process::{Command, Stdio};

use millpond_bench::error::BenchError;
use serde_json::Value as Json;

use crate::error::Failure;
use crate::interrupt;

/// callgrind counts each byte that `rep movsb` moves as an instruction. The C library takes it for
/// copies of some kilobytes; with these settings it moves them by vectors, as on processors that
/// move bytes slowly.
const TUNABLES: (&str, &str) = (
    "GLIBC_TUNABLES",
    "glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.cpu.x86_rep_stosb_threshold=1073741824",
);

/// Why nothing can be counted here, if that is so.
pub(crate) fn hindrance() -> Option<String> {
    let found = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("valgrind cannot run here: {status}")),
        Err(error) => Some(format!("valgrind cannot be started: {error}")),
    }
}

/// Instructions within `function`, whose name no other function has in its own, divided by the
/// number that this program prints as `events` with these arguments.
///
/// # Errors
/// Why those of `what` could not be counted, or that the user stopped it.
pub(crate) fn per_event(
    what: &str,
    (function, events): (&str, &str),
    arguments: &[String],
) -> Result<f64, Failure> {
    let failed =
        |why: &str| Failure::Partly(format!("instructions of {what} could not be counted: {why}"));
    let io = |error: std::io::Error| failed(&error.to_string());
    let folder = tempfile::tempdir().map_err(io)?;
    let counts = folder.path().join("counts");
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(format!("--toggle-collect=*{function}*"))
        .arg(std::env::current_exe().map_err(io)?)
        .args(arguments)
        .env(TUNABLES.0, TUNABLES.1)
        .output()
        .map_err(io)?;
    if interrupt::asked() {
        return Err(BenchError::Stopped.into());
    }
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim()));
    }
    let printed: Option<Json> = serde_json::from_slice(&output.stdout).ok();
    let divisor = printed.as_ref().and_then(|all| all[events].as_f64());
    let divisor = divisor.filter(|n| *n > 0.0).ok_or_else(|| failed("it did not run"))?;
    let file = std::fs::read_to_string(&counts).map_err(io)?;
    let total = total(&file).ok_or_else(|| failed("callgrind's file has no totals"))?;
    if total == 0 {
        return Err(failed(&format!("callgrind found no function {function}")));
    }
    Ok(total as f64 / divisor)
}

/// The instructions of a file that callgrind wrote.
fn total(file: &str) -> Option<u64> {
    let mut totals = file.lines().filter_map(|line| line.strip_prefix("totals:"));
    let first = totals.next()?.trim().parse().ok()?;
    totals.try_fold(first, |sum: u64, more| Some(sum + more.trim().parse::<u64>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_from_callgrind_s_file() {
        assert_eq!(total("version: 1\nevents: Ir\nfn=(1) a\n0 5\ntotals: 12345\n"), Some(12_345));
        assert_eq!(total("totals: 5\ntotals: 7\n"), Some(12), "of several parts");
        for wrong in ["", "summary: 5\n", "totals: \n", "totals: many\n"] {
            assert_eq!(total(wrong), None, "{wrong:?}");
        }
    }
}
