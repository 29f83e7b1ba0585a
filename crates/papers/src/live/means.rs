//! Means of a figure's repetitions as a table.

use millpond_lab::interval::Interval;
use millpond_lab::table::{Table, Value};

use crate::experiment::Grid;

/// Returns the mean throughput by some axes, with intervals.
pub(crate) fn means(rows: &Table, axes: &[&str]) -> Table {
    let grid = Grid::of(rows, axes, "throughput_per_s");
    let columns = axes.iter().copied().chain(["per_s", "low", "high"]);
    let mut table = Table::new(columns);
    let mut places: Vec<Vec<&str>> = vec![Vec::new()];
    for axis in 0..axes.len() {
        let longer = places.iter().flat_map(|place| {
            let labels = grid.labels(axis).into_iter();
            labels.map(|label| [place.as_slice(), &[label]].concat()).collect::<Vec<_>>()
        });
        places = longer.collect();
    }
    for place in places {
        let Some(Interval { mean, low, high, .. }) = grid.interval(&place) else { continue };
        let row = place.iter().map(|label| Value::from(*label));
        table.rows.push(row.chain([mean.into(), low.into(), high.into()]).collect());
    }
    table
}
