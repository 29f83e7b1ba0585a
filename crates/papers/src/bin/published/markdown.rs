//! Tables in Markdown, with columns aligned for readers of the source.

/// Formats a table: its header, then its rows, all of one length.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, &width)| format!(" {cell:<width$} "));
        format!("|{}|\n", padded.collect::<Vec<_>>().join("|"))
    };
    let header: Vec<String> = header.iter().map(ToString::to_string).collect();
    let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
    let body: String = rows.iter().map(|row| line(row)).collect();
    format!("{}{}{body}", line(&header), line(&rule))
}

/// Formats a policy as on the command line.
pub fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Formats a number with separated thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let text = table(&["a", "long"], &[vec!["xyz".into(), "1".into()]]);
        assert_eq!(text, "| a   | long |\n| --- | ---- |\n| xyz | 1    |\n");
    }

    #[test]
    fn thousands_are_apart() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(914_145), "914,145");
        assert_eq!(grouped(1_000), "1,000");
    }
}
