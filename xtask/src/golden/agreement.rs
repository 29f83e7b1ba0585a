//! The table policy → oracle → agreement, from the summary of the golden tests.

use anyhow::{Context, Result};
use serde::Deserialize;

/// One gate, as `crates/lab/tests/goldens.rs` reports it.
#[derive(Deserialize)]
struct Line {
    what: String,
    policy: String,
    oracle: String,
    name: String,
    params: String,
    cells: u32,
    exact: u32,
    worst: f64,
    gate: f64,
}

/// Returns the table, from JSON lines.
pub fn table(summary: &str) -> Result<String> {
    let lines = summary.lines().map(serde_json::from_str::<Line>);
    let mut lines: Vec<Line> =
        lines.collect::<Result<_, _>>().context("reading the golden tests' summary")?;
    let mut text = String::from("## Policies and oracles\n\n");
    if lines.is_empty() {
        text.push_str("Skipped: there are no golden results here.\n");
        return Ok(text);
    }
    lines.sort_by(|a, b| (&a.what, &a.policy, &a.oracle).cmp(&(&b.what, &b.policy, &b.oracle)));
    text.push_str(
        "A cell is one trace at one size. Differences and gates are per thousand references; the \
         tests fail beyond the gate.\n\n\
         | policy | counts | oracle | its policy | cells | the same | largest ‰ | gate ‰ |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for line in &lines {
        text.push_str(&row(line));
    }
    let cells: u32 = lines.iter().map(|line| line.cells).sum();
    let exact: u32 = lines.iter().map(|line| line.exact).sum();
    text.push_str(&format!(
        "\n{} comparisons, {cells} cells, {exact} of them the same to the last hit or write.\n",
        lines.len()
    ));
    Ok(text)
}

fn row(line: &Line) -> String {
    let params = if line.params.is_empty() { "" } else { &format!(" `{}`", line.params) };
    let exact = if line.exact == line.cells { "all".to_string() } else { line.exact.to_string() };
    let gate = if line.gate == 0.0 { "exact".to_string() } else { line.gate.to_string() };
    let worst = if line.worst == 0.0 { "0".to_string() } else { format!("{:.2}", line.worst) };
    format!(
        "| `{}` | {} | {} | `{}`{params} | {} | {exact} | {worst} | {gate} |\n",
        line.policy, line.what, line.oracle, line.name, line.cells
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LRU: &str = r#"{"what":"hits","policy":"lru","oracle":"x","name":"lru","params":"",
        "cells":3,"exact":3,"worst":0.0,"gate":0.0}"#;
    const MQ: &str = r#"{"what":"hits","policy":"mq","oracle":"x","name":"mq","params":"life=1",
        "cells":4,"exact":1,"worst":0.25,"gate":0.5}"#;

    #[test]
    fn a_gate_is_a_row_and_the_sum_is_below() {
        let text = table(&[MQ, LRU].map(|l| l.replace('\n', "")).join("\n")).unwrap();
        let rows: Vec<&str> = text.lines().filter(|l| l.starts_with("| `")).collect();
        assert_eq!(rows[0], "| `lru` | hits | x | `lru` | 3 | all | 0 | exact |");
        assert_eq!(rows[1], "| `mq` | hits | x | `mq` `life=1` | 4 | 1 | 0.25 | 0.5 |");
        assert!(text.contains("2 comparisons, 7 cells, 4 of them"));
    }

    #[test]
    fn nothing_measured_says_so_and_garbage_is_an_error() {
        assert!(table("").unwrap().contains("\nSkipped: "));
        assert!(table("not json").is_err());
    }
}
