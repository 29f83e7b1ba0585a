//! The page of a report.

use std::fmt::Write;

use serde_json::Value as Json;

use super::curves::{curves, legend_of, name_above};
use super::data::{ReportData, TraceData};
use super::heatmap::heatmap;
use super::html::{STYLE, escaped};
use super::rows::table_rows;
use super::section::Section;
use super::tradeoff::tradeoff;

/// The parts of a report besides its rows.
#[derive(Clone, Debug, Default)]
pub struct ReportOptions {
    /// The heading.
    pub title: String,
    /// The policy that the heat map is relative to, as [`ReportData::reference`] returns it. Each
    /// line is relative to the policy's line with the same options. `None` selects `tide`, else
    /// `watt`, else the first policy.
    pub relative_to: Option<String>,
    /// A paragraph below the heading, as plain text.
    pub note: Option<String>,
    /// Additional sections, above those about the rows.
    pub sections: Vec<Section>,
    /// `true` if the sections are complete, and nothing is drawn from the rows themselves.
    pub sections_only: bool,
    /// The word that is written across every plot of the sections, such as *smoke* if too little
    /// was run.
    pub mark: Option<String>,
}

const ROWS_MAX: usize = 2000;

/// Returns the report as one HTML page.
pub fn render(data: &ReportData, options: &ReportOptions) -> String {
    let title = escaped(&options.title);
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>{STYLE}</style></head><body><main><h1>{title}</h1>"
    );
    if let Some(note) = &options.note {
        let _ = write!(html, "<p>{}</p>", escaped(note));
    }
    let mark = options.mark.as_deref();
    options.sections.iter().for_each(|section| html.push_str(&section.render(mark)));
    if !options.sections_only {
        by_traces(&mut html, data, options);
    }
    table(&mut html, data);
    runs(&mut html, &data.runs);
    html + "</main></body></html>\n"
}

/// Default references of comparisons: the default policy of a store, and the former default.
const REFERENCES: [&str; 2] = ["tide", "watt"];

/// Draws the plots of simulations: curves, heat maps, trade-offs.
fn by_traces(html: &mut String, data: &ReportData, options: &ReportOptions) {
    let labels = data.labels();
    let names = || data.traces.iter().flat_map(|t| &t.lines).map(|line| line.name.as_str());
    let known = || REFERENCES.into_iter().find(|reference| names().any(|name| name == *reference));
    let fallback = known().or_else(|| names().next()).unwrap_or("");
    let reference = options.relative_to.as_deref().unwrap_or(fallback);
    let plots: Vec<(&str, String)> =
        data.traces.iter().filter_map(|t| Some((t.name.as_str(), curve_of(t, &labels)?))).collect();
    if !plots.is_empty() {
        html.push_str("<h2>Miss ratio over cache size</h2>");
        let _ = write!(html, "<p class=\"hint\">Lower is better. {}</p>", data.caption());
        for (name, plot) in plots {
            figure(html, name, &plot);
        }
    }
    heatmaps(html, data, reference);
    let trades: Vec<(&str, String)> =
        data.traces.iter().filter_map(|t| Some((t.name.as_str(), tradeoff(t, &labels)?))).collect();
    if !trades.is_empty() {
        html.push_str(
            "<h2>Reads against writes</h2><p class=\"hint\">Down and left is better: fewer page \
             reads, fewer page writes.</p>",
        );
        trades.iter().for_each(|(name, svg)| figure(html, name, svg));
    }
}

/// Draws the heat maps of all traces, and names the traces and lines without one.
fn heatmaps(html: &mut String, data: &ReportData, reference: &str) {
    let (mut maps, mut without, mut lines) = (String::new(), Vec::new(), Vec::new());
    for trace in &data.traces {
        match heatmap(trace, reference) {
            Some((map, left_out)) => {
                maps += &map;
                lines.extend(left_out.iter().map(|label| format!("'{label}' on {}", trace.name)));
            }
            None => without.push(trace.name.as_str()),
        }
    }
    if maps.is_empty() {
        return;
    }
    let mut hint = "The mean is geometric.".to_string();
    if data.has_options {
        hint += " Each line is relative to the one with its own options.";
    }
    if !without.is_empty() {
        hint += &format!(" There is nothing to compare on {}.", without.join(", "));
    }
    if !lines.is_empty() {
        let lines = lines.join(", ");
        hint += &format!(" There is no {reference} with the options of {lines}.");
    }
    let _ = write!(
        html,
        "<h2>Misses relative to {}</h2><p class=\"hint\">Above 1 is more misses than {0}, below 1 \
         is fewer. {}</p>{maps}",
        escaped(reference),
        escaped(&hint),
    );
}

/// Returns a trace's curves, below a legend of the trace's policies.
fn curve_of(trace: &TraceData, labels: &[&str]) -> Option<String> {
    let svg = curves(trace, labels)?;
    let has = |label: &str| trace.lines.iter().any(|line| line.label == label);
    let own = labels.iter().copied().enumerate().filter(|(_, label)| has(label));
    Some(format!("{}{}{svg}", legend_of(own), name_above("miss ratio")))
}

fn figure(html: &mut String, caption: &str, svg: &str) {
    let _ = write!(html, "<figure><figcaption>{}</figcaption>{svg}</figure>", escaped(caption));
}

fn table(html: &mut String, data: &ReportData) {
    let mut shown = data.table.without_idle_columns(5);
    let count = shown.rows.len();
    shown.rows.truncate(ROWS_MAX);
    let _ = write!(
        html,
        "<h2>Rows</h2><details><summary>{count} rows</summary><div class=\"wide\"><table>{}\
         </table></div>",
        table_rows(&shown)
    );
    if count > ROWS_MAX {
        let _ = write!(html, "<p>Only the first {ROWS_MAX}; rows.parquet has them all.</p>");
    }
    html.push_str("</details>");
}

fn runs(html: &mut String, runs: &[Json]) {
    html.push_str("<h2>How this was made</h2>");
    for run in runs {
        let text = |name: &str| escaped(run[name].as_str().unwrap_or("unknown"));
        let machine = &run["machine"];
        if machine.is_null() {
            // The files of a sweep may come from any number of machines, with equal bytes from
            // each.
            let (what, build) = (text("command_line"), text("build"));
            let _ = write!(html, "<pre>{what}</pre><p class=\"hint\">Build {build}.</p>");
            continue;
        }
        let memory = machine["memory_bytes"].as_u64().map(|b| format!("{} GiB", b >> 30));
        let _ = write!(
            html,
            "<pre>{}</pre><p class=\"hint\">Build {}; {} cores, {}, {} memory, {} {}; seeds {}; {}\
             </p>",
            text("command_line"),
            text("build"),
            machine["cores"],
            escaped(machine["cpu"].as_str().unwrap_or("unknown processor")),
            memory.unwrap_or_else(|| "unknown".to_string()),
            escaped(machine["os"].as_str().unwrap_or("")),
            escaped(machine["arch"].as_str().unwrap_or("")),
            escaped(&run["params"]["seeds"].to_string()),
            if run["complete"] == Json::Bool(true) { "complete" } else { "interrupted: partial" },
        );
    }
}
