//! The live line of a run on standard error, if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use millpond_bench::run::runner::{Observer, Tick};

use crate::interrupt;

/// Shows the progress of a run, and ends the run on Ctrl-C.
pub struct ProgressLine {
    bar: ProgressBar,
    what: String,
}

impl ProgressLine {
    /// Creates a line; it draws nothing if `quiet`, or if standard error is no terminal.
    pub fn new(quiet: bool) -> ProgressLine {
        let bar = ProgressBar::new_spinner();
        if quiet {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        ProgressLine { bar, what: String::new() }
    }

    /// Removes the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Formats the numbers of an interval as one line.
pub(crate) fn line(tick: &Tick) -> String {
    let rate = |events: u64| events as f64 / tick.seconds.max(1e-9);
    let mut text = format!("{:.0} tx/s", rate(tick.transactions));
    if let Some(counts) = tick.counts {
        text += &format!(
            ", hit rate {:.2} %, {:.0} writes/s, {:.0} reads/s",
            counts.hit_ratio() * 100.0,
            rate(counts.writes),
            rate(counts.reads)
        );
        if let Some(share) = counts.tier_share() {
            text += &format!(", {:.0} % of them by the second tier", share * 100.0);
        }
    }
    if tick.is_warm_up { format!("{text} (warm-up)") } else { text }
}

impl Observer for ProgressLine {
    fn begin(&mut self, what: &str) {
        self.what = what.to_string();
        self.bar.set_message(self.what.clone());
    }

    fn tick(&mut self, tick: &Tick) {
        self.bar.set_message(format!("{}: {}", self.what, line(tick)));
    }

    fn stop(&self) -> bool {
        interrupt::asked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_bench::run::counts::Counts;

    #[test]
    fn the_line_says_rates_not_counts() {
        let counts = Counts { references: 100, misses: 1, reads: 7, ..Counts::default() };
        let tick = Tick {
            at_s: 2.0,
            seconds: 0.5,
            transactions: 600,
            counts: Some(counts),
            is_warm_up: false,
        };
        assert_eq!(line(&tick), "1200 tx/s, hit rate 99.00 %, 0 writes/s, 14 reads/s");
        let twin = Tick { counts: None, is_warm_up: true, ..tick };
        assert_eq!(line(&twin), "1200 tx/s (warm-up)");
    }
}
