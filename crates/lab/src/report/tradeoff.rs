//! The read/write trade-off of watt fig. 2: page misses against page writes at one size.

use super::data::TraceData;
use super::html::short;
use super::points::{Point, PointPlot};
use crate::interval::Interval;

/// Returns the plot of one trace at the middle one of the simulated sizes, or `None` without
/// writes. A line joins the settings of one policy.
pub(super) fn tradeoff(trace: &TraceData, labels: &[&str]) -> Option<String> {
    let size = middle_size(trace)?;
    let mut points = Vec::new();
    for line in &trace.lines {
        let (label, id) = (&line.label, &line.id);
        let Some(cell) = line.cells.get(&size) else { continue };
        let means = Interval::of(&cell.misses()).zip(Interval::of(&cell.writes()));
        let Some((misses, writes)) = means else { continue };
        points.push(Point {
            label: label.clone(),
            family: id.clone(),
            at: (misses.mean, writes.mean),
            colour: labels.iter().position(|l| l == label).unwrap_or(0),
        });
    }
    if points.len() < 2 || points.iter().all(|point| point.at.1 == 0.0) {
        return None;
    }
    let plot = PointPlot {
        x: format!("page misses at {} frames", short(size as f64)),
        y: "page writes".to_string(),
        points,
        ..PointPlot::default()
    };
    Some(plot.above() + &plot.svg())
}

fn middle_size(trace: &TraceData) -> Option<u64> {
    let mut sizes: Vec<u64> =
        trace.lines.iter().flat_map(|line| line.cells.keys().copied()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.get(sizes.len() / 2).copied()
}
