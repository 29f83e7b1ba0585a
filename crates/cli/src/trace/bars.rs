//! Bars of text: a plot for a terminal.

const WIDTH: usize = 40;

/// Returns one line per bar: label, bar, value. The longest bar has 40 characters.
pub(super) fn bars(rows: &[(String, f64, String)]) -> String {
    let most = rows.iter().map(|(_, value, _)| *value).fold(0.0, f64::max);
    let label_width = rows.iter().map(|(label, _, _)| label.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (label, value, shown) in rows {
        let eighths = if most > 0.0 { (value / most * WIDTH as f64 * 8.0).round() } else { 0.0 };
        let eighths = eighths as usize;
        let mut bar = "█".repeat(eighths / 8);
        if !eighths.is_multiple_of(8) {
            bar.extend("▏▎▍▌▋▊▉".chars().nth(eighths % 8 - 1));
        }
        let pad = " ".repeat(label_width - label.chars().count());
        text.push_str(&format!("  {pad}{label}  {bar} {shown}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion() {
        let rows = [("a", 4.0), ("bb", 2.0), ("c", 0.0)];
        let rows = rows.map(|(l, v): (&str, f64)| (l.to_string(), v, v.to_string()));
        let text = bars(&rows);
        let blocks: Vec<usize> =
            text.lines().map(|l| l.chars().filter(|c| *c == '█').count()).collect();
        assert_eq!(blocks, [40, 20, 0]);
    }
}
