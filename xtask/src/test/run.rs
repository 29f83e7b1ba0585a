//! Running the steps, and the sum at the end.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::steps::{DEEP, Step, Work, steps};
use super::tally::Tally;
use crate::tidy;
use crate::tree::root;

/// Which steps to run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Choice {
    only: Vec<String>,
    skip: Vec<String>,
    /// Whether the steps that cost most run, too.
    deep: bool,
    list: bool,
}

/// How a step ended.
struct Outcome {
    name: &'static str,
    /// The command to repeat, if it failed.
    failed: Option<String>,
    /// Why it did not run, if it did not.
    skipped: Option<String>,
    tests: Tally,
    took: Duration,
}

/// `cargo xtask test`: true if nothing failed.
pub fn main(arguments: &[String]) -> Result<bool> {
    let steps = steps(&root());
    let choice = Choice::of(arguments, &steps)?;
    if choice.list {
        for step in &steps {
            let when = if DEEP.contains(&step.name) { " (with --deep, or if named)" } else { "" };
            println!("{:<11} {}{when}", step.name, step.about);
        }
        return Ok(true);
    }
    let chosen = steps.iter().filter(|step| choice.takes(step.name));
    let outcomes: Vec<Outcome> = chosen.map(run_step).collect();
    Ok(report(&outcomes))
}

impl Choice {
    fn of(arguments: &[String], steps: &[Step]) -> Result<Self> {
        let mut choice = Choice::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let list = match argument.as_str() {
                "--list" => {
                    choice.list = true;
                    continue;
                }
                "--deep" => {
                    choice.deep = true;
                    continue;
                }
                "--only" => &mut choice.only,
                "--skip" => &mut choice.skip,
                other => {
                    bail!("test knows --only STEP, --skip STEP, --deep and --list, not `{other}`")
                }
            };
            let names: Vec<&str> = steps.iter().map(|s| s.name).collect();
            match rest.next() {
                Some(name) if names.contains(&name.as_str()) => list.push(name.clone()),
                Some(name) => bail!("no step is called `{name}`; there are {}", names.join(", ")),
                None => bail!("{argument} needs a step: {}", names.join(", ")),
            }
        }
        Ok(choice)
    }

    fn takes(&self, name: &str) -> bool {
        let is_named = |list: &[String]| list.iter().any(|n| n == name);
        let is_asked_for = match self.only.is_empty() {
            true => self.deep || !DEEP.contains(&name),
            false => is_named(&self.only),
        };
        is_asked_for && !is_named(&self.skip)
    }
}

fn run_step(step: &Step) -> Outcome {
    println!("\n── {}: {} ──", step.name, step.about);
    let start = Instant::now();
    let mut outcome = Outcome {
        name: step.name,
        failed: None,
        skipped: None,
        tests: Tally::default(),
        took: Duration::ZERO,
    };
    match &step.work {
        Work::Skip(why) => {
            println!("left out: {why}");
            outcome.skipped = Some(why.clone());
        }
        Work::Tidy => {
            let is_tidy = tidy::check().unwrap_or_else(|error| {
                eprintln!("{error:#}");
                false
            });
            outcome.failed = (!is_tidy).then(|| "cargo xtask tidy".to_string());
        }
        Work::Run(lines) => {
            for line in lines {
                println!("$ {line}");
                // The command's errors are not buffered; ours must come before them.
                std::io::stdout().flush().unwrap_or(());
                let (is_ok, tests) = line.run().unwrap_or_else(|error| {
                    eprintln!("{error:#}");
                    (false, Tally::default())
                });
                outcome.tests += tests;
                if !is_ok {
                    outcome.failed.get_or_insert_with(|| line.to_string());
                }
            }
        }
    }
    outcome.took = start.elapsed();
    if outcome.skipped.is_none() {
        println!("{}: {:.1} s", step.name, outcome.took.as_secs_f64());
    }
    outcome
}

/// Prints the table and, as the last line, the sum of tests and steps.
fn report(outcomes: &[Outcome]) -> bool {
    println!("\n{:<11} {:>8}  {:>7} {:>7} {:>7}", "step", "seconds", "passed", "failed", "skipped");
    let mut sum = Tally::default();
    for outcome in outcomes {
        let total = outcome.tally();
        println!(
            "{:<11} {:>8.1}  {:>7} {:>7} {:>7}",
            outcome.name,
            outcome.took.as_secs_f64(),
            total.passed,
            total.failed,
            total.skipped
        );
        sum += total;
    }
    for outcome in outcomes {
        if let Some(why) = &outcome.skipped {
            println!("{} was left out: {why}", outcome.name);
        }
        if let Some(command) = &outcome.failed {
            println!("{} FAILED; repeat it with: {command}", outcome.name);
        }
    }
    println!("{} passed, {} failed, {} skipped", sum.passed, sum.failed, sum.skipped);
    sum.failed == 0
}

impl Outcome {
    /// Its tests, and the step itself as one more.
    fn tally(&self) -> Tally {
        let mut tally = self.tests;
        match (&self.failed, &self.skipped) {
            (Some(_), _) => tally.failed += 1,
            (None, Some(_)) => tally.skipped += 1,
            (None, None) => tally.passed += 1,
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::super::process::Line;
    use super::*;

    fn choice(words: &[&str]) -> Result<Choice> {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        Choice::of(&words, &steps(&root()))
    }

    #[test]
    fn only_and_skip_choose_steps() {
        let only = choice(&["--only", "tidy", "--only", "format"]).unwrap();
        assert!(only.takes("tidy") && only.takes("format") && !only.takes("clippy"));
        let skip = choice(&["--skip", "clippy"]).unwrap();
        assert!(skip.takes("tidy") && !skip.takes("clippy"));
        let named = choice(&["--only", "compare-all"]).unwrap();
        assert!(named.takes("compare-all") && !skip.takes("compare-all"));
        let deep = choice(&["--deep", "--skip", "clippy"]).unwrap();
        assert!(deep.takes("crash") && deep.takes("tidy") && !deep.takes("clippy"));
    }

    #[test]
    fn unknown_steps_and_flags_are_refused() {
        assert!(choice(&["--only", "nonsense"]).unwrap_err().to_string().contains("tidy"));
        assert!(choice(&["--only"]).is_err());
        assert!(choice(&["--fast"]).is_err());
    }

    #[test]
    fn a_failing_command_fails_its_step_and_the_sum() {
        let work = |script| Work::Run(vec![Line::new(&["sh", "-c", script])]);
        let bad = Step { name: "bad", about: "fails", work: work("exit 1") };
        let good = Step { name: "good", about: "passes", work: work("exit 0") };
        let (bad, good) = (run_step(&bad), run_step(&good));
        assert_eq!(bad.failed.as_deref(), Some("sh -c 'exit 1'"));
        assert_eq!(good.tally(), Tally { passed: 1, failed: 0, skipped: 0 });
        assert!(report(&[good]));
        assert!(!report(&[bad]));
    }

    #[test]
    fn a_command_that_cannot_start_fails_its_step() {
        let work = Work::Run(vec![Line::new(&["no-such-program-anywhere"])]);
        let outcome = run_step(&Step { name: "x", about: "y", work });
        assert_eq!(outcome.tally(), Tally { passed: 0, failed: 1, skipped: 0 });
    }
}
