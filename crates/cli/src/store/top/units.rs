//! Numbers for people, eight characters at most.

/// Placeholder for a missing number.
pub(super) const NONE: &str = "–";

/// Formats a count, or events per second: `0.4`, `123`, `1,234`, `12.3 k`, `4.5 M`.
pub(super) fn count(number: f64) -> String {
    match number {
        0.0 => "0".to_string(),
        n if n < 9.95 => format!("{n:.1}"),
        n if n < 999.5 => format!("{n:.0}"),
        n if n < 9_999.5 => {
            let n = n.round() as u64;
            format!("{},{:03}", n / 1000, n % 1000)
        }
        n => scaled(n, 1000.0, &["", "k", "M", "G", "T", "P", "E"]),
    }
}

/// Formats a current number: like a count, but whole.
pub(super) fn level(number: u64) -> String {
    if number < 10 { number.to_string() } else { count(number as f64) }
}

/// Formats bytes: `0 B`, `12.3 KiB`.
pub(super) fn bytes(number: f64) -> String {
    scaled(number, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

/// Formats a time: `850 ns`, `12.3 µs`, `4.5 ms`, `12.0 s`.
pub(super) fn time(ns: f64) -> String {
    scaled(ns, 1000.0, &["ns", "µs", "ms", "s"])
}

/// Formats a share: `99.93 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// Formats the time that a store has been open: `1:02:03`.
pub(super) fn clock(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Formats a number with the unit that leaves up to three digits before the point, except
/// for the last unit.
fn scaled(number: f64, step: f64, units: &[&str]) -> String {
    let (mut number, mut at) = (number, 0);
    // A number that would round to 1000 becomes a 1 of the next unit.
    while number >= 999.5 && at + 1 < units.len() {
        number /= step;
        at += 1;
    }
    match number {
        n if at > 0 && n < 99.95 => format!("{n:.1} {}", units[at]),
        n => format!("{n:.0} {}", units[at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_keep_three_digits() {
        let counts = [0.0, 0.44, 9.94, 9.96, 123.4, 999.6, 1234.4, 9_999.6, 123_456.0, 4.56e6];
        let shown = counts.map(count);
        let expected =
            ["0", "0.4", "9.9", "10", "123", "1,000", "1,234", "10.0 k", "123 k", "4.6 M"];
        assert_eq!(shown, expected);
        assert_eq!([0, 7, 10, 1234].map(level), ["0", "7", "10", "1,234"]);
        assert_eq!([0.0, 1000.0, 1536.0, 5e9].map(bytes), ["0 B", "1.0 KiB", "1.5 KiB", "4.7 GiB"]);
        let times = [850.0, 999.6, 12_345.0, 4.5e6, 12e9, 5e12].map(time);
        assert_eq!(times, ["850 ns", "1.0 µs", "12.3 µs", "4.5 ms", "12.0 s", "5000 s"]);
        assert_eq!((percent(0.99926), clock(3723.9)), ("99.93 %".into(), "1:02:03".into()));
    }

    #[test]
    fn no_number_is_longer_than_its_column() {
        for exponent in -3..19 {
            for digits in [1.0, 9.4, 9.95, 9.996, 9.9996] {
                let number = digits * 10f64.powi(exponent);
                for text in [count(number), bytes(number)] {
                    assert!(text.chars().count() <= 8, "{number}: {text}");
                }
            }
        }
    }
}
