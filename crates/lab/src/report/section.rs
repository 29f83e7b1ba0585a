//! A part of a report that is not about cache sizes: plots, a table, claims.

use std::fmt::Write;

use super::html::escaped;
use super::plot::Plot;
use super::rows::table_rows;
use crate::table::Table;

/// One sentence of a paper, and its verdict by our numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// The paper's statement, in our words.
    pub says: String,
    /// The numbers that decide the claim here.
    pub here: String,
    /// `true` if the claim holds here; `None` if too little was run to tell.
    pub holds: Option<bool>,
    /// Two-sided p-value of the verdict; `None` if no interval decides.
    pub p: Option<f64>,
}

impl Claim {
    /// Returns a claim that our numbers decide.
    pub fn new(says: &str, here: impl Into<String>, holds: bool) -> Claim {
        Claim { says: says.to_string(), here: here.into(), holds: Some(holds), p: None }
    }

    /// Returns a claim that the runs so far leave open.
    pub fn open(says: &str, here: impl Into<String>) -> Claim {
        Claim { says: says.to_string(), here: here.into(), holds: None, p: None }
    }

    /// Returns the p-value as tables show it.
    pub fn shown_p(&self) -> Option<String> {
        let shown = |p| if p < 0.001 { "< 0.001".to_string() } else { format!("{p:.3}") };
        self.p.map(shown)
    }

    /// Returns *yes*, *no* or *open*.
    pub fn verdict(&self) -> &'static str {
        match self.holds {
            Some(true) => "yes",
            Some(false) => "no",
            None => "open",
        }
    }
}

/// A heading with the parts below it.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// A paragraph below the heading, as plain text.
    pub note: String,
    /// The table of the section; a table without rows is not shown.
    pub table: Table,
    /// Plots below the table, each with its own title and note.
    pub plots: Vec<Plot>,
    /// Claims of a paper, beside our results.
    pub claims: Vec<Claim>,
}

impl Section {
    /// Returns the section as HTML, with `mark` written across its plots.
    pub(super) fn render(&self, mark: Option<&str>) -> String {
        let mut html = format!("<h2>{}</h2><p>{}</p>", escaped(&self.title), escaped(&self.note));
        for plot in &self.plots {
            match mark {
                None => html += &plot.figure(),
                Some(mark) => {
                    let (mark, figure) = (escaped(mark), plot.figure());
                    let _ = write!(html, "<div class=\"marked\" data-mark=\"{mark}\">{figure}");
                    html += "</div>";
                }
            }
        }
        if !self.table.rows.is_empty() {
            html += "<div class=\"wide\"><table>";
            html += &table_rows(&self.table);
            html += "</table></div>";
        }
        html + &self.said()
    }

    fn said(&self) -> String {
        if self.claims.is_empty() {
            return String::new();
        }
        let mut html = "<div class=\"wide\"><table class=\"claims\"><tr><th>the paper says</th>\
                        <th>here</th><th>holds</th><th>p</th></tr>"
            .to_string();
        for claim in &self.claims {
            let (says, here) = (escaped(&claim.says), escaped(&claim.here));
            let verdict = claim.verdict();
            let p = claim.shown_p().map_or(String::new(), |p| escaped(&p));
            let _ = write!(
                html,
                "<tr><td>{says}</td><td>{here}</td><td>{verdict}</td><td>{p}</td></tr>"
            );
        }
        html + "</table></div>"
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::LinePlot;
    use super::*;

    #[test]
    fn a_section_has_its_heading_its_rows_its_plots_and_its_claims() {
        let mut table = Table::new(["run", "tx/s"]);
        table.rows.push(vec!["<first>".into(), 12u64.into()]);
        let plot = LinePlot { title: "over time".to_string(), ..LinePlot::default() };
        let section = Section {
            title: "Live".to_string(),
            note: "a & b".to_string(),
            table,
            plots: vec![plot.into()],
            claims: vec![Claim::new("more is better", "1 < 2", true), Claim::open("x", "y")],
        };
        let html = section.render(None);
        for part in ["<h2>Live</h2>", "a &amp; b", "&lt;first&gt;", ">12<", "over time", "<svg"] {
            assert!(html.contains(part), "{part}: {html}");
        }
        for part in ["more is better", "1 &lt; 2", "<td>yes</td>", "<td>open</td>"] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("data-mark"));
        assert!(section.render(Some("smoke")).contains("data-mark=\"smoke\""));
        assert!(!Section::default().render(None).contains("<table"));
    }
}
