//! Aligned tables for people.

use comfy_table::{CellAlignment, Table as Grid, presets};

use super::{Table, Value};

impl Table {
    /// Returns the table without the empty or all-zero columns after the first `keep` columns.
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

    /// Returns `true` if all numbers of a column are whole.
    pub(crate) fn is_whole(&self, column: usize) -> bool {
        let numbers = self.rows.iter().filter_map(|row| row[column].number());
        numbers.into_iter().all(|x| x.fract() == 0.0 && x.abs() < 1e15)
    }

    /// Returns as many of the table's first columns as fit into lines of `width` characters, at
    /// least one, and the number of columns left out.
    pub fn fitted(&self, width: usize) -> (Table, usize) {
        const GAP: usize = 2;
        let (mut used, mut fit) = (0, 0);
        for (at, name) in self.columns.iter().enumerate() {
            let whole = self.is_whole(at);
            let widths = self.rows.iter().map(|row| shown(&row[at], whole).chars().count());
            used += widths.fold(name.chars().count(), usize::max) + GAP;
            if used > width + GAP && at > 0 {
                break;
            }
            fit = at + 1;
        }
        let rows = self.rows.iter().map(|row| row[..fit].to_vec()).collect();
        let columns = self.columns[..fit].to_vec();
        (Table { columns, rows }, self.columns.len() - fit)
    }

    /// Returns the rows with the columns `first` at the front, in this order; names of missing
    /// columns are ignored.
    pub fn with_first(&self, first: &[&str]) -> Table {
        let mut order: Vec<usize> = first.iter().filter_map(|name| self.column(name)).collect();
        order.extend((0..self.columns.len()).filter(|at| !first.contains(&&*self.columns[*at])));
        let pick = |row: &Vec<Value>| order.iter().map(|at| row[*at].clone()).collect();
        Table {
            columns: order.iter().map(|at| self.columns[*at].clone()).collect(),
            rows: self.rows.iter().map(pick).collect(),
        }
    }

    /// Returns the table for a terminal: numbers to the right, ratios with four digits, no frames.
    pub fn to_text(&self) -> String {
        let mut grid = Grid::new();
        grid.load_preset(presets::NOTHING);
        grid.set_header(&self.columns);
        let whole: Vec<bool> = (0..self.columns.len()).map(|at| self.is_whole(at)).collect();
        for row in &self.rows {
            grid.add_row(row.iter().zip(&whole).map(|(value, whole)| shown(value, *whole)));
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

/// Returns the width in characters of the terminal on standard output; `None` if it is no terminal.
pub fn terminal_width() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(size.ws_col).filter(|columns| *columns > 0)
}

fn shown(value: &Value, is_whole: bool) -> String {
    match value {
        Value::Float(x) if is_whole && x.is_finite() => format!("{x:.0}"),
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

    #[test]
    fn numbers_that_are_whole_have_no_digits_behind_the_point() {
        let mut table = Table::new(["mib", "ratio"]);
        table.rows.push(vec![24.0.into(), 0.5.into()]);
        table.rows.push(vec![250.0.into(), 1.0.into()]);
        assert_eq!(table.to_text(), "mib   ratio\n 24  0.5000\n250  1.0000\n");
    }

    #[test]
    fn what_does_not_fit_is_left_out_from_the_end_and_counted() {
        let mut table = Table::new(["a", "second", "third"]);
        table.rows.push(vec!["lru".into(), 5u64.into(), 7u64.into()]);
        let (fitted, left_out) = table.fitted(12);
        assert_eq!((fitted.columns.len(), left_out), (2, 1));
        assert!(fitted.to_text().lines().all(|line| line.len() <= 12));
        assert_eq!(table.fitted(1).0.columns, ["a"], "one at least");
        assert_eq!(table.fitted(100), (table.clone(), 0));
        assert_eq!(table.with_first(&["third", "none"]).columns, ["third", "a", "second"]);
    }
}
