//! The heat map of watt fig. 1: misses relative to one policy's, for every trace and size.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::data::{Spread, TraceData};
use super::html::{escaped, file_name, short};

/// The map, as one table per trace. `reference` is a policy's label.
pub(super) fn heatmap(trace: &TraceData, reference: &str) -> Option<String> {
    let (_, _, base) = trace.lines.iter().find(|(label, _, _)| label == reference)?;
    let sizes: BTreeSet<u64> =
        base.iter().filter(|(_, c)| !c.misses.is_empty()).map(|(size, _)| *size).collect();
    if sizes.is_empty() || trace.lines.len() < 2 {
        return None;
    }
    let mut html = format!(
        "<div class=\"wide\"><table class=\"heat\"><caption>{}</caption><tr><th>frames</th>",
        escaped(file_name(&trace.name))
    );
    sizes.iter().for_each(|size| {
        let _ = write!(html, "<th>{}</th>", short(*size as f64));
    });
    html.push_str("<th>mean</th></tr>");
    for (label, _, line) in &trace.lines {
        let _ = write!(html, "<tr><th>{}</th>", escaped(label));
        let mut all = Vec::new();
        for size in &sizes {
            let misses =
                |line: &super::data::Line| Spread::of(&line.get(size)?.misses).map(|s| s.mean);
            let relative = misses(line).zip(misses(base)).filter(|(_, b)| *b > 0.0);
            match relative.map(|(ours, base)| ours / base) {
                Some(relative) => {
                    all.push(relative.ln());
                    html.push_str(&cell(relative));
                }
                None => html.push_str("<td></td>"),
            }
        }
        let mean = (all.iter().sum::<f64>() / all.len().max(1) as f64).exp();
        html.push_str(&if all.is_empty() { "<td></td>".to_string() } else { cell(mean) });
        html.push_str("</tr>");
    }
    html.push_str("</table></div>");
    Some(html)
}

/// A cell: more misses than the reference are warm, fewer are cold; ±30 % is full colour.
fn cell(relative: f64) -> String {
    let strength = ((relative.ln() / 1.3f64.ln()).clamp(-1.0, 1.0) * 100.0).round();
    let (kind, strength) = if strength >= 0.0 { ("more", strength) } else { ("less", -strength) };
    format!("<td class=\"{kind}\" style=\"--a:{}%\">{relative:.2}</td>", strength * 0.8)
}
