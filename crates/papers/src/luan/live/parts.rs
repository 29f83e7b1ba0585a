//! Common parts of the live figures: columns, ratios over sizes, rank correlations (luan 5.7).

use crate::experiment::Grid;
use crate::luan::policies::NAMES;
use millpond_lab::interval::Interval;
use millpond_lab::method::spearman;
use millpond_lab::report::Claim;
use millpond_lab::table::Table;
use millpond_lab::verdict::{above, claim};

pub(super) const AXES: [&str; 2] = ["policy", "size"];
pub(super) const READS: &str = "logical_reads_per_s";

/// Returns all names except these.
pub(super) fn others(without: &[&str]) -> Vec<&'static str> {
    NAMES.iter().filter(|name| !without.contains(name)).copied().collect()
}

/// Returns one policy over another: the geometric mean of the ratios at these sizes.
pub(super) fn over(grid: &Grid, sizes: &[&str], one: &str, other: &str) -> Option<Interval> {
    // All sizes are needed, since a missing one would not count.
    for (policy, size) in sizes.iter().flat_map(|size| [(one, size), (other, size)]) {
        grid.mean(&[policy, size])?;
    }
    let pairs: Vec<_> = sizes.iter().map(|s| (vec![one, *s], vec![other, *s])).collect();
    grid.ratio_over(&pairs)
}

/// Claims that each of `high` has more than each of `low`, over these sizes.
pub(super) fn apart(grid: &Grid, sizes: &[&str], says: &str, high: &[&str], low: &[&str]) -> Claim {
    let mut all: Vec<(String, Option<Interval>)> = Vec::new();
    for one in high {
        let each =
            low.iter().map(|other| (format!("{one} over {other}"), over(grid, sizes, one, other)));
        all.extend(each);
    }
    let named: Vec<_> = all.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    claim(says, &named, above(1.0))
}

/// Returns the rank correlation of two columns over the policies at one size, in rows of one
/// repetition.
pub(super) fn correlation(rows: &Table, size: &str, columns: [&str; 2]) -> Option<f64> {
    let of = |column| -> Option<Vec<f64>> {
        let grid = Grid::of(rows, &AXES, column);
        NAMES.iter().map(|policy| grid.mean(&[policy, size])).collect()
    };
    spearman(&of(columns[0])?, &of(columns[1])?)
}

/// Returns the mean of a number over sizes; `None` if a size has no number.
pub(super) fn mean_over(sizes: &[&str], number: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let all: Option<Vec<f64>> = sizes.iter().map(|size| number(size)).collect();
    Interval::of(&all?).map(|interval| interval.mean)
}
