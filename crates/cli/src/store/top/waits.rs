//! Waits that use no CPU time, as a table with bars.

use millpond::internals::stats::Wait;

use super::sampler::Interval;
use super::units::{NONE, count, time};

/// Width of the narrowest useful bar.
const BAR_MIN: usize = 8;
const NAME: usize = 9;
/// Columns beside the name, each with its width including the blank before it. On a narrow
/// screen, the last of `BY_IMPORTANCE` is dropped first.
const COLUMNS: [(&str, usize); 5] = [("now", 7), ("recent", 7), ("/s", 8), ("each", 9), ("s/s", 7)];
const BY_IMPORTANCE: [usize; 5] = [4, 0, 2, 3, 1];

/// Returns the name of a wait, for people.
pub(super) fn name(what: Wait) -> &'static str {
    match what {
        Wait::Latch => "latch",
        Wait::Lock => "lock",
        Wait::Log => "log flush",
        Wait::LogSpace => "log space",
        Wait::Page => "page read",
        Wait::Frame => "frame",
    }
}

/// Returns a line of column heads and a line for each wait. No line is wider than `width`,
/// unless not even the first column fits.
pub(super) fn table(interval: Option<&Interval>, width: usize) -> Vec<String> {
    let mut shown = [false; COLUMNS.len()];
    let mut used = NAME;
    for (rank, column) in BY_IMPORTANCE.into_iter().enumerate() {
        // A bar is worth more than the columns after the second.
        let bar = if rank < 2 { 0 } else { BAR_MIN + 1 };
        if used + COLUMNS[column].1 + bar <= width {
            used += COLUMNS[column].1;
            shown[column] = true;
        }
    }
    let bar_width = width.saturating_sub(used + 1);
    let shares = Wait::ALL.map(|what| interval.map_or(0.0, |i| i.waiting_share(what)));
    let scale = shares.into_iter().fold(1.0, f64::max);
    let row = |name: &str, cells: [String; COLUMNS.len()], bar: String| {
        let mut line = format!("{name:NAME$}");
        for (at, cell) in cells.iter().enumerate().filter(|(at, _)| shown[*at]) {
            line.push_str(&format!("{cell:>w$}", w = COLUMNS[at].1));
        }
        if bar_width >= BAR_MIN && !bar.is_empty() {
            line.push_str(&format!(" {bar}"));
        }
        line
    };
    let heads = COLUMNS.map(|(head, _)| head.to_string());
    let mut lines = vec![row("", heads, ruler(scale, bar_width))];
    for (at, what) in Wait::ALL.into_iter().enumerate() {
        let cells = match interval {
            Some(i) => [
                format!("{:.1}", i.waiting[at]),
                format!("{:.1}", i.waiting_recently[at]),
                count(i.rate(i.stats.counter(what.counter()))),
                mean(i, what),
                format!("{:.2}", shares[at]),
            ],
            None => COLUMNS.map(|_| NONE.to_string()),
        };
        lines.push(row(name(what), cells, bar(shares[at] / scale, bar_width)));
    }
    lines
}

fn mean(interval: &Interval, what: Wait) -> String {
    let latency = interval.stats.latency(what.timing());
    if latency.count == 0 { NONE.to_string() } else { time(latency.mean_ns as f64) }
}

/// Returns a ruler with the value of a full bar at its right end.
fn ruler(scale: f64, width: usize) -> String {
    let end = format!("{scale:.1} s/s|");
    if width < end.len() + 1 {
        return String::new();
    }
    format!("|{end:>w$}", w = width - 1)
}

/// Returns a bar that fills `share` of the width, in eighths of a column.
fn bar(share: f64, width: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.extend("▏▎▍▌▋▊▉".chars().nth(eighths % 8 - 1));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_its_share_of_the_width() {
        assert_eq!(bar(0.0, 10), "");
        assert_eq!(bar(0.5, 10), "█████");
        assert_eq!(bar(0.25, 10), "██▌");
        assert_eq!(bar(7.0, 3), "███");
        assert_eq!(ruler(2.5, 12), "|   2.5 s/s|");
        assert_eq!(ruler(2.5, 8), "");
    }

    #[test]
    fn columns_leave_with_the_width_and_the_share_stays_longest() {
        let heads = |width| table(None, width)[0].clone();
        let has = |width, head: &str| heads(width).split_whitespace().any(|word| word == head);
        assert!(has(16, "s/s") && !has(16, "now"));
        assert!(has(25, "now") && !has(25, "/s"));
        assert!(has(42, "/s") && !has(42, "each") && has(42, "|"));
        assert!(COLUMNS.iter().all(|(head, _)| has(72, head)));
    }
}
