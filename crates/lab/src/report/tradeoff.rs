//! The read/write trade-off of watt fig. 2: page misses against page writes at one size.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::curves::{HEIGHT, WIDTH, across, grid, series_class, upwards};
use super::data::{Spread, TraceData};
use super::html::{escaped, short};

/// The plot of one trace, at the size in the middle of those simulated; None without writes.
/// Settings of one policy are joined by a line.
pub(super) fn tradeoff(trace: &TraceData, labels: &[&str]) -> Option<String> {
    let size = middle_size(trace)?;
    let mut points: Vec<(&str, &str, f64, f64)> = Vec::new();
    for (label, id, line) in &trace.lines {
        let Some(cell) = line.get(&size) else { continue };
        if let (Some(misses), Some(writes)) = (Spread::of(&cell.misses), Spread::of(&cell.writes)) {
            points.push((label, id, misses.mean, writes.mean));
        }
    }
    if points.len() < 2 || points.iter().all(|(_, _, _, writes)| *writes == 0.0) {
        return None;
    }
    let x = across(points.iter().map(|p| p.2), false).with_margin(0.06);
    let y = upwards(points.iter().map(|p| p.3)).with_margin(0.06);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Misses against \
         writes\">{}",
        grid(&x, &y, &format!("page misses at {} frames", short(size as f64)), "page writes")
    );
    let mut families: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (_, id, misses, writes) in &points {
        families.entry(id).or_default().push((x.place(*misses), y.place(*writes)));
    }
    for family in families.values().filter(|f| f.len() > 1) {
        let mut path = family.clone();
        path.sort_by(|a, b| a.0.total_cmp(&b.0));
        let path: Vec<String> = path.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = write!(svg, "<polyline class=\"join\" points=\"{}\"/>", path.join(" "));
    }
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for (label, _, misses, writes) in &points {
        let index = labels.iter().position(|l| l == label).unwrap_or(0);
        let (px, py) = (x.place(*misses), y.place(*writes));
        let (anchor, dx) = if px > WIDTH * 0.75 { ("end", -7.0) } else { ("start", 7.0) };
        let width = label.len() as f64 * 6.0;
        let left = if dx < 0.0 { px - width } else { px };
        let text_y = free_place(&mut taken, left, left + width, py + 4.0);
        let _ = write!(
            svg,
            "<g class=\"point {}\"><title>{}: {} misses, {} writes</title>\
             <circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"4.5\"/>\
             <text class=\"tick\" text-anchor=\"{anchor}\" x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
            series_class(index),
            escaped(label),
            short(*misses),
            short(*writes),
            px + dx,
            text_y,
            escaped(label)
        );
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// The height nearest to `wanted` at which a label from `left` to `right` hits no other one.
fn free_place(taken: &mut Vec<(f64, f64, f64)>, left: f64, right: f64, wanted: f64) -> f64 {
    let hits =
        |y: f64| taken.iter().any(|(l, r, at)| left < *r && *l < right && (y - at).abs() < 11.0);
    let tries = (0..24).map(|i| {
        let step = f64::from((i + 1) / 2) * 6.0;
        if i % 2 == 0 { wanted + step } else { wanted - step }
    });
    let y = tries.into_iter().find(|y| !hits(*y)).unwrap_or(wanted);
    taken.push((left, right, y));
    y
}

fn middle_size(trace: &TraceData) -> Option<u64> {
    let mut sizes: Vec<u64> = trace.lines.iter().flat_map(|(_, _, l)| l.keys().copied()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.get(sizes.len() / 2).copied()
}
