//! A page with one plot of plain lines: time series, sweeps, rounds.

use std::fmt::Write;

use super::axis::Axis;
use super::curves::{HEIGHT, WIDTH, across, grid, legend, name_above, series_class, upwards};
use super::html::{STYLE, escaped, short};

/// Share of the greatest value; if all values are above it, the axis does not begin at zero.
const HIGH: f64 = 0.6;

/// A named line.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Line {
    /// Name of the line in the legend.
    pub label: String,
    /// Points of the line, from left to right.
    pub points: Vec<(f64, f64)>,
    /// Lower and upper end of each point's interval; empty for a line without intervals.
    pub band: Vec<(f64, f64)>,
}

/// A plot of lines, with a straight vertical axis.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LinePlot {
    /// The page's heading.
    pub title: String,
    /// A paragraph below the heading, as plain text.
    pub note: String,
    /// The name of the horizontal axis.
    pub x: String,
    /// The name of the vertical axis.
    pub y: String,
    /// The lines.
    pub lines: Vec<Line>,
    /// `true` if the horizontal axis is logarithmic.
    pub is_log: bool,
    /// `true` if the vertical axis begins at the least value instead of zero.
    pub is_cut: bool,
}

impl LinePlot {
    /// Returns the plot as one self-contained HTML page.
    pub fn render(&self) -> String {
        let title = escaped(&self.title);
        format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <title>{title}</title><style>{STYLE}</style></head><body><main><h1>{title}</h1>\
             <p>{}</p>{}</main></body></html>\n",
            escaped(&self.note),
            self.drawn("")
        )
    }

    /// Returns the plot as a figure of a larger page, with its title and note above it.
    pub(super) fn figure(&self) -> String {
        let caption = format!("<figcaption>{}</figcaption>", escaped(&self.title));
        let note = format!("<p class=\"hint\">{}</p>", escaped(&self.note));
        self.drawn(&format!("{caption}{note}"))
    }

    fn drawn(&self, above: &str) -> String {
        let labels: Vec<&str> = self.lines.iter().map(|line| line.label.as_str()).collect();
        let name = name_above(&self.y);
        format!("{}<figure>{above}{name}{}</figure>", legend(&labels), self.svg())
    }

    fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| line.points.iter());
        let x = across(points().map(|p| p.0), self.is_log);
        let ends = self.lines.iter().flat_map(|line| line.band.iter().flat_map(|b| [b.0, b.1]));
        let least = points().map(|p| p.1).fold(f64::INFINITY, f64::min);
        let most = points().map(|p| p.1).fold(0.0, f64::max);
        // With all values near the top, their differences would be invisible on a full axis.
        let zero = (!self.is_cut && least < most * HIGH).then_some(0.0);
        let y = upwards(points().map(|p| p.1).chain(ends).chain(zero));
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{} over {}\">{}",
            escaped(&self.y),
            escaped(&self.x),
            grid(&x, &y, &self.x, &self.y)
        );
        for (index, line) in self.lines.iter().enumerate() {
            let place = |(a, b): &(f64, f64)| format!("{:.1},{:.1}", x.place(*a), y.place(*b));
            let path: Vec<String> = line.points.iter().map(place).collect();
            let _ = write!(
                svg,
                "<g class=\"series {}\"><title>{}</title>{}<polyline points=\"{}\"/>",
                series_class(index),
                escaped(&line.label),
                band(line, &x, &y),
                path.join(" ")
            );
            for (a, b) in &line.points {
                let _ = write!(
                    svg,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\"><title>{}, {}: {}</title>\
                     </circle>",
                    x.place(*a),
                    y.place(*b),
                    escaped(&line.label),
                    short(*a),
                    short(*b)
                );
            }
            svg.push_str("</g>");
        }
        svg + "</svg>"
    }
}

/// Returns the area between the ends of a line's intervals.
fn band(line: &Line, x: &Axis, y: &Axis) -> String {
    if line.band.len() != line.points.len() || line.band.iter().all(|(low, high)| low == high) {
        return String::new();
    }
    let ends = |end: fn(&(f64, f64)) -> f64| {
        let both = line.points.iter().zip(&line.band);
        both.map(move |(p, b)| format!("{:.1},{:.1}", x.place(p.0), y.place(end(b))))
    };
    let mut path: Vec<String> = ends(|b| b.0).collect();
    let mut above: Vec<String> = ends(|b| b.1).collect();
    above.reverse();
    path.extend(above);
    format!("<polygon class=\"band\" points=\"{}\"/>", path.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_and_point_is_drawn_and_names_are_escaped() {
        let line = |label: &str, points: &[(f64, f64)]| Line {
            label: label.to_string(),
            points: points.to_vec(),
            band: points.iter().map(|(_, y)| (y * 0.9, y * 1.1)).collect(),
        };
        let plot = LinePlot {
            title: "a<b".to_string(),
            x: "second".to_string(),
            y: "tx/s".to_string(),
            lines: vec![line("pool", &[(1.0, 10.0), (2.0, 20.0)]), line("none", &[])],
            ..LinePlot::default()
        };
        let html = plot.render();
        assert!(html.contains("<h1>a&lt;b</h1>") && !html.contains("a<b<"), "{html}");
        assert_eq!(html.matches("<circle").count(), 2);
        assert_eq!(html.matches("<polygon class=\"band\"").count(), 1, "the other has no points");
        assert_eq!(html.matches("<polyline points").count(), 2 + 2, "two lines and their keys");
    }

    #[test]
    fn an_axis_begins_at_zero_unless_all_stick_to_the_top() {
        let plot = |values: &[f64]| LinePlot {
            lines: vec![Line {
                points: (0..).map(f64::from).zip(values.iter().copied()).collect(),
                ..Line::default()
            }],
            ..LinePlot::default()
        };
        let has_zero = |values: &[f64]| plot(values).svg().matches(">0</text>").count() == 2;
        assert!(has_zero(&[50.0, 99.0]));
        assert!(!has_zero(&[96.0, 99.0]));
    }
}
