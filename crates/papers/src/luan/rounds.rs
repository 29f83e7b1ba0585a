//! Hit ratios by round: their plots, and their peak.

use super::policies::NAMES;
use super::said::{At, lines};
use crate::experiment::Grid;
use millpond_lab::report::{LinePlot, Section};
use millpond_lab::table::{Table, Value};

/// Rounds of each loop.
pub(super) const ROUNDS: usize = 10;

/// Draws hit ratios by policy, another axis and round, with one plot and one column of the
/// table for each label of the other axis.
pub(super) fn drawn(grid: &Grid, title: impl Fn(&str) -> String) -> Section {
    let rounds: Vec<String> = (1..=ROUNDS).map(|round| format!("round {round}")).collect();
    let axis = grid_axis(grid);
    let columns = ["policy", axis].into_iter().chain(rounds.iter().map(String::as_str));
    let mut section = Section { table: Table::new(columns), ..Section::default() };
    for label in grid.labels(1) {
        for policy in grid.labels(0) {
            let mean = |round: &str| grid.mean(&[policy, label, round]);
            let rounds: Vec<Value> =
                (1..=ROUNDS).map(|round| mean(&round.to_string()).into()).collect();
            let row = [policy.into(), label.into()];
            section.table.rows.push(row.into_iter().chain(rounds).collect());
        }
        let of = |policy: &str, round: &str| vec![policy.into(), label.into(), round.into()];
        let plot = LinePlot {
            title: title(label),
            x: "round".to_string(),
            y: "hit ratio, %".to_string(),
            lines: lines(grid, 2, &NAMES, of),
            ..LinePlot::default()
        };
        section.plots.push(plot.into());
    }
    section
}

/// Returns the name of the second axis.
fn grid_axis(grid: &Grid) -> &'static str {
    match grid.labels(1).first() {
        Some(label) if label.starts_with(|first: char| first.is_ascii_digit()) => "frames",
        _ => "pool",
    }
}

/// Returns the round from the second on with the highest mean.
pub(super) fn peak(grid: &Grid, policy: &str, label: &str) -> Option<String> {
    let rounds = (2..=ROUNDS).map(|round| round.to_string());
    let mean = |round: String| {
        let mean = At::new(grid, &[label, &round]).mean(policy)?;
        Some((round, mean))
    };
    // Among equals, the first one wins.
    let best = rounds.filter_map(mean).reduce(|a, b| if b.1 > a.1 + 1e-9 { b } else { a });
    best.map(|(round, _)| round)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_the_first_round_of_the_highest() {
        let mut table = Table::new(["policy", "pool", "round", "hit_ratio"]);
        for (round, hit) in [(1u64, 99.0), (2, 5.0), (3, 7.0), (4, 7.0)] {
            table.rows.push(vec!["a".into(), "clean".into(), round.into(), hit.into()]);
        }
        let grid = Grid::of(&table, &["policy", "pool", "round"], "hit_ratio");
        assert_eq!(peak(&grid, "a", "clean").as_deref(), Some("3"));
        assert_eq!(peak(&grid, "b", "clean"), None);
        let section = drawn(&grid, str::to_string);
        assert_eq!((section.table.rows.len(), section.plots.len()), (1, 1));
    }
}
