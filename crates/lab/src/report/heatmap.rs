//! Heat maps: ratios as a coloured table, as in watt fig. 1.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::data::{Cell, Line, TraceData};
use super::html::{escaped, short};
use crate::interval::Interval;

/// A table of ratios, coloured by their distance from 1.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HeatMap {
    /// The title above the map.
    pub title: String,
    /// A paragraph below the title, as plain text.
    pub note: String,
    /// The text in the corner, which describes the columns.
    pub across: String,
    /// The columns' headings.
    pub columns: Vec<String>,
    /// Name and ratios of each row; `None` for a missing ratio.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

impl HeatMap {
    /// Returns the map with an extra column: each row's geometric mean over the columns so far.
    #[must_use]
    pub fn with_mean(mut self) -> HeatMap {
        for (_, ratios) in &mut self.rows {
            let logs: Vec<f64> = ratios.iter().flatten().map(|r| r.ln()).collect();
            let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
            ratios.push((!logs.is_empty()).then(|| mean.exp()));
        }
        self.columns.push("mean".to_string());
        self
    }

    /// Returns the map as a figure of a page.
    pub(super) fn figure(&self) -> String {
        let mut html = String::new();
        if !self.note.is_empty() {
            let _ = write!(html, "<p class=\"hint\">{}</p>", escaped(&self.note));
        }
        html += &self.table();
        html
    }

    fn table(&self) -> String {
        let mut html = format!(
            "<div class=\"wide\"><table class=\"heat\"><caption>{}</caption><tr><th>{}</th>",
            escaped(&self.title),
            escaped(&self.across)
        );
        for column in &self.columns {
            let _ = write!(html, "<th>{}</th>", escaped(column));
        }
        html.push_str("</tr>");
        for (name, ratios) in &self.rows {
            let _ = write!(html, "<tr><th>{}</th>", escaped(name));
            for ratio in ratios {
                html.push_str(&ratio.map_or("<td></td>".to_string(), cell));
            }
            html.push_str("</tr>");
        }
        html + "</table></div>"
    }
}

/// Returns the map of one trace, and the labels of the lines that are not in it. Misses are
/// relative to the policy `reference`, each line to the reference's line with the same options.
/// Returns `None` if no line has a reference, or there is nothing to compare with it.
pub(super) fn heatmap<'t>(trace: &'t TraceData, reference: &str) -> Option<(String, Vec<&'t str>)> {
    let base_of = |line: &Line| {
        let is_base = |other: &&Line| other.options == line.options && other.name == reference;
        trace.lines.iter().find(is_base)
    };
    let lines: Vec<(&Line, &Line)> =
        trace.lines.iter().filter_map(|line| Some((line, base_of(line)?))).collect();
    let has_misses = |(size, cell): (&u64, &Cell)| (!cell.misses().is_empty()).then_some(*size);
    let sizes: BTreeSet<u64> =
        lines.iter().flat_map(|(_, base)| base.cells.iter().filter_map(has_misses)).collect();
    if sizes.is_empty() || lines.len() < 2 {
        return None;
    }
    let misses = |line: &Line, size: &u64| {
        Interval::of(&line.cells.get(size)?.misses()).map(|spread| spread.mean)
    };
    let ratios = |(line, base): &(&Line, &Line)| {
        let ratio = |size: &u64| {
            let base = misses(base, size).filter(|base| *base > 0.0)?;
            Some(misses(line, size)? / base)
        };
        sizes.iter().map(ratio).collect()
    };
    let map = HeatMap {
        title: trace.name.clone(),
        note: String::new(),
        across: "frames".to_string(),
        columns: sizes.iter().map(|size| short(*size as f64)).collect(),
        rows: lines.iter().map(|pair| (pair.0.label.clone(), ratios(pair))).collect(),
    };
    let without = trace.lines.iter().filter(|line| base_of(line).is_none());
    Some((map.with_mean().figure(), without.map(|line| line.label.as_str()).collect()))
}

/// Returns a cell: warm above the reference, cold below; ±30 % is full colour.
fn cell(relative: f64) -> String {
    let strength = ((relative.ln() / 1.3f64.ln()).clamp(-1.0, 1.0) * 100.0).round();
    let (kind, strength) = if strength >= 0.0 { ("more", strength) } else { ("less", -strength) };
    format!("<td class=\"{kind}\" style=\"--a:{}%\">{relative:.2}</td>", strength * 0.8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_ratios_is_geometric_and_gaps_do_not_count() {
        let map = HeatMap {
            columns: vec!["a".to_string(), "b".to_string(), "c".to_string()],
            rows: vec![
                ("x".to_string(), vec![Some(0.5), None, Some(2.0)]),
                ("none".to_string(), vec![None, None, None]),
            ],
            ..HeatMap::default()
        };
        let map = map.with_mean();
        assert_eq!(map.columns.len(), 4);
        assert!((map.rows[0].1[3].unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(map.rows[1].1[3], None);
        assert!(map.figure().contains("class=\"more\"") && map.figure().contains("class=\"less\""));
    }
}
