//! Verdicts on the paper's sentences: policies compared with a bound, or with each other.

use crate::experiment::Grid;
use millpond_lab::interval::Interval;
use millpond_lab::report::{Claim, Line, LinePlot};
#[cfg(test)]
use millpond_lab::table::{Table, Value};
use millpond_lab::verdict::{self, Bounds};

/// Values of policies at one place of a grid whose first axis is the policy.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    grid: &'a Grid,
    /// Labels on the other axes.
    rest: &'a [&'a str],
}

/// A policy's name, and its value.
pub(super) type Values<'a> = Vec<(&'a str, Option<Interval>)>;

impl<'a> At<'a> {
    pub fn new(grid: &'a Grid, rest: &'a [&'a str]) -> At<'a> {
        At { grid, rest }
    }

    fn place<'b>(&self, policy: &'b str) -> Vec<&'b str>
    where
        'a: 'b,
    {
        std::iter::once(policy).chain(self.rest.iter().copied()).collect()
    }

    pub fn of(&self, policy: &str) -> Option<Interval> {
        self.grid.interval(&self.place(policy))
    }

    pub fn mean(&self, policy: &str) -> Option<f64> {
        self.of(policy).map(|value| value.mean)
    }

    /// Returns the difference of two policies, paired by repetition.
    pub fn gap(&self, of: &str, less: &str) -> Option<Interval> {
        self.grid.difference(&self.place(of), &self.place(less))
    }

    /// Returns the values of these policies.
    pub fn all<'b>(&self, policies: &[&'b str]) -> Values<'b> {
        policies.iter().map(|policy| (*policy, self.of(policy))).collect()
    }

    /// Returns the differences of `of` to each of `policies`.
    pub fn gaps<'b>(&self, of: &str, policies: &[&'b str]) -> Values<'b> {
        policies.iter().map(|policy| (*policy, self.gap(of, policy))).collect()
    }

    /// Claims that each of `high` has more than each of `low`.
    pub fn apart(&self, says: &str, high: &[&str], low: &[&str]) -> Claim {
        let pairs: Values = high.iter().flat_map(|of| self.gaps(of, low)).collect();
        let here = format!("{}; against {}", self.listed(high), self.listed(low));
        Claim { here, ..verdict::claim(says, &pairs, verdict::above(0.0)) }
    }

    fn listed(&self, policies: &[&str]) -> String {
        verdict::listed(&self.all(policies))
    }
}

/// Returns bounds around a value printed with one decimal: half a digit on each side.
pub(super) fn about(value: f64) -> Bounds {
    verdict::between(value - 0.05, value + 0.05)
}

/// Returns lines over the numbers on an axis of the grid, one for each policy.
pub(super) fn lines(
    grid: &Grid,
    axis: usize,
    policies: &[&str],
    place: impl Fn(&str, &str) -> Vec<String>,
) -> Vec<Line> {
    let line = |policy: &&str| {
        let mut line = Line { label: (*policy).to_string(), ..Line::default() };
        for label in grid.labels(axis) {
            let place = place(policy, label);
            let place: Vec<&str> = place.iter().map(String::as_str).collect();
            let Some((x, y)) = label.parse().ok().zip(grid.interval(&place)) else { continue };
            line.points.push((x, y.mean));
            line.band.push((y.low, y.high));
        }
        line
    };
    policies.iter().map(line).collect()
}

/// Plots policies over sizes.
pub(super) fn over_sizes(grid: &Grid, title: &str, y: &str, policies: &[&str]) -> LinePlot {
    LinePlot {
        title: title.to_string(),
        x: "pool, frames".to_string(),
        y: y.to_string(),
        lines: lines(grid, 1, policies, |policy, size| vec![policy.into(), size.into()]),
        ..LinePlot::default()
    }
}

/// Makes each row in two repetitions, since one alone decides nothing.
#[cfg(test)]
pub(super) fn twice(rows: &Table) -> Table {
    let mut twice = rows.clone();
    twice.columns.push("repetition".to_string());
    let of =
        |row: &Vec<Value>| [1u64, 2].map(|repetition| [&row[..], &[repetition.into()]].concat());
    twice.rows = rows.rows.iter().flat_map(of).collect();
    twice
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_lab::table::Table;

    #[test]
    fn policies_are_apart_only_if_every_pair_certainly_is() {
        let mut table = Table::new(["policy", "size", "repetition", "hit"]);
        let rows = [("a", 5.0, 6.0), ("b", 4.0, 5.0), ("c", 1.0, 9.0), ("d", 0.0, 0.1)];
        for (policy, first, second) in rows {
            for (repetition, hit) in [(1u64, first), (2, second)] {
                table.rows.push(vec![policy.into(), 10u64.into(), repetition.into(), hit.into()]);
            }
        }
        let grid = Grid::of(&table, &["policy", "size"], "hit");
        let at = At::new(&grid, &["10"]);
        assert_eq!(at.apart("", &["a"], &["b"]).holds, Some(true), "one more in each repetition");
        assert_eq!(at.apart("", &["b"], &["a"]).holds, Some(false));
        assert_eq!(at.apart("", &["a", "b"], &["c"]).holds, None);
        assert_eq!(at.apart("", &["a"], &["x"]).holds, None, "not run");
        let claim = at.apart("", &["a"], &["b"]);
        assert!(claim.here.starts_with("a 5.5") && claim.here.contains("against b 4.5"));
        let plot = over_sizes(&grid, "t", "hits", &["a", "d", "x"]);
        assert_eq!(plot.lines[0].points, [(10.0, 5.5)]);
        assert!(plot.lines[2].points.is_empty());
        let Bounds { low, high } = about(92.6);
        assert!(low < 92.56 && high > 92.64 && high < 92.66);
    }
}
