//! Aligned tables for people.

use comfy_table::{CellAlignment, Table as Grid, presets};

use super::{Table, Value};

impl Table {
    /// The table without the columns beyond `keep` that say nothing: only zeros, or nothing.
    pub fn without_idle_columns(&self, keep: usize) -> Table {
        let idle = |v: &Value| matches!(v, Value::Empty) || v.number() == Some(0.0);
        let used: Vec<usize> = (0..self.columns.len())
            .filter(|&c| c < keep || !self.rows.iter().all(|row| idle(&row[c])))
            .collect();
        Table {
            columns: used.iter().map(|&c| self.columns[c].clone()).collect(),
            rows: self
                .rows
                .iter()
                .map(|row| used.iter().map(|&c| row[c].clone()).collect())
                .collect(),
        }
    }

    /// The table for a terminal: numbers to the right, ratios with four digits, no frames.
    pub fn to_text(&self) -> String {
        let mut grid = Grid::new();
        grid.load_preset(presets::NOTHING);
        grid.set_header(&self.columns);
        for row in &self.rows {
            grid.add_row(row.iter().map(shown));
        }
        for (index, _) in self.columns.iter().enumerate() {
            let is_text = self.rows.iter().any(|row| matches!(row[index], Value::Text(_)));
            if let Some(column) = grid.column_mut(index) {
                column.set_padding((0, 2));
                if !is_text {
                    column.set_cell_alignment(CellAlignment::Right);
                }
            }
        }
        let lines: Vec<String> = grid.lines().map(|l| l.trim_end().to_string()).collect();
        lines.join("\n") + "\n"
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Float(x) if x.is_finite() && x.abs() < 100.0 => format!("{x:.4}"),
        Value::Float(x) if x.is_finite() => format!("{x:.1}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["policy", "hits"]);
        table.rows.push(vec!["lru".into(), 5u64.into()]);
        table.rows.push(vec!["lean-evict".into(), 12345u64.into()]);
        assert_eq!(table.to_text(), "policy       hits\nlru             5\nlean-evict  12345\n");
    }
}
