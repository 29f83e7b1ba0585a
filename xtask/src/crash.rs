//! The crash campaign in release mode: `cargo xtask crash`; with `--reads`, that of reads that go
//! wrong.
//!
//! Runs the engine's test `crash` or `reads`, whose stories are drawn by their seeds; a failure
//! prints the command that tells its story again. `cargo xtask test` runs a few of them. With
//! `--planted`, bugs are planted in the engine, and stories told until each is caught.

use anyhow::{Context, Result, bail};

use crate::test::Line;

/// What to run.
#[derive(Debug, PartialEq, Eq)]
struct Choice {
    seeds: u64,
    sweeps: u64,
    from: u64,
    /// Whether to catch bugs that are planted.
    planted: bool,
    /// Whether reads go wrong, instead of the power.
    reads: bool,
    /// Stories at once, where reads go wrong.
    jobs: u64,
}

/// Runs the campaign; true if nothing failed.
pub fn main(arguments: &[String]) -> Result<bool> {
    let line = line(&choice(arguments)?);
    println!("$ {line}");
    Ok(line.run()?.0)
}

fn choice(arguments: &[String]) -> Result<Choice> {
    let (planted, reads) = (false, false);
    let mut choice = Choice { seeds: 1000, sweeps: 0, from: 0, planted, reads, jobs: 2 };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let number = match word.as_str() {
            "--seeds" => &mut choice.seeds,
            "--sweeps" => &mut choice.sweeps,
            "--from" => &mut choice.from,
            "--jobs" => &mut choice.jobs,
            "--planted" => {
                choice.planted = true;
                continue;
            }
            "--reads" => {
                choice.reads = true;
                continue;
            }
            other => bail!(
                "crash knows --seeds N, --sweeps N, --from SEED, --planted, --reads and --jobs N, \
                 not `{other}`"
            ),
        };
        let text = words.next().with_context(|| format!("{word} needs a number"))?;
        *number = text.parse().with_context(|| format!("{word} {text}: no number"))?;
    }
    Ok(choice)
}

fn line(choice: &Choice) -> Line {
    let test = if choice.reads { "reads" } else { "crash" };
    let cargo = ["cargo", "test", "--release", "-p", "millpond", "--test", test];
    let what: &[&str] =
        if choice.planted { &["--features", "planted", "planted"] } else { &["campaign"] };
    let arguments = ["--", "--nocapture", "--test-threads", "1"];
    let line = Line::new(&[&cargo[..], what, &arguments[..]].concat());
    let (seeds, from) = (choice.seeds.to_string(), choice.from.to_string());
    if choice.reads {
        let jobs = choice.jobs.to_string();
        return line.with("READS_SEEDS", seeds).with("READS_JOBS", jobs).with("READS_FROM", from);
    }
    line.with("CRASH_SEEDS", seeds)
        .with("CRASH_SWEEPS", choice.sweeps.to_string())
        .with("CRASH_FROM", from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(ToString::to_string).collect()
    }

    #[test]
    fn numbers_are_handed_on() {
        let chosen = choice(&words("--seeds 7 --from 3")).unwrap();
        let (planted, reads) = (false, false);
        assert_eq!(chosen, Choice { seeds: 7, sweeps: 0, from: 3, planted, reads, jobs: 2 });
        let text = line(&chosen).to_string();
        assert!(
            text.starts_with("CRASH_SEEDS='7' CRASH_SWEEPS='0' CRASH_FROM='3' cargo"),
            "{text}"
        );
    }

    #[test]
    fn bugs_are_planted_only_if_that_is_asked_for() {
        for (text, is_planted) in [("--seeds 7", false), ("--planted --seeds 7", true)] {
            let line = line(&choice(&words(text)).unwrap()).to_string();
            assert_eq!(line.contains("--features planted planted"), is_planted, "{line}");
        }
    }

    #[test]
    fn reads_that_go_wrong_are_a_campaign_of_their_own() {
        let chosen = choice(&words("--reads --seeds 9 --jobs 16")).unwrap();
        let text = line(&chosen).to_string();
        assert!(
            text.starts_with("READS_SEEDS='9' READS_JOBS='16' READS_FROM='0' cargo test"),
            "{text}"
        );
        assert!(text.contains("--test reads campaign"), "{text}");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["--seeds", "--seeds many", "--from -1", "now"] {
            assert!(choice(&words(text)).is_err(), "{text}");
        }
    }
}
