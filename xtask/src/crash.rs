//! The crash campaign in release mode: `cargo xtask crash`; with `--reads`, the campaign of
//! failing reads.
//!
//! Runs the engine's test `crash` or `reads`, whose stories are drawn by their seeds; a failure
//! prints the command that repeats its story. `cargo xtask test` runs a few of them. With
//! `--planted`, the campaigns must catch bugs ([`crate::planted`]).

use anyhow::{Context, Result, bail};

use crate::planted;
use crate::test::Line;

/// Options of the campaign.
#[derive(Debug, Default, PartialEq, Eq)]
struct Choice {
    /// Number of stories; `None` for the campaign's default.
    seeds: Option<u64>,
    sweeps: u64,
    from: u64,
    /// Set if the run must catch planted bugs: their names, all of them if there are none.
    planted: Option<Vec<String>>,
    /// Set if reads fail instead of the power.
    reads: bool,
    /// Number of concurrent stories; `None` for the campaign's choice.
    jobs: Option<u64>,
}

/// Default number of stories of a campaign that must find nothing.
const SEEDS: u64 = 1000;

/// Runs the campaign; returns `true` if nothing failed.
pub fn main(arguments: &[String]) -> Result<bool> {
    let choice = choice(arguments)?;
    if let Some(names) = &choice.planted {
        return planted::main(names, choice.seeds);
    }
    let line = line(&choice);
    println!("$ {line}");
    Ok(line.run()?.0)
}

fn choice(arguments: &[String]) -> Result<Choice> {
    let mut choice = Choice::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let number = match word.as_str() {
            "--seeds" => choice.seeds.get_or_insert(0),
            "--sweeps" => &mut choice.sweeps,
            "--from" => &mut choice.from,
            "--jobs" => choice.jobs.get_or_insert(0),
            "--planted" => {
                choice.planted = Some(Vec::new());
                continue;
            }
            "--reads" => {
                choice.reads = true;
                continue;
            }
            other => match &mut choice.planted {
                Some(names) if !other.starts_with('-') => {
                    names.push(other.to_string());
                    continue;
                }
                _ => bail!(
                    "crash knows --seeds N, --sweeps N, --from SEED, --jobs N, --reads and \
                     --planted [BUG]…, not `{other}`"
                ),
            },
        };
        let text = words.next().with_context(|| format!("{word} needs a number"))?;
        *number = text.parse().with_context(|| format!("{word} {text}: no number"))?;
    }
    let only_of_campaigns = (choice.sweeps, choice.from, choice.jobs, choice.reads);
    if choice.planted.is_some() && only_of_campaigns != (0, 0, None, false) {
        bail!("--planted takes names of bugs and --seeds N only: each bug names its campaign");
    }
    Ok(choice)
}

fn line(choice: &Choice) -> Line {
    let test = if choice.reads { "reads" } else { "crash" };
    let cargo = ["cargo", "test", "--release", "-p", "millpond", "--test", test];
    let arguments = ["campaign", "--", "--nocapture", "--test-threads", "1"];
    let line = Line::new(&[&cargo[..], &arguments[..]].concat());
    let [stories, first, jobs] = if choice.reads {
        ["READS_SEEDS", "READS_FROM", "READS_JOBS"]
    } else {
        ["CRASH_SEEDS", "CRASH_FROM", "CRASH_JOBS"]
    };
    let seeds = choice.seeds.unwrap_or(SEEDS);
    let mut line = line.with(stories, seeds.to_string()).with(first, choice.from.to_string());
    if !choice.reads {
        line = line.with("CRASH_SWEEPS", choice.sweeps.to_string());
    }
    if let Some(at_once) = choice.jobs {
        line = line.with(jobs, at_once.to_string());
    }
    line
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
        assert_eq!(chosen, Choice { seeds: Some(7), from: 3, ..Choice::default() });
        let text = line(&chosen).to_string();
        assert!(
            text.starts_with("CRASH_SEEDS='7' CRASH_FROM='3' CRASH_SWEEPS='0' cargo"),
            "{text}"
        );
    }

    #[test]
    fn either_campaign_tells_as_many_stories_at_once_as_it_is_asked_to() {
        for (text, expected) in
            [("--jobs 3", "CRASH_JOBS='3' cargo"), ("--reads --jobs 16", "READS_JOBS='16' cargo")]
        {
            let line = line(&choice(&words(text)).unwrap()).to_string();
            assert!(line.contains(expected), "{line}");
        }
    }

    #[test]
    fn bugs_are_planted_by_their_names() {
        let chosen = choice(&words("--planted no-wait data-lost --seeds 7")).unwrap();
        assert_eq!(chosen.planted, Some(words("no-wait data-lost")));
        assert_eq!(chosen.seeds, Some(7));
        assert_eq!(choice(&words("--planted")).unwrap().planted, Some(Vec::new()));
        for text in ["no-wait", "--planted --reads", "--planted --from 3"] {
            assert!(choice(&words(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn reads_that_go_wrong_are_a_campaign_of_their_own() {
        let chosen = choice(&words("--reads --seeds 9 --jobs 16")).unwrap();
        let text = line(&chosen).to_string();
        assert!(
            text.starts_with("READS_SEEDS='9' READS_FROM='0' READS_JOBS='16' cargo test"),
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
