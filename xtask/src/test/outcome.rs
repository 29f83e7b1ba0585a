//! Outcome and cost of a step.

use std::time::Duration;

use super::tally::Tally;

/// The outcome of one step.
#[derive(Debug, Default)]
pub struct Outcome {
    pub name: &'static str,
    /// The command to repeat, if it failed.
    pub failed: Option<String>,
    /// Reason that it did not run, if it did not.
    pub skipped: Option<String>,
    pub tests: Tally,
    /// Time to compile. Examples in the documentation are compiled as they run, and count
    /// as running.
    pub compile: Duration,
    pub run: Duration,
}

impl Outcome {
    /// Returns the tally of the step's tests, with the step itself as one more.
    pub fn tally(&self) -> Tally {
        let mut tally = self.tests;
        match (&self.failed, &self.skipped) {
            (Some(_), _) => tally.failed += 1,
            (None, Some(_)) => tally.skipped += 1,
            (None, None) => tally.passed += 1,
        }
        tally
    }

    /// Returns the seconds for compiling and running.
    pub fn seconds(&self) -> f64 {
        (self.compile + self.run).as_secs_f64()
    }
}
