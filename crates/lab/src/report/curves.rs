//! Miss-ratio curves with bands over the repetitions.

use std::fmt::Write;

use super::axis::Axis;
use super::data::TraceData;
use super::html::{escaped, short};
use crate::interval::Interval;

pub(super) const WIDTH: f64 = 720.0;
pub(super) const HEIGHT: f64 = 400.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;

/// Returns the frame of a plot: grid, ticks, names of the axes.
pub(super) fn grid(x: &Axis, y: &Axis, x_name: &str, y_name: &str) -> String {
    let mut svg = String::new();
    let (left, right, bottom) = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM);
    for (value, label) in y.ticks() {
        let at = y.place(value);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{label}</text>",
            left - 6.0,
            at + 4.0
        );
    }
    for (value, label) in x.ticks() {
        let at = x.place(value);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
             <text class=\"tick\" text-anchor=\"middle\" x=\"{at:.1}\" y=\"{:.1}\">{label}</text>",
            bottom + 16.0
        );
    }
    let _ = write!(
        svg,
        "<text class=\"name\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
         <text class=\"name beside\" text-anchor=\"middle\" transform=\"translate(13 {:.1}) \
         rotate(-90)\">{}</text>",
        (left + right) / 2.0,
        HEIGHT - 8.0,
        escaped(x_name),
        (TOP + bottom) / 2.0,
        escaped(y_name)
    );
    svg
}

/// Returns the horizontal axis of a plot.
pub(super) fn across(values: impl Iterator<Item = f64>, is_log: bool) -> Axis {
    Axis::over(values, is_log, LEFT + 8.0, WIDTH - RIGHT - 8.0)
}

/// Returns the vertical axis of a plot.
pub(super) fn upwards(values: impl Iterator<Item = f64>) -> Axis {
    Axis::over(values, false, HEIGHT - BOTTOM - 6.0, TOP + 6.0)
}

/// Returns the left and right edges of plots.
pub(super) fn left_right() -> (f64, f64) {
    (LEFT, WIDTH - RIGHT)
}

/// Returns the bottom edge of plots.
pub(super) fn bottom() -> f64 {
    HEIGHT - BOTTOM
}

/// Returns the class that gives series number `index` its colour and dash.
pub(super) fn series_class(index: usize) -> String {
    format!("s{} d{}", index % 8, (index / 8) % 4)
}

/// Returns the plot of one trace, or `None` if no policy has two sizes. `labels` fixes each
/// policy's colour over the whole report.
pub(super) fn curves(trace: &TraceData, labels: &[&str]) -> Option<String> {
    if !trace.lines.iter().any(|line| line.cells.len() > 1) {
        return None;
    }
    let cells = || trace.lines.iter().flat_map(|line| line.cells.iter());
    let x = across(cells().map(|(size, _)| *size as f64), true);
    let y = upwards(cells().flat_map(|(_, cell)| cell.miss_ratios()));
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Miss ratio over cache \
         size\">{}",
        grid(&x, &y, "cache size (frames)", "miss ratio")
    );
    for line in &trace.lines {
        let label = &line.label;
        let index = labels.iter().position(|l| l == label).unwrap_or(0);
        let points: Vec<(u64, Interval)> = line
            .cells
            .iter()
            .filter_map(|(size, cell)| Some((*size, Interval::of_rates(&cell.miss_ratios())?)))
            .collect();
        let path = |value: &dyn Fn(&Interval) -> f64| -> Vec<String> {
            let at = |(size, s): &(u64, Interval)| {
                format!("{:.1},{:.1}", x.place(*size as f64), y.place(value(s)))
            };
            points.iter().map(at).collect()
        };
        let class = series_class(index);
        let _ = write!(svg, "<g class=\"series {class}\"><title>{}</title>", escaped(label));
        if points.iter().any(|(_, s)| s.high > s.low) {
            let mut band = path(&|s| s.low);
            band.extend(path(&|s| s.high).into_iter().rev());
            let _ = write!(svg, "<polygon class=\"band\" points=\"{}\"/>", band.join(" "));
        }
        let _ = write!(svg, "<polyline points=\"{}\"/>", path(&|s| s.mean).join(" "));
        for (size, spread) in &points {
            let _ = write!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\"><title>{}, {} frames: {:.4}</title>\
                 </circle>",
                x.place(*size as f64),
                y.place(spread.mean),
                escaped(label),
                short(*size as f64),
                spread.mean
            );
        }
        svg.push_str("</g>");
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// Returns the name of a vertical axis, placed above a plot that has no room beside it.
pub(super) fn name_above(name: &str) -> String {
    format!("<p class=\"hint narrow\">{}</p>", escaped(name))
}

/// Returns the legend: every label with its line.
pub(super) fn legend(labels: &[&str]) -> String {
    legend_of(labels.iter().copied().enumerate())
}

/// Returns a legend of some labels only, each with the number of its colour.
pub(super) fn legend_of<'a>(labels: impl Iterator<Item = (usize, &'a str)>) -> String {
    let mut html = String::from("<ul class=\"legend\">");
    for (index, label) in labels {
        let _ = write!(
            html,
            "<li><svg viewBox=\"0 0 28 10\" class=\"key\"><g class=\"series {}\">\
             <polyline points=\"1,5 27,5\"/></g></svg>{}</li>",
            series_class(index),
            escaped(label)
        );
    }
    html + "</ul>"
}
