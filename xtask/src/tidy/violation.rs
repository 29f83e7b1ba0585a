//! One broken rule at one line.

use std::fmt;

/// A finding of a check: its place, its rule, and a message that names the fault and the
/// remedy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub file: String,
    pub line: usize,
    pub rule: &'static str,
    pub what: String,
}

impl Violation {
    pub fn new(file: &str, line: usize, rule: &'static str, what: impl Into<String>) -> Self {
        Violation { file: file.to_string(), line, rule, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file, self.line, self.rule, self.what)
    }
}

/// Returns line and rule of each finding, by which tests compare.
#[cfg(test)]
pub fn brief(found: &[Violation]) -> Vec<(usize, &'static str)> {
    found.iter().map(|v| (v.line, v.rule)).collect()
}
