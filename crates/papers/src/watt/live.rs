//! WATT's live figures (watt 6): reads and writes per transaction, the cost of tracking to a
//! worker, scaling, and overall performance, against RANDOM, lean eviction and hyperbolic caching.
//!
//! The paper runs 120 workers over 264 to 588 GB with 8 GB of memory. Here data and pools are
//! smaller at its ratios of 1 : 30 to 1 : 70. Reads and writes per transaction do not depend on the
//! speed of the device, so they are measured over memory. Overall performance is measured over
//! memory that is slowed down to an NVMe drive. Evictions per second of an isolated evictor (figs
//! 10 and 12) are in `evictors`, pages per transaction (9) in `pages`, and the cost to a worker
//! (11) in `worker`.

use crate::experiment::{About, Figure, Grid, Scale};
use millpond::internals::store::HitDelivery;
use millpond_base::Size;
use millpond_device::SlowProfile;
use millpond_lab::report::{Line, LinePlot, Section};
use millpond_lab::table::Table;

use super::counted::Counter;
use super::runs::{
    BY_SETTING, HYPERBOLIC_SHARED, LEAN, MIXED, READ_ONLY, Shape, TPCC, WATT, judged, named,
    of_each, over_watt, with_grid,
};
use super::{evictors, modes, pages, worker};
use crate::live::threads::thread_counts;
use crate::live::{LiveFigure, Loaded, cores};
use millpond_bench::instance::setup::DeviceSpec;
use millpond_lab::verdict::{above, at_least, below, claim};

const FIG_13: About = About {
    id: "13",
    title: "Overall performance",
    asks: "How many transactions per second are there with each policy, all things together?",
    says: "WATT is the fastest everywhere: on YCSB 90/10 6 % faster than hyperbolic, on TPC-C of \
           both sizes 7 % faster than hyperbolic and lean eviction, and random is at least 22 % \
           slower than WATT there.",
};

const WORKERS: About = About {
    id: "workers",
    title: "Scaling over worker threads, in memory",
    asks: "What does keeping a policy's statistics cost as threads are added? Beside the paper's \
           policies: LRU behind a mutex that every hit takes, and that hits take by the batch.",
    says: "(leanstore V-B, gilbert 1.3.5) A list behind one latch does not scale.",
};

fn figure_13(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let seconds = scale.pick(0.05, 2.0, 600.0);
    let mut jobs = Vec::new();
    // The data of the quick scale are too small for a pool of a seventieth.
    let settings = [(READ_ONLY, 50), (MIXED, 50), (TPCC, 30), (TPCC, 70)];
    for (name, ratio) in settings.into_iter().take(scale.pick(3, 4, 4)) {
        let shape = Shape {
            scale,
            pool: Some(Size::Share(1.0 / f64::from(ratio))),
            device: scale.pick(
                DeviceSpec::Memory,
                DeviceSpec::Slow(SlowProfile::NVME),
                DeviceSpec::Slow(SlowProfile::NVME),
            ),
            threads: scale.pick(2, cores(), cores()),
            seconds,
        };
        jobs.extend(with_grid(scale, true).into_iter().map(|policy| {
            let axes = vec![("ratio", format!("1 : {ratio}").into()), ("policy", policy.into())];
            shape.job(name, policy, axes)
        }));
    }
    LiveFigure::new(FIG_13, jobs, loaded, draw_13)
}

/// WATT's transactions per second over each slower policy's: the printed number, or `None` if the
/// paper prints none, so that only *more* is claimed.
const PRINTED_13: [(&str, &str, &str, Option<f64>); 12] = [
    (READ_ONLY, "1 : 50", HYPERBOLIC_SHARED, None),
    (READ_ONLY, "1 : 50", LEAN, None),
    (READ_ONLY, "1 : 50", "random", None),
    (MIXED, "1 : 50", HYPERBOLIC_SHARED, Some(1.06)),
    (MIXED, "1 : 50", LEAN, None),
    (MIXED, "1 : 50", "random", None),
    (TPCC, "1 : 30", HYPERBOLIC_SHARED, Some(1.07)),
    (TPCC, "1 : 30", LEAN, Some(1.07)),
    (TPCC, "1 : 30", "random", Some(1.0 / 0.78)),
    (TPCC, "1 : 70", HYPERBOLIC_SHARED, Some(1.07)),
    (TPCC, "1 : 70", LEAN, Some(1.07)),
    (TPCC, "1 : 70", "random", Some(1.0 / 0.78)),
];

fn draw_13(rows: &Table) -> Section {
    let grid = Grid::of(rows, &BY_SETTING, "throughput_per_s");
    let mut section = Section::default();
    over_watt(&grid, "transactions per second", &mut section);
    for (workload, ratio, policy, printed) in PRINTED_13 {
        let over = of_each(&judged(policy), |policy| {
            grid.ratio(&[workload, ratio, WATT], &[workload, ratio, policy])
        });
        let (says, bound) = match printed {
            Some(printed) => (format!("at least {printed:.2} times"), at_least(printed)),
            None => ("more than".to_string(), above(1.0)),
        };
        let policy = named(policy);
        let says = format!("{workload}, {ratio}: WATT does {says} what {policy} does");
        section.claims.push(claim(&says, &over, bound));
    }
    section
}

fn workers(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let seconds = scale.pick(0.05, 1.0, 60.0);
    let batched = format!("lru, {}", HitDelivery::Batched);
    let mut jobs = Vec::new();
    for name in [READ_ONLY, TPCC] {
        for threads in thread_counts() {
            let shape = Shape { scale, pool: None, device: DeviceSpec::Memory, threads, seconds };
            for label in [WATT, LEAN, "random", "lru", &batched] {
                let policy = if label == batched { "lru" } else { label };
                let axes = vec![("workers", threads.into()), ("policy", label.into())];
                let mut job = shape.job(name, policy, axes);
                if label == batched {
                    job.setup.options.lab.hit_delivery = HitDelivery::Batched;
                }
                jobs.push(job);
            }
        }
    }
    LiveFigure::new(WORKERS, jobs, loaded, draw_workers)
}

fn draw_workers(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["workload", "workers", "policy"], "throughput_per_s");
    let mut section = Section::default();
    let (threads, policies) = (grid.labels(1), grid.labels(2));
    let (Some(least), Some(most)) = (threads.first(), threads.last()) else { return section };
    section.table = Table::new(["workload", "policy", "workers", "tx/s", "speed-up"]);
    for workload in grid.labels(0) {
        let mut lines = Vec::new();
        for policy in &policies {
            let mut line = Line { label: (*policy).to_string(), ..Line::default() };
            for count in &threads {
                let Some(value) = grid.interval(&[workload, count, policy]) else { continue };
                line.points.push((count.parse().unwrap_or(0.0), value.mean));
                line.band.push((value.low, value.high));
                let speed_up = grid.ratio(&[workload, count, policy], &[workload, least, policy]);
                let row = [workload.into(), (*policy).into(), (*count).into(), value.mean.into()];
                let speed_up = speed_up.map(|ratio| ratio.mean).into();
                section.table.rows.push(row.into_iter().chain([speed_up]).collect());
            }
            lines.push(line);
        }
        let plot = LinePlot {
            title: format!("{workload}, in memory"),
            x: "worker threads".to_string(),
            y: "transactions per second".to_string(),
            lines,
            ..LinePlot::default()
        };
        section.plots.push(plot.into());
    }
    let batched = format!("lru, {}", HitDelivery::Batched);
    let over = |above: &str, below: &str| {
        [READ_ONLY, TPCC].map(|name| (name, grid.ratio(&[name, most, above], &[name, most, below])))
    };
    section.claims = vec![
        claim(
            "with all threads, LRU behind a mutex is slower than RANDOM",
            &over("lru", "random"),
            below(1.0),
        ),
        claim(
            "with batched hits, it is faster than with exact ones",
            &over(&batched, "lru"),
            above(1.0),
        ),
        claim("WATT is at most 2 % slower than RANDOM", &over(WATT, "random"), above(0.98)),
    ];
    section
}

/// Returns the live figures for one scale; with a counter, figure 11 includes its counts.
pub fn figures(scale: Scale, counter: Option<Counter>) -> Vec<Box<dyn Figure>> {
    let loaded = Loaded::default();
    let live = |figure: LiveFigure| Box::new(figure) as Box<dyn Figure>;
    let [figure_10, figure_12] = evictors::figures(scale, &loaded);
    vec![
        live(pages::figure_9(scale, &loaded)),
        live(pages::figure_9_whole(scale, &loaded)),
        figure_10,
        worker::figure_11(scale, &loaded, counter),
        figure_12,
        live(figure_13(scale, &loaded)),
        live(workers(scale, &loaded)),
        live(modes::figure(scale, &loaded)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::runs::tests::{made_up, verdicts};
    use super::*;

    const SETTINGS: [(&str, &str); 4] =
        [(READ_ONLY, "1 : 50"), (MIXED, "1 : 50"), (TPCC, "1 : 30"), (TPCC, "1 : 70")];

    #[test]
    fn figure_13_wants_the_lead_that_is_printed_and_else_a_lead() {
        let columns = ["throughput_per_s", "other"];
        let lead = |random: f64, others: f64| {
            let section = draw_13(&made_up(&SETTINGS, columns, |_, _, policy| match policy {
                WATT => [1000.0, 0.0],
                "random" => [1000.0 / random, 0.0],
                _ => [1000.0 / others, 0.0],
            }));
            verdicts(&section)
        };
        assert_eq!(lead(1.3, 1.07), [Some(true); 12]);
        let behind = [3, 6, 7, 8, 9, 10, 11];
        for (at, verdict) in lead(1.2, 1.03).into_iter().enumerate() {
            assert_eq!(verdict, Some(!behind.contains(&at)), "{:?}", PRINTED_13[at]);
        }
        assert_eq!(lead(0.9, 0.9), [Some(false); 12]);
    }

    #[test]
    fn lean_eviction_is_judged_by_the_best_of_its_grid() {
        let columns = ["throughput_per_s", "reads_per_tx"];
        let of = |best: f64| {
            made_up(&SETTINGS, columns, move |_, _, policy| match policy {
                WATT => [1000.0, 1.0],
                "lean-evict(cooling=50%)" => [1000.0 / best, best],
                _ => [1000.0 / 1.5, 1.5],
            })
        };
        let lean = |section: Section| {
            let all = section.claims.into_iter().filter(|claim| claim.says.contains("lean"));
            all.map(|claim| claim.holds).collect::<Vec<_>>()
        };
        assert_eq!(lean(draw_13(&of(1.2))), [Some(true); 4]);
        assert_eq!(lean(draw_13(&of(0.9))), [Some(false); 4], "one stage is faster than WATT");
        let mut rows = of(1.2);
        rows.rows.retain(|row| row[2] != "lean-evict(cooling=50%)".into());
        assert_eq!(lean(draw_13(&rows)), [None; 4], "a stage was not run");
    }
}
