//! Bars in groups, with their intervals: one value per policy and workload.

use std::fmt::Write;

use super::axis::Axis;
use super::curves::{HEIGHT, WIDTH, bottom, left_right, legend, name_above, series_class, upwards};
use super::html::{STYLE, escaped, short};
use crate::interval::Interval;

/// Approximate width of a letter of a group's name.
const LETTER: f64 = 6.5;
/// Degrees by which names are turned if they do not fit side by side.
const TURN: f64 = 60.0;

/// A bar with its group, its series, and its value with interval.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// The label below the group.
    pub group: String,
    /// Name of the series in the legend.
    pub series: String,
    /// Height of the bar, with the interval that is drawn as a line.
    pub value: Interval,
}

/// A plot of bars from zero upwards, side by side within each group.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BarPlot {
    /// The title above the plot.
    pub title: String,
    /// A paragraph below the title, as plain text.
    pub note: String,
    /// The name of the vertical axis.
    pub y: String,
    /// The bars; groups and series are in the order of first appearance.
    pub bars: Vec<Bar>,
}

impl BarPlot {
    /// Returns the plot as one self-contained HTML page.
    pub fn render(&self) -> String {
        let title = escaped(&self.title);
        format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <title>{title}</title><style>{STYLE}</style></head><body><main>{}</main></body></html>\n",
            self.figure()
        )
    }

    /// Returns the plot as a figure of a page, with its legend.
    pub(super) fn figure(&self) -> String {
        let (title, note) = (escaped(&self.title), escaped(&self.note));
        let legend = legend(&in_order(self.bars.iter().map(|bar| bar.series.as_str())));
        let svg = self.svg();
        format!(
            "{legend}<figure><figcaption>{title}</figcaption><p class=\"hint\">{note}</p>{}{svg}\
             </figure>",
            name_above(&self.y)
        )
    }

    fn svg(&self) -> String {
        let groups = in_order(self.bars.iter().map(|bar| bar.group.as_str()));
        let series = in_order(self.bars.iter().map(|bar| bar.series.as_str()));
        let y = upwards(self.bars.iter().flat_map(|bar| [bar.value.high, 0.0]));
        let (left, right) = left_right();
        let of_group = (right - left) / groups.len().max(1) as f64;
        let longest = groups.iter().map(|group| group.chars().count()).max().unwrap_or(0);
        let length = longest as f64 * LETTER;
        // Names that would overlap are turned, and have room below.
        let is_turned = length > of_group;
        let height = HEIGHT + if is_turned { length * TURN.to_radians().sin() } else { 0.0 };
        // On a narrow screen letters grow. Turned names are an exception, because their plot
        // scrolls.
        let class = if is_turned { "class=\"turned\" " } else { "" };
        let mut svg = format!(
            "<div class=\"wide\"><svg {class}viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-label=\"{}\">{}",
            escaped(&self.y),
            self.frame(&y)
        );
        let of_bar = of_group * 0.86 / series.len().max(1) as f64;
        for (at, group) in groups.iter().enumerate() {
            let middle = left + (at as f64 + 0.5) * of_group;
            let (x, y, group) = (middle, bottom() + 16.0, escaped(group));
            let place = match is_turned {
                false => format!("text-anchor=\"middle\" x=\"{x:.1}\" y=\"{y:.1}\""),
                true => format!(
                    "text-anchor=\"end\" transform=\"translate({x:.1} {y:.1}) rotate(-{TURN})\""
                ),
            };
            let _ = write!(svg, "<text class=\"tick\" {place}>{group}</text>");
        }
        for bar in &self.bars {
            let place = |of: &[&str], name: &str| of.iter().position(|n| *n == name).unwrap_or(0);
            let (group, turn) = (place(&groups, &bar.group), place(&series, &bar.series));
            let x = left + (group as f64 + 0.07) * of_group + turn as f64 * of_bar;
            svg += &drawn(bar, turn, x, of_bar, &y);
        }
        svg + "</svg></div>"
    }

    fn frame(&self, y: &Axis) -> String {
        let (left, right) = left_right();
        let mut svg = String::new();
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
        let _ = write!(
            svg,
            "<text class=\"name beside\" text-anchor=\"middle\" transform=\"translate(13 {:.1}) \
             rotate(-90)\">{}</text>",
            HEIGHT / 2.0,
            escaped(&self.y)
        );
        svg
    }
}

fn drawn(bar: &Bar, colour: usize, x: f64, width: f64, y: &Axis) -> String {
    let (top, base) = (y.place(bar.value.mean), y.place(0.0));
    let middle = x + width / 2.0;
    format!(
        "<g class=\"bar {}\"><title>{}, {}: {} ({} to {})</title>\
         <rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>\
         <line x1=\"{middle:.1}\" x2=\"{middle:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/></g>",
        series_class(colour),
        escaped(&bar.group),
        escaped(&bar.series),
        short(bar.value.mean),
        short(bar.value.low),
        short(bar.value.high),
        width * 0.9,
        (base - top).max(0.0),
        y.place(bar.value.low),
        y.place(bar.value.high)
    )
}

/// Returns the names without repetitions, in order of first appearance.
fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_stands_in_its_group_with_its_interval() {
        let bar = |group: &str, series: &str, mean: f64| Bar {
            group: group.to_string(),
            series: series.to_string(),
            value: Interval { mean, low: mean * 0.9, high: mean * 1.1, runs: 3 },
        };
        let plot = BarPlot {
            title: "a<b".to_string(),
            bars: vec![bar("ycsb", "lru", 2.0), bar("ycsb", "watt", 3.0), bar("tpcc", "lru", 1.0)],
            ..BarPlot::default()
        };
        let html = plot.figure();
        assert_eq!(html.matches("<rect").count(), 3);
        assert_eq!(html.matches("<li>").count(), 2, "two series");
        assert_eq!(html.matches(">ycsb</text>").count(), 1, "one name below each group");
        assert!(html.contains("a&lt;b"));
        assert!(!html.contains("rotate(-60)"), "two short names fit side by side");
        let many = (0..12).map(|at| bar(&format!("component number {at}"), "", 1.0));
        let html = BarPlot { bars: many.collect(), ..BarPlot::default() }.figure();
        assert_eq!(html.matches("rotate(-60)").count(), 12, "twelve long ones are turned");
        assert!(html.contains("<div class=\"wide\"><svg class=\"turned\""), "and scrolled");
        assert!(BarPlot::default().figure().contains("<svg"), "no bars, no panic");
    }
}
