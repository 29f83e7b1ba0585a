//! A part of a report that is about something else than cache sizes: plots over time, a table.

use super::html::escaped;
use super::lines::LinePlot;
use super::page::table_rows;
use crate::table::Table;

/// A heading with what belongs below it.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// A paragraph below it, as plain text.
    pub note: String,
    /// Numbers; nothing is shown of a table without rows.
    pub table: Table,
    /// Plots below the table, each with its own title and note.
    pub plots: Vec<LinePlot>,
}

impl Section {
    pub(super) fn render(&self) -> String {
        let mut html = format!("<h2>{}</h2><p>{}</p>", escaped(&self.title), escaped(&self.note));
        if !self.table.rows.is_empty() {
            html += "<div class=\"wide\"><table>";
            html += &table_rows(&self.table);
            html += "</table></div>";
        }
        self.plots.iter().for_each(|plot| html += &plot.figure());
        html
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_its_heading_its_rows_and_its_plots() {
        let mut table = Table::new(["run", "tx/s"]);
        table.rows.push(vec!["<first>".into(), 12u64.into()]);
        let plot = LinePlot { title: "over time".to_string(), ..LinePlot::default() };
        let section = Section {
            title: "Live".to_string(),
            note: "a & b".to_string(),
            table,
            plots: vec![plot],
        };
        let html = section.render();
        for part in ["<h2>Live</h2>", "a &amp; b", "&lt;first&gt;", ">12<", "over time", "<svg"] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!Section::default().render().contains("<table"));
    }
}
