//! Runs the steps and prints the sum at the end.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::outcome::Outcome;
use super::process::Line;
use super::steps::{DEEP, Step, Work, steps};
use super::table;
use super::tally::Tally;
use crate::tidy;
use crate::tree::root;

/// Selection of the steps to run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Choice {
    only: Vec<String>,
    skip: Vec<String>,
    /// Set to run the most expensive steps too.
    deep: bool,
    list: bool,
    /// Path that receives the table of the steps' costs, as Markdown.
    table: Option<String>,
}

/// `cargo xtask test`: returns `true` if nothing failed.
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
    let is_written = choice.table.is_none_or(|path| {
        let written = std::fs::write(&path, table::markdown(&outcomes));
        written
            .inspect_err(|error| eprintln!("the table was not written to {path}: {error}"))
            .is_ok()
    });
    Ok(report(&outcomes) && is_written)
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
                "--table" => {
                    let file = rest.next().context("--table needs a file")?;
                    choice.table = Some(file.clone());
                    continue;
                }
                "--only" => &mut choice.only,
                "--skip" => &mut choice.skip,
                other => {
                    bail!(
                        "test knows --only STEP, --skip STEP, --deep, --table FILE and --list, not \
                         `{other}`"
                    )
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
    let mut outcome = Outcome { name: step.name, ..Outcome::default() };
    match &step.work {
        Work::Skip(why) => {
            println!("left out: {why}");
            outcome.skipped = Some(why.clone());
            return outcome;
        }
        Work::Tidy => {
            let start = Instant::now();
            let is_tidy = tidy::check().unwrap_or_else(|error| {
                eprintln!("{error:#}");
                false
            });
            outcome.failed = (!is_tidy).then(|| "cargo xtask tidy".to_string());
            outcome.run = start.elapsed();
        }
        Work::RunIf(first, otherwise, lines) => {
            if !timed(first).0 {
                println!("left out: {otherwise}");
                outcome.skipped = Some(otherwise.to_string());
                return outcome;
            }
            lines.iter().for_each(|line| run_line(line, &mut outcome));
        }
        Work::Run(lines) => lines.iter().for_each(|line| run_line(line, &mut outcome)),
    }
    println!("{}: {:.1} s", step.name, outcome.seconds());
    outcome
}

/// Compiles, then runs, so that each has its own time. Runs nothing if compiling fails.
fn run_line(line: &Line, outcome: &mut Outcome) {
    let mut is_ok = true;
    if let Some(compiling) = line.compiling() {
        let (is_compiled, _, time) = timed(&compiling);
        outcome.compile += time;
        is_ok = is_compiled;
    }
    if is_ok {
        let (is_passed, tests, time) = timed(line);
        *(if line.only_compiles() { &mut outcome.compile } else { &mut outcome.run }) += time;
        outcome.tests += tests;
        is_ok = is_passed;
    }
    if !is_ok {
        outcome.failed.get_or_insert_with(|| line.to_string());
    }
}

/// Shows the command and runs it; returns success, tests and time.
fn timed(line: &Line) -> (bool, Tally, Duration) {
    println!("$ {line}");
    // The command's errors are not buffered, and our output must come before them.
    std::io::stdout().flush().unwrap_or(());
    let start = Instant::now();
    let (is_ok, tests) = line.run().unwrap_or_else(|error| {
        eprintln!("{error:#}");
        (false, Tally::default())
    });
    (is_ok, tests, start.elapsed())
}

/// Prints the table and, as the last line, the sum of tests and steps.
fn report(outcomes: &[Outcome]) -> bool {
    print!("\n{}", table::plain(outcomes));
    let mut sum = Tally::default();
    for outcome in outcomes {
        sum += outcome.tally();
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

#[cfg(test)]
mod tests {
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
        assert!(choice(&["--table"]).is_err());
        assert_eq!(choice(&["--table", "a.md"]).unwrap().table.as_deref(), Some("a.md"));
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
    fn what_does_not_compile_is_not_run_and_named_as_it_would_run() {
        let line = Line::new(&["cargo", "test", "--manifest-path", "no-such-manifest.toml"]);
        let mut outcome = Outcome::default();
        run_line(&line, &mut outcome);
        assert_eq!(outcome.failed, Some(line.to_string()));
        assert!(!outcome.compile.is_zero() && outcome.run.is_zero());
    }

    #[test]
    fn a_step_whose_first_command_fails_is_left_out() {
        let line = |script| Line::new(&["sh", "-c", script]);
        let step = |first| Step {
            name: "maybe",
            about: "if it can",
            work: Work::RunIf(line(first), "it cannot", vec![line("exit 1")]),
        };
        let (left_out, failed) = (run_step(&step("exit 1")), run_step(&step("exit 0")));
        assert_eq!(left_out.skipped.as_deref(), Some("it cannot"));
        assert_eq!((left_out.failed, failed.failed.is_some()), (None, true));
    }

    #[test]
    fn a_command_that_cannot_start_fails_its_step() {
        let work = Work::Run(vec![Line::new(&["no-such-program-anywhere"])]);
        let outcome = run_step(&Step { name: "x", about: "y", work });
        assert_eq!(outcome.tally(), Tally { passed: 0, failed: 1, skipped: 0 });
    }
}
