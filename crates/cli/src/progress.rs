//! Progress of long work on standard error, if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const STEPS: u64 = 10_000;

/// A progress bar with rate and time left.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Creates a bar; it draws nothing if `quiet`, or if standard error is no terminal.
    pub fn new(quiet: bool) -> Progress {
        let bar = ProgressBar::new(STEPS);
        if quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let style = "{spinner} {msg} [{bar:30}] {percent}% {elapsed} (left: {eta})";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar }
    }

    /// Shows the progress of `what`: the share done, the number of units done, and the
    /// rate.
    pub fn show(&self, what: &str, share: Option<f64>, done: u64, unit: &str) {
        let seconds = self.bar.elapsed().as_secs_f64().max(1e-3);
        let rate = done as f64 / seconds / 1e6;
        let amount = match done {
            0 => String::new(),
            _ => format!(", {:.1} M {unit}, {rate:.1} M/s", done as f64 / 1e6),
        };
        self.bar.set_message(format!("{what}{amount}"));
        if let Some(share) = share {
            self.bar.set_position((share * STEPS as f64) as u64);
        }
    }

    /// Prints a line above the bar, to standard error.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| crate::output::complain(line));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
