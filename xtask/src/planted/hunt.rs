//! Building the copy with a bug in it, and running the campaign that must fail.

use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

use super::copy::TreeCopy;
use super::patch::{Campaign, Patch};

/// Outcome of a campaign with a planted bug.
#[derive(PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It failed, in a story or a model, with a message.
    Caught { caught_in: String, by: String },
    /// It passed.
    Missed,
}

/// Characters of a message that the table shows.
const SHOWN: usize = 110;

impl Campaign {
    /// Returns the arguments of `cargo test` that choose the campaign's program.
    fn program(&self) -> &[&str] {
        match self {
            Campaign::Crash | Campaign::Log => &["--release", "--test", "crash"],
            Campaign::Reads => &["--release", "--test", "reads"],
            Campaign::Model(_) => &["--features", "shuttle", "--test", "shuttle_models"],
        }
    }

    /// Returns the filter of the tests to run.
    fn tests(&self) -> String {
        match self {
            Campaign::Crash => "campaign_over_the_engine".to_string(),
            Campaign::Log => "campaign_over_a_store_that_is_nothing_but_its_log".to_string(),
            Campaign::Reads => "campaign_of_reads_under_faults".to_string(),
            Campaign::Model(module) => format!("{module}::"),
        }
    }

    /// Returns the variables that make the campaign long, and end it at the first
    /// failure.
    fn variables(&self, seeds: Option<u64>) -> Vec<(&'static str, String)> {
        let stories = |default: u64| seeds.unwrap_or(default).to_string();
        match self {
            Campaign::Crash => vec![
                ("CRASH_SEEDS", stories(3000)),
                ("CRASH_SWEEPS", "0".to_string()),
                ("CRASH_FAILURES", "1".to_string()),
            ],
            Campaign::Log => vec![
                ("CRASH_SEEDS", stories(21_000)),
                ("CRASH_SWEEPS", "0".to_string()),
                ("CRASH_FAILURES", "1".to_string()),
            ],
            Campaign::Reads => {
                vec![("READS_SEEDS", stories(12_000)), ("READS_FAILURES", "1".to_string())]
            }
            Campaign::Model(_) => vec![("MILLPOND_SCHEDULES", "20".to_string())],
        }
    }
}

/// Builds the copy, in which `patch` is applied, and runs its campaign.
///
/// # Errors
/// If the code does not compile, or no test ran.
pub fn hunt(patch: &Patch, copy: &TreeCopy, seeds: Option<u64>) -> Result<Outcome> {
    let campaign = &patch.campaign;
    let built = cargo(campaign, copy, &["--no-run"]).output().context("starting cargo")?;
    if !built.status.success() {
        bail!("{} does not compile:\n{}", patch.path(), String::from_utf8_lossy(&built.stderr));
    }
    let tests = campaign.tests();
    let run = cargo(campaign, copy, &["--", &tests, "--nocapture", "--test-threads", "1"])
        .envs(campaign.variables(seeds))
        .output()
        .context("starting cargo")?;
    let outcome = judge(&run);
    outcome.with_context(|| format!("hunting {} by `{tests}`", patch.path()))
}

fn cargo(campaign: &Campaign, copy: &TreeCopy, words: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command
        .args(["test", "-p", "millpond"])
        .args(campaign.program())
        .args(words)
        .current_dir(&copy.tree)
        .env("CARGO_TARGET_DIR", &copy.target)
        .env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    command
}

/// Reads the outcome from the tests' output.
fn judge(run: &Output) -> Result<Outcome> {
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    if !out.lines().any(|line| line.starts_with("running ") && line != "running 0 tests") {
        bail!("no test ran: {err}");
    }
    if run.status.success() {
        return Ok(Outcome::Missed);
    }
    let brief = |text: &str| text.trim().replace('|', "/").chars().take(SHOWN).collect();
    let story = out.lines().find_map(|line| {
        // It follows the test's name if it is the first line that the test prints.
        let (before, what) = line.split_once(" FAILED: ")?;
        let (_, seed) = before.rsplit_once("seed ")?;
        Some(Outcome::Caught { caught_in: format!("story {seed}"), by: brief(what) })
    });
    if let Some(story) = story {
        return Ok(story);
    }
    // A model panics in a thread of its test.
    let failed = out.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" FAILED"));
    let test = failed.map_or("", |line| line.trim_end_matches(" ...").trim());
    let mut lines = err.lines().chain(out.lines());
    let panicked = lines.by_ref().any(|line| line.contains("panicked at"));
    let by = if panicked { lines.next().unwrap_or_default() } else { "the process ended" };
    Ok(Outcome::Caught { caught_in: test.to_string(), by: brief(by) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn run(status: i32, out: &str, err: &str) -> Output {
        let status = ExitStatus::from_raw(status << 8);
        Output { status, stdout: out.as_bytes().to_vec(), stderr: err.as_bytes().to_vec() }
    }

    #[test]
    fn a_campaign_that_fails_has_caught_the_bug() {
        let told =
            "running 1 test\ntest campaign ... seed 17 FAILED: a commit | is lost\n  repeat it\n";
        let caught = judge(&run(101, told, "")).unwrap();
        let (caught_in, by) = ("story 17".to_string(), "a commit / is lost".to_string());
        assert_eq!(caught, Outcome::Caught { caught_in, by });
        let (out, err) = (
            "running 2 tests\ntest lock::ranges ... FAILED\n",
            "thread 'x' panicked at a.rs:1:1:\ntwo owners\n",
        );
        let caught = judge(&run(101, out, err)).unwrap();
        let (caught_in, by) = ("lock::ranges".to_string(), "two owners".to_string());
        assert_eq!(caught, Outcome::Caught { caught_in, by });
    }

    #[test]
    fn a_campaign_that_passes_has_missed_it_if_tests_ran() {
        assert_eq!(judge(&run(0, "running 1 test\n", "")).unwrap(), Outcome::Missed);
        assert!(judge(&run(0, "running 0 tests\n", "")).is_err());
    }
}
