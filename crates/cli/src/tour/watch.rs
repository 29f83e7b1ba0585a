//! Watches a live run of the tour: its line on the screen, Ctrl-C, and its time series from the
//! start, warm-up included.

use millpond_bench::run::runner::{Observer, Tick};

use crate::bench::ProgressLine;

/// Shows a run and remembers its series.
pub(super) struct Watch {
    live: ProgressLine,
    /// Each interval with its end, in seconds from the start of the run.
    pub(super) ticks: Vec<(f64, Tick)>,
}

impl Watch {
    pub(super) fn new(quiet: bool) -> Watch {
        Watch { live: ProgressLine::new(quiet), ticks: Vec::new() }
    }

    /// Removes the line.
    pub(super) fn finish(&self) {
        self.live.finish();
    }
}

impl Observer for Watch {
    fn begin(&mut self, what: &str) {
        self.live.begin(what);
    }

    fn tick(&mut self, tick: &Tick) {
        let before = self.ticks.last().map_or(0.0, |(at, _)| *at);
        self.ticks.push((before + tick.seconds, *tick));
        self.live.tick(tick);
    }

    fn stop(&self) -> bool {
        self.live.stop()
    }
}
