//! Counts tests in the output of `cargo test`.

use std::ops::AddAssign;

/// Tests that passed, failed, or were left out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Tally {
    /// Reads a line such as `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; …`.
    pub fn of_line(line: &str) -> Option<Self> {
        let counts = line.trim().strip_prefix("test result: ")?.split_once(". ")?.1;
        let mut tally = Tally::default();
        for part in counts.split(';') {
            let mut words = part.split_whitespace();
            let (Some(count), Some(what)) = (words.next(), words.next()) else { continue };
            let Ok(count) = count.parse::<u64>() else { continue };
            match what {
                "passed" => tally.passed = count,
                "failed" => tally.failed = count,
                "ignored" => tally.skipped = count,
                _ => {}
            }
        }
        Some(tally)
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_counted_and_others_are_not() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 7 filtered \
                    out; finished in 0.05s";
        let expected = Tally { passed: 12, failed: 3, skipped: 1 };
        assert_eq!(Tally::of_line(line), Some(expected));
        assert_eq!(Tally::of_line("test tidy::tests::a ... ok"), None);
        assert_eq!(Tally::of_line("running 3 tests"), None);
    }
}
