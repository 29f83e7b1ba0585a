//! Instructions of one function, counted by callgrind in a separate process.
//!
//! The process is this program with a hidden command, which prints its results as JSON. callgrind
//! counts only within the function, and per thread, so the work of other threads is excluded.
//! Counts depend on the build and hardly on chance, so there are no rounds.

use std::process::{Command, Stdio};

use millpond_bench::error::BenchError;
use serde_json::Value as Json;

use millpond_cli::program::Failure;
use millpond_cli::program::asked;

/// Settings that make the C library copy by vectors. Otherwise it uses `rep movsb` for copies of
/// some kilobytes, and callgrind counts each byte of those as an instruction.
const TUNABLES: (&str, &str) = (
    "GLIBC_TUNABLES",
    "glibc.cpu.x86_rep_movsb_threshold=1073741824:glibc.cpu.x86_rep_stosb_threshold=1073741824",
);

/// Returns the reason that nothing can be counted here, if there is one.
pub(crate) fn hindrance() -> Option<String> {
    let found = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("valgrind cannot run here: {status}")),
        Err(error) => Some(format!("valgrind cannot be started: {error}")),
    }
}

/// Hardware that callgrind simulates beside counting instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Simulate {
    /// Nothing.
    Nothing,
    /// Branches, and the caches of WATT's processor (an EPYC 7713), independent of this machine,
    /// so that counts can be compared.
    CachesAndBranches,
}

impl Simulate {
    fn flags(self) -> &'static [&'static str] {
        match self {
            Simulate::Nothing => &[],
            Simulate::CachesAndBranches => &[
                "--cache-sim=yes",
                "--branch-sim=yes",
                "--I1=32768,8,64",
                "--D1=32768,8,64",
                "--LL=33554432,16,64",
            ],
        }
    }
}

/// Events that callgrind collected within a function.
pub(crate) struct Collected {
    /// Numbers of events by callgrind's names (`Ir`, `D1mr`, `Bcm` and others).
    events: Vec<(String, u64)>,
    /// JSON that the program printed.
    pub printed: Json,
}

impl Collected {
    /// Returns the total count of the events in `names`.
    pub fn sum(&self, names: &[&str]) -> u64 {
        let own = self.events.iter().filter(|(name, _)| names.contains(&name.as_str()));
        own.map(|(_, count)| count).sum()
    }

    /// Returns a number of the printed JSON, if it is more than 0.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.printed[name].as_f64().filter(|n| *n > 0.0)
    }
}

/// Returns the failure of counting something of `what`.
fn failed(what: &str, why: &str) -> Failure {
    Failure::Partly(format!("instructions of {what} could not be counted: {why}"))
}

/// Runs this program with the given arguments under callgrind and returns the events within
/// `function`. No other function's name may contain that name.
///
/// # Errors
/// The reason that the events of `what` could not be counted, or an interruption by the user.
pub(crate) fn collect(
    what: &str,
    function: &str,
    simulate: Simulate,
    arguments: &[String],
) -> Result<Collected, Failure> {
    let io = |error: std::io::Error| failed(what, &error.to_string());
    let folder = tempfile::tempdir().map_err(io)?;
    let counts = folder.path().join("counts");
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(format!("--toggle-collect=*{function}*"))
        .args(simulate.flags())
        .arg(std::env::current_exe().map_err(io)?)
        .args(arguments)
        .env(TUNABLES.0, TUNABLES.1)
        .output()
        .map_err(io)?;
    if asked() {
        return Err(BenchError::Stopped.into());
    }
    if !output.status.success() {
        return Err(failed(what, String::from_utf8_lossy(&output.stderr).trim()));
    }
    let printed: Option<Json> = serde_json::from_slice(&output.stdout).ok();
    let printed = printed.ok_or_else(|| failed(what, "it did not run"))?;
    let file = std::fs::read_to_string(&counts).map_err(io)?;
    let events = totals(&file).ok_or_else(|| failed(what, "callgrind's file has no totals"))?;
    let collected = Collected { events, printed };
    if collected.sum(&["Ir"]) == 0 {
        return Err(failed(what, &format!("callgrind found no function {function}")));
    }
    Ok(collected)
}

/// Returns the instructions within `function`, divided by the number that this program prints as
/// `events` with these arguments.
///
/// # Errors
/// As [`collect`].
pub(crate) fn per_event(
    what: &str,
    function: &str,
    events: &str,
    arguments: &[String],
) -> Result<f64, Failure> {
    let collected = collect(what, function, Simulate::Nothing, arguments)?;
    let divisor = collected.number(events).ok_or_else(|| failed(what, "it did not run"))?;
    Ok(collected.sum(&["Ir"]) as f64 / divisor)
}

/// Returns the events of a callgrind file, summed over its parts. callgrind omits zeros at the end
/// of a line of totals.
fn totals(file: &str) -> Option<Vec<(String, u64)>> {
    let mut after = file.lines().filter_map(|line| line.strip_prefix("events:"));
    let names = after.next()?.split_whitespace();
    let mut events: Vec<(String, u64)> = names.map(|name| (name.to_string(), 0)).collect();
    let mut parts = file.lines().filter_map(|line| line.strip_prefix("totals:")).peekable();
    parts.peek()?;
    for part in parts {
        let mut counts = part.split_whitespace().peekable();
        counts.peek()?;
        for (at, count) in counts.enumerate() {
            events.get_mut(at)?.1 += count.parse::<u64>().ok()?;
        }
    }
    Some(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_from_callgrind_s_file() {
        let of = |file: &str, names: &[&str]| {
            let events = totals(file)?;
            Some(Collected { events, printed: Json::Null }.sum(names))
        };
        let one = "version: 1\nevents: Ir\nfn=(1) a\n0 5\ntotals: 12345\n";
        assert_eq!(of(one, &["Ir"]), Some(12_345));
        assert_eq!(of("events: Ir\ntotals: 5\ntotals: 7\n", &["Ir"]), Some(12), "two parts");
        let more = "events: Ir Dr D1mr D1mw\ntotals: 100 50 3 2\ntotals: 10 5 1\n";
        assert_eq!(of(more, &["Ir"]), Some(110));
        assert_eq!(of(more, &["D1mr", "D1mw"]), Some(6));
        assert_eq!(of(more, &["ILmr"]), Some(0), "not simulated");
        for wrong in ["", "summary: 5\n", "totals: \n", "totals: many\n"] {
            assert_eq!(of(&format!("events: Ir\n{wrong}"), &["Ir"]), None, "{wrong:?}");
        }
        assert_eq!(of("totals: 5\n", &["Ir"]), None, "of what is not said");
        assert_eq!(of("events: Ir\ntotals: 5 6\n", &["Ir"]), None, "one too many");
    }
}
