//! Modes of eviction: by workers that need frames, by dedicated threads, or by an adaptive number
//! of dedicated threads (watt 5.3). The figure shows the throughput of the same runs under each
//! mode, with data larger than the pool.

use crate::experiment::{About, Grid, Scale};
use millpond::EvictionMode;
use millpond_base::Size;
use millpond_device::SlowProfile;
use millpond_lab::report::Section;
use millpond_lab::table::Table;

use super::runs::{MIXED, Shape, TPCC, WATT, bars};
use crate::live::{LiveFigure, Loaded, cores};
use millpond_bench::instance::setup::DeviceSpec;
use millpond_lab::verdict::{above, claim};

const ABOUT: About = About {
    id: "eviction",
    title: "Who evicts",
    asks: "How many transactions per second are there where workers evict for themselves, where \
           one or two threads do it for them, and where threads are woken as they are needed?",
    says: "(watt 5.3) Threads of their own evict pages, so that workers need not wait for it.",
};

const WORKERS: &str = "worker";
/// Modes, by their names on the command line.
const MODES: [&str; 4] = [WORKERS, "threads(1)", "threads(2)", "adaptive(2)"];

pub(super) fn figure(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let nvme = DeviceSpec::Slow(SlowProfile::NVME);
    let mut jobs = Vec::new();
    for name in [MIXED, TPCC] {
        for mode in MODES {
            let shape = Shape {
                scale,
                pool: Some(Size::Share(0.2)),
                device: scale.pick(DeviceSpec::Memory, nvme.clone(), nvme.clone()),
                threads: scale.pick(2, cores(), cores()),
                seconds: scale.pick(0.05, 1.5, 300.0),
            };
            let mut job = shape.job(name, WATT, vec![("mode", mode.into())]);
            job.setup.options.lab.eviction = mode.parse().unwrap_or(EvictionMode::Worker);
            jobs.push(job);
        }
    }
    LiveFigure::new(ABOUT, jobs, loaded, draw)
}

fn draw(rows: &Table) -> Section {
    let axes = ["workload", "mode"];
    let title = "transactions per second over those with workers that evict";
    let mut section = bars(rows, axes, "throughput_per_s", title, WORKERS);
    let grid = Grid::of(rows, &axes, "throughput_per_s");
    let over = [MIXED, TPCC].map(|w| (w, grid.ratio(&[w, "adaptive(2)"], &[w, WORKERS])));
    let says = "as many evictor threads as are needed cost at most 5 % of the throughput";
    section.claims.push(claim(says, &over, above(0.95)));
    section.note = "WATT, a pool of a fifth of the data, as many workers as cores: evictor \
                    threads take their time from the workers, unless these wait for the device."
        .to_string();
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_one_of_the_engine_s() {
        for mode in MODES {
            assert_eq!(mode.parse::<EvictionMode>().unwrap().to_string(), mode);
        }
    }
}
