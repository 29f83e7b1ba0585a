//! Table of the steps' costs: step, compile seconds, run seconds, tests.

use super::outcome::Outcome;

const HEAD: [&str; 4] = ["step", "compile seconds", "run seconds", "tests"];

/// Returns a row per step, and their sum.
fn rows(outcomes: &[Outcome]) -> Vec<[String; 4]> {
    let mut sum = Outcome { name: "sum", ..Outcome::default() };
    let mut rows = Vec::new();
    for outcome in outcomes {
        sum.tests += outcome.tests;
        sum.compile += outcome.compile;
        sum.run += outcome.run;
        rows.push(row(outcome));
    }
    rows.push(row(&sum));
    rows
}

fn row(outcome: &Outcome) -> [String; 4] {
    let name = outcome.name.to_string();
    if outcome.skipped.is_some() {
        return [name, "–".into(), "–".into(), "left out".into()];
    }
    let tests = match (outcome.tests.passed + outcome.tests.failed, outcome.tests.failed) {
        (0, _) => "–".to_string(),
        (all, 0) => all.to_string(),
        (all, failed) => format!("{all}, {failed} failed"),
    };
    let seconds = [outcome.compile, outcome.run].map(|time| format!("{:.1}", time.as_secs_f64()));
    let [compile, run] = seconds;
    [name, compile, run, tests]
}

/// Formats the table for a terminal.
pub fn plain(outcomes: &[Outcome]) -> String {
    let line = |[step, compile, run, tests]: [&str; 4]| {
        format!("{step:<13} {compile:>15} {run:>12} {tests:>15}\n")
    };
    let rows = rows(outcomes);
    let rows = rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
    std::iter::once(line(HEAD)).chain(rows).collect()
}

/// Formats the table as Markdown.
pub fn markdown(outcomes: &[Outcome]) -> String {
    let rows = rows(outcomes);
    let rows = rows.iter().map(|row| format!("| {} |\n", row.join(" | ")));
    format!("| {} |\n|---|---:|---:|---:|\n", HEAD.join(" | ")) + &rows.collect::<String>()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tally::Tally;
    use super::*;

    fn outcomes() -> [Outcome; 3] {
        let tests = Tally { passed: 7, failed: 1, skipped: 2 };
        let (compile, run) = (Duration::from_millis(1500), Duration::from_millis(250));
        [
            Outcome { name: "tests", tests, compile, run, ..Outcome::default() },
            Outcome { name: "format", run, ..Outcome::default() },
            Outcome { name: "loom", skipped: Some("none".into()), ..Outcome::default() },
        ]
    }

    #[test]
    fn the_page_has_a_row_per_step_and_their_sum() {
        let expected = "| step | compile seconds | run seconds | tests |\n|---|---:|---:|---:|\n\
                        | tests | 1.5 | 0.2 | 8, 1 failed |\n| format | 0.0 | 0.2 | – |\n\
                        | loom | – | – | left out |\n| sum | 1.5 | 0.5 | 8, 1 failed |\n";
        assert_eq!(markdown(&outcomes()), expected);
    }

    #[test]
    fn the_columns_of_a_terminal_are_aligned() {
        let table = plain(&outcomes());
        let widths: Vec<_> = table.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths, [58; 5]);
    }
}
