//! The result as a page: bars for each workload, drawn as SVG, with no script and nothing fetched.

use std::fmt::Write;

use crate::report::Row;

/// Height of a bar and of the space that it has, and where bars begin, in units of the drawing.
const BAR: f64 = 16.0;
const STEP: f64 = 22.0;
const LEFT: f64 = 90.0;
const WIDTH: f64 = 420.0;

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c2430; background: #fff; }
h2 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
svg { width: 100%; height: auto; }
text { font: 12px system-ui, sans-serif; fill: currentColor; }
.ours { fill: #1f77b4; } .theirs { fill: #9aa7b5; }
p { color: #5b6673; }
@media (prefers-color-scheme: dark) { body { color: #dde3ea; background: #14181d; }
  .theirs { fill: #5d6b7a; } p { color: #98a3af; } }
";

/// The page. `title` and `note` are shown above the drawings.
pub fn page(title: &str, note: &str, rows: &[Row]) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style><h1>{title}</h1><p>{note}</p>",
        title = escaped(title),
        note = escaped(note),
    );
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let is_same = |row: &&Row| (row.workload, row.threads) == (first.workload, first.threads);
        let count = rest.iter().take_while(is_same).count();
        group(&mut out, &rest[..count]);
        rest = &rest[count..];
    }
    out.push_str("</html>\n");
    out
}

fn group(out: &mut String, rows: &[Row]) {
    let Some(first) = rows.first() else { return };
    let unit = match first.workload {
        crate::workload::Workload::FullScan => "rows",
        crate::workload::Workload::Tpcc => "transactions",
        _ => "operations",
    };
    let threads = if first.threads == 1 { "thread" } else { "threads" };
    let _ = write!(
        out,
        "<h2>{}, {} {threads} ({unit} per second)</h2>\n<svg viewBox=\"0 0 {} {}\" role=\"img\">",
        first.workload.name(),
        first.threads,
        LEFT + WIDTH + 250.0,
        STEP * rows.len() as f64 + 4.0,
    );
    let most = rows.iter().map(|row| row.rate).fold(f64::MIN_POSITIVE, f64::max);
    for (at, row) in rows.iter().enumerate() {
        let (y, width) = (STEP * at as f64, WIDTH * row.rate / most);
        let class = if row.ratio.is_none() { "ours" } else { "theirs" };
        let mut label = short(row.rate);
        if let Some(ratio) = row.ratio {
            let _ = write!(label, "  ×{:.2}", ratio.mean);
            if ratio.low.is_finite() {
                let _ = write!(label, " ({:.2}–{:.2})", ratio.low, ratio.high);
            }
        }
        if let Some(space) = row.bytes_per_raw {
            let _ = write!(label, "  space {space:.2}");
        }
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">{}</text>\
             <rect class=\"{class}\" x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" \
             height=\"{BAR}\"/><text x=\"{:.1}\" y=\"{text}\">{label}</text>",
            LEFT - 6.0,
            escaped(&row.engine),
            LEFT + width + 6.0,
            text = y + BAR - 4.0,
        );
    }
    out.push_str("</svg>\n");
}

fn short(rate: f64) -> String {
    match rate {
        r if r >= 1e6 => format!("{:.2} M", r / 1e6),
        r if r >= 1e4 => format!("{:.0} k", r / 1e3),
        r if r >= 1e3 => format!("{:.1} k", r / 1e3),
        r => format!("{r:.0}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::Ratio;
    use crate::workload::Workload;

    #[test]
    fn each_workload_has_a_drawing_and_each_engine_a_bar() {
        let row = |engine: &str, rate, ratio, threads| Row {
            workload: Workload::Zipf,
            threads,
            engine: engine.to_string(),
            rate,
            ratio,
            p50_us: None,
            p99_us: None,
            bytes_per_raw: None,
            reads_per_op: None,
            read_bytes_per_op: None,
            commits_per_flush: None,
        };
        let ratio = Ratio::of([(2.0, 1.0), (2.0, 1.0)]);
        let rows =
            [row("millpond", 2e6, None, 1), row("a<b", 1e6, ratio, 1), row("x", 5.0, ratio, 2)];
        let page = page("Title", "note", &rows);
        assert_eq!(page.matches("<svg").count(), 2);
        assert_eq!(page.matches("<rect").count(), 3);
        assert!(page.contains("a&lt;b") && page.contains("×2.00 (2.00–2.00)"));
        assert!(page.contains("2.00 M") && page.contains("width=\"210.0\""));
    }
}
