//! Named points in a plane, as in watt fig. 2: points of one family are joined, to show trade-offs.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::curves::{HEIGHT, WIDTH, across, grid, legend_of, name_above, series_class, upwards};
use super::html::{escaped, short};

/// A named point.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Point {
    /// Name of the point, written beside it.
    pub label: String,
    /// Family of the point; a line joins the points of one family.
    pub family: String,
    /// Coordinates of the point.
    pub at: (f64, f64),
    /// Number of the point's colour.
    pub colour: usize,
}

/// A plot of points over straight axes that need not begin at zero.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PointPlot {
    /// The title above the plot.
    pub title: String,
    /// A paragraph below the title, as plain text.
    pub note: String,
    /// The name of the horizontal axis.
    pub x: String,
    /// The name of the vertical axis.
    pub y: String,
    /// The points.
    pub points: Vec<Point>,
}

impl PointPlot {
    /// Returns the plot as a figure of a page.
    pub(super) fn figure(&self) -> String {
        let (title, note) = (escaped(&self.title), escaped(&self.note));
        let (above, svg) = (self.above(), self.svg());
        format!(
            "<figure><figcaption>{title}</figcaption><p class=\"hint\">{note}</p>{above}{svg}\
             </figure>"
        )
    }

    /// Returns the text that a narrow plot has no room for: the points' names, and the name of the
    /// vertical axis.
    pub(super) fn above(&self) -> String {
        let points = self.points.iter().map(|point| (point.colour, point.label.as_str()));
        let legend = legend_of(points);
        format!("<div class=\"narrow\">{legend}</div>{}", name_above(&self.y))
    }

    /// Returns only the drawing.
    pub(super) fn svg(&self) -> String {
        let points = &self.points;
        let x = across(points.iter().map(|p| p.at.0), false).with_margin(0.06);
        let y = upwards(points.iter().map(|p| p.at.1)).with_margin(0.06);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{} against {}\">{}",
            escaped(&self.x),
            escaped(&self.y),
            grid(&x, &y, &self.x, &self.y)
        );
        let place = |p: &Point| (x.place(p.at.0), y.place(p.at.1));
        let mut families: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
        for point in points {
            families.entry(&point.family).or_default().push(place(point));
        }
        for family in families.values().filter(|f| f.len() > 1) {
            let mut path = family.clone();
            path.sort_by(|a, b| a.0.total_cmp(&b.0));
            let path: Vec<String> = path.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = write!(svg, "<polyline class=\"join\" points=\"{}\"/>", path.join(" "));
        }
        let mut taken: Vec<(f64, f64, f64)> = Vec::new();
        for point in points {
            let (px, py) = place(point);
            let (anchor, dx) = if px > WIDTH * 0.75 { ("end", -7.0) } else { ("start", 7.0) };
            let width = point.label.len() as f64 * 6.0;
            let left = if dx < 0.0 { px - width } else { px };
            let text_y = free_place(&mut taken, left, left + width, py + 4.0);
            let _ = write!(
                svg,
                "<g class=\"point {}\"><title>{}: {}, {}</title>\
                 <circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"4.5\"/>\
                 <text class=\"tick beside\" text-anchor=\"{anchor}\" x=\"{:.1}\" y=\"{text_y:.1}\">{}\
                 </text></g>",
                series_class(point.colour),
                escaped(&point.label),
                short(point.at.0),
                short(point.at.1),
                px + dx,
                escaped(&point.label)
            );
        }
        svg + "</svg>"
    }
}

/// Returns the height nearest to `wanted` at which a label from `left` to `right` is free.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_drawn_and_families_are_joined() {
        let point = |label: &str, family: &str, x: f64| Point {
            label: label.to_string(),
            family: family.to_string(),
            at: (x, 1.0 / x),
            colour: 0,
        };
        let plot = PointPlot {
            title: "a<b".to_string(),
            points: vec![point("w0", "w", 1.0), point("w4", "w", 2.0), point("lru", "lru", 1.5)],
            ..PointPlot::default()
        };
        let html = plot.figure();
        assert_eq!(html.matches("<circle").count(), 3);
        assert_eq!(html.matches("class=\"join\"").count(), 1, "one point alone is not joined");
        assert!(html.contains("a&lt;b"));
    }
}
