//! Watches a live run of the tour: its line on the screen, Ctrl-C, and its series from the first
//! moment on, warm-up included.

use millpond_bench::run::runner::{Observer, Tick};

use crate::bench::ProgressLine;

/// Shows a run and remembers its series.
pub(super) struct Watch {
    live: ProgressLine,
    /// Each interval, and the second at which it ended, counted from the run's beginning.
    pub(super) ticks: Vec<(f64, Tick)>,
}

impl Watch {
    pub(super) fn new(quiet: bool) -> Watch {
        Watch { live: ProgressLine::new(quiet), ticks: Vec::new() }
    }

    /// Takes the line away.
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
