//! Text that is safe inside a page, and numbers that are quick to read.

/// The style sheet of every page and plot.
pub(super) const STYLE: &str = include_str!("style.css");

/// Returns the text with HTML's special characters escaped.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Formats a count as 950, 12.3k or 4.56M.
pub(super) fn short(x: f64) -> String {
    let digits = |scaled: f64, unit: &str| {
        let text = match scaled.abs() {
            s if s >= 100.0 => format!("{scaled:.0}"),
            s if s >= 10.0 => format!("{scaled:.1}"),
            _ => format!("{scaled:.2}"),
        };
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        } else {
            text
        };
        format!("{text}{unit}")
    };
    match x.abs() {
        a if a >= 1e9 => digits(x / 1e9, "G"),
        a if a >= 1e6 => digits(x / 1e6, "M"),
        a if a >= 1e3 => digits(x / 1e3, "k"),
        _ => digits(x, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_names_stays_text() {
        assert_eq!(escaped("<b a='1'>&\""), "&lt;b a=&#39;1&#39;&gt;&amp;&quot;");
    }

    #[test]
    fn counts_are_short() {
        let shown = [0.0, 950.0, 1000.0, 12345.0, 4.56e6, 2e9].map(short);
        assert_eq!(shown, ["0", "950", "1k", "12.3k", "4.56M", "2G"]);
    }
}
