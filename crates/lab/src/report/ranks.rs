//! Values in rows: effects with their intervals, and mean ranks with their critical difference.

use std::fmt::Write;

use super::axis::Axis;
use super::curves::{WIDTH, across, left_right, series_class};
use super::html::escaped;
use crate::interval::Interval;

/// Height of a row, and of the area above the first one.
const ROW: f64 = 26.0;
const HEAD: f64 = 34.0;

/// Effects with their intervals, one below the other, beside the value of no effect.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EffectPlot {
    /// The title above the plot.
    pub title: String,
    /// A paragraph below the title, as plain text.
    pub note: String,
    /// The value of no effect: 1 for ratios, 0 for differences.
    pub none: f64,
    /// Names and values, from top to bottom.
    pub effects: Vec<(String, Interval)>,
}

impl EffectPlot {
    /// Returns the plot as a figure of a page.
    pub(super) fn figure(&self) -> String {
        let ends = self.effects.iter().flat_map(|(_, value)| [value.low, value.high]);
        let x = across(ends.chain([self.none]), false).with_margin(0.04);
        let rows = self.effects.len() as f64;
        let mut svg = begin(HEAD + rows * 2.0 * ROW, &self.title, &x);
        let (at, bottom) = (x.place(self.none), HEAD + rows * 2.0 * ROW);
        let _ = write!(
            svg,
            "<line class=\"join\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{HEAD}\" y2=\"{bottom:.1}\"/>"
        );
        for (row, (name, value)) in self.effects.iter().enumerate() {
            let y = HEAD + row as f64 * 2.0 * ROW + 1.4 * ROW;
            let [low, mean, high] = [value.low, value.mean, value.high].map(|v| x.place(v));
            let name = escaped(name);
            let _ = write!(
                svg,
                "<g class=\"bar point {}\"><title>{name}: {value:.4}</title>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>\
                 <line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <circle cx=\"{mean:.1}\" cy=\"{y:.1}\" r=\"4.5\"/></g>",
                series_class(0),
                left_right().0,
                y - 0.6 * ROW,
            );
        }
        framed(&self.title, &self.note, &(svg + "</svg>"))
    }
}

/// A critical-difference diagram (Demšar 2006).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RankPlot {
    /// The title above the plot.
    pub title: String,
    /// A paragraph below the title, as plain text.
    pub note: String,
    /// Critical difference: mean ranks that differ by less are joined.
    pub critical: f64,
    /// Names and mean ranks; 1 is the best.
    pub ranks: Vec<(String, f64)>,
    /// Groups that are joined, as indexes into `ranks`.
    pub groups: Vec<Vec<usize>>,
}

impl RankPlot {
    /// Returns the plot as a figure of a page.
    pub(super) fn figure(&self) -> String {
        let mut order: Vec<&(String, f64)> = self.ranks.iter().collect();
        order.sort_by(|a, b| a.1.total_cmp(&b.1));
        let x = across([1.0, self.ranks.len().max(2) as f64].into_iter(), false).with_margin(0.02);
        let joined = HEAD + self.groups.len() as f64 * 8.0 + 12.0;
        let mut svg = begin(joined + order.len() as f64 * ROW, &self.title, &x);
        for (at, group) in self.groups.iter().enumerate() {
            let ranks = || group.iter().map(|member| self.ranks[*member].1);
            let (low, high) = (ranks().fold(f64::MAX, f64::min), ranks().fold(0.0, f64::max));
            let (y, low, high) = (HEAD + 8.0 * (at as f64 + 1.0), x.place(low), x.place(high));
            let _ = write!(
                svg,
                "<rect class=\"joined\" x=\"{:.1}\" width=\"{:.1}\" y=\"{:.1}\" height=\"4\"/>",
                low - 3.0,
                high - low + 6.0,
                y - 2.0
            );
        }
        for (row, (name, rank)) in order.iter().enumerate() {
            let (px, y) = (x.place(*rank), joined + (row as f64 + 0.6) * ROW);
            let (anchor, dx) = if px > WIDTH * 0.6 { ("end", -8.0) } else { ("start", 8.0) };
            let name = escaped(name);
            let _ = write!(
                svg,
                "<g class=\"point {}\"><title>{name}: {rank:.2}</title>\
                 <line class=\"grid\" x1=\"{px:.1}\" x2=\"{px:.1}\" y1=\"{HEAD}\" y2=\"{y:.1}\"/>\
                 <circle cx=\"{px:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>\
                 <text class=\"tick\" text-anchor=\"{anchor}\" x=\"{:.1}\" y=\"{:.1}\">{name} \
                 {rank:.2}</text></g>",
                series_class(0),
                px + dx,
                y + 4.0
            );
        }
        framed(&self.title, &self.note, &(svg + "</svg>"))
    }
}

/// Returns the beginning of the drawing, with an axis above its rows.
fn begin(height: f64, label: &str, x: &Axis) -> String {
    let (left, right) = left_right();
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {:.1}\" role=\"img\" aria-label=\"{}\">\
         <line class=\"join\" x1=\"{left}\" x2=\"{right}\" y1=\"{HEAD}\" y2=\"{HEAD}\"/>",
        height + 8.0,
        escaped(label)
    );
    for (value, tick) in x.ticks() {
        let at = x.place(value);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{HEAD}\"/>\
             <text class=\"tick\" text-anchor=\"middle\" x=\"{at:.1}\" y=\"{:.1}\">{tick}</text>",
            HEAD - 6.0,
            HEAD - 10.0
        );
    }
    svg
}

fn framed(title: &str, note: &str, svg: &str) -> String {
    let (title, note) = (escaped(title), escaped(note));
    format!("<figure><figcaption>{title}</figcaption><p class=\"hint\">{note}</p>{svg}</figure>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_have_their_intervals_and_ranks_their_groups() {
        let value = Interval { mean: 0.95, low: 0.9, high: 1.02, runs: 5 };
        let plot = EffectPlot {
            title: "misses".to_string(),
            none: 1.0,
            effects: vec![("a<b".to_string(), value)],
            ..EffectPlot::default()
        };
        let figure = plot.figure();
        for part in ["<svg", "a&lt;b: 0.9500 (0.9000 to 1.0200)", "<circle", "misses"] {
            assert!(figure.contains(part), "{part}: {figure}");
        }
        let ranks = [("lru", 2.5), ("arc", 1.25), ("random", 2.25)];
        let plot = RankPlot {
            ranks: ranks.map(|(name, rank)| (name.to_string(), rank)).to_vec(),
            groups: vec![vec![2, 0]],
            ..RankPlot::default()
        };
        let figure = plot.figure();
        assert!(figure.find("arc 1.25") < figure.find("random 2.25"), "{figure}");
        assert_eq!(figure.matches("class=\"joined\"").count(), 1);
    }
}
