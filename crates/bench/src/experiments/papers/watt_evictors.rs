//! WATT's isolated evictors (watt 6.3 and 6.4): evictions per second while nothing else runs, of
//! one thread (fig. 10) and over threads (fig. 12), as ratios to RANDOM's.
//!
//! In each cell the workload fills a pool of half of the data and then pauses while a quarter of
//! the pool is evicted; that several times, with all pages clean, and with all pages dirty. The
//! paper's pages are clean with its read-only workload and partly dirty with its others; the two
//! ends say more than a mixture. A cell's value is the median of its rounds: an eviction of a few
//! milliseconds is now and then interrupted by another process.

use millpond_base::Size;
use millpond_lab::experiment::{About, Figure, Grid, Need, Scale};
use millpond_lab::interval::Interval;
use millpond_lab::report::{Bar, BarPlot, Claim, Line, LinePlot, Section};
use millpond_lab::table::{Table, Value};
use millpond_workload::{tpcc, ycsb};

use super::live::{Job, LiveFigure, Loaded, cores};
use super::threads::thread_counts;
use super::verdict::{above, below, claim};
use super::watt_runs::{HYPERBOLIC, LEAN, POLICIES, READ_ONLY, TPCC, WATT};
use crate::error::BenchError;
use crate::experiments::evictors::Rates;
use crate::experiments::table::Row;
use crate::instance::Instance;
use crate::instance::eviction::{Evict, Out};
use crate::instance::setup::Setup;
use crate::run::client::Workload;
use crate::run::runner::{Length, Observer};

const FIG_10: About = About {
    id: "10",
    title: "Evictions per second of one evictor",
    asks: "How fast does one thread evict with each policy while nothing else runs, beside RANDOM, \
           and how many candidates does it look at for each page that goes?",
    says: "Lean eviction reaches 0.31 to 0.37 of RANDOM's evictions per second, WATT to 0.68 to \
           0.76, hyperbolic to 0.79 to 0.85; WATT to at least twice as many as lean eviction.",
};

const FIG_12: About = About {
    id: "12",
    title: "Evictions per second over evictors",
    asks: "How do evictions per second grow with the threads that evict?",
    says: "Clean pages (read-only YCSB): all but lean eviction scale very well, WATT as \
           hyperbolic does. Dirty pages (TPC-C): writing limits all of them, and they are alike.",
};

const RANDOM: &str = "random";
const CLEAN: &str = "clean";
const DIRTY: &str = "dirty";

/// Bytes of a page, as in the paper.
const PAGE: u32 = 4096;

fn workload(scale: Scale, name: &str) -> Workload {
    let threads = scale.pick(2, cores(), cores());
    let miniature = tpcc::Scale { warehouses: 8, items: 10_000, customers: 300 };
    match name {
        TPCC => {
            let data = scale.pick(tpcc::Scale::tiny(2), miniature, tpcc::Scale::full(250));
            Workload::Tpcc(tpcc::Config::standard(data, threads))
        }
        _ => {
            let rows = scale.pick(20_000, 1_000_000, 180_000_000);
            Workload::Ycsb(ycsb::Config { threads, ..ycsb::Config::watt(rows, 0) })
        }
    }
}

fn job(scale: Scale, name: &str, policy: &str, axes: Vec<(&'static str, Value)>) -> Job {
    let setup = Setup::new();
    let options = setup.options.policy(policy).page_size(PAGE);
    let pool = Some(Size::Share(0.5));
    let memory: u64 = scale.pick(128 << 20, 1 << 30, 140 << 30);
    Job {
        axes: [vec![("workload", name.into())], axes, vec![("policy", policy.into())]].concat(),
        setup: Setup { options, pool, ..setup },
        workload: workload(scale, name),
        // How long a cell takes depends on how often it fills its pool.
        warm_up: Length::NONE,
        measure: Length::NONE,
        need: Need { seconds: scale.pick(0.3, 2.5, 600.0), memory, disk: 0 },
    }
}

/// Rounds of a cell.
const ROUNDS: u32 = 5;

/// Evicts with `threads` threads, several times for each kind of pages: a row for each.
fn rows(
    (job, evictors): (&Job, u32),
    kinds: &[&str],
    instance: &mut dyn Instance,
    observer: &mut dyn Observer,
) -> Result<Vec<Row>, BenchError> {
    let mut outs: Vec<Vec<Out>> = vec![Vec::new(); kinds.len()];
    for _ in 0..ROUNDS {
        for (kind, outs) in kinds.iter().zip(&mut outs) {
            let what = Evict { threads: evictors, share: 0.25, dirty: *kind == DIRTY };
            if observer.stop() {
                return Err(BenchError::Stopped);
            }
            outs.push(instance.evict(&what, observer)?);
        }
    }
    let row = |(kind, outs): (&&str, Vec<Out>)| {
        let rates = Rates::of(&outs, evictors);
        Row::default()
            .with("state", *kind)
            .with("evictors", evictors)
            .with("evictions_per_s", median(outs.iter().map(Out::per_s).collect()))
            .with("candidates_per_eviction", rates.looked)
            .with("ns_per_candidate", rates.candidate_ns)
            .with("writes_per_eviction", rates.written)
            .with("evicted", rates.pages)
            .with("device", job.setup.device.to_string())
            .with_facts(instance.info())
    };
    Ok(kinds.iter().zip(outs).map(row).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn figure_10(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let of = |name| POLICIES.map(|policy| job(scale, name, policy, Vec::new()));
    let jobs = [READ_ONLY, TPCC].into_iter().flat_map(of).collect();
    LiveFigure::new(FIG_10, jobs, loaded, draw_10)
        .with_course(|job, instance, observer| rows((job, 1), &[CLEAN, DIRTY], instance, observer))
}

fn draw_10(rows: &Table) -> Section {
    let axes = ["workload", "state", "policy"];
    let grid = |column| Grid::of(rows, &axes, column);
    let (speed, looked) = (grid("evictions_per_s"), grid("candidates_per_eviction"));
    let (ns, written) = (grid("ns_per_candidate"), grid("writes_per_eviction"));
    let mut table = Table::new([
        "workload",
        "pages",
        "policy",
        "evictions/s",
        "over random",
        "low",
        "high",
        "candidates",
        "ns each",
        "writes",
    ]);
    let mut plot = BarPlot {
        title: "evictions per second over RANDOM's".to_string(),
        y: "ratio".to_string(),
        ..BarPlot::default()
    };
    for workload in speed.labels(0) {
        for pages in speed.labels(1) {
            for policy in speed.labels(2) {
                let place = [workload, pages, policy];
                let Some(value) = speed.ratio(&place, &[workload, pages, RANDOM]) else { continue };
                let (group, series) = (format!("{workload}, {pages}"), policy.to_string());
                plot.bars.push(Bar { group, series, value });
                let mut row: Vec<Value> = place.map(Value::from).into();
                row.extend([speed.mean(&place).into(), value.mean.into()]);
                row.extend([value.low.into(), value.high.into()]);
                row.extend([&looked, &ns, &written].map(|grid| grid.mean(&place).into()));
                table.rows.push(row);
            }
        }
    }
    Section {
        note: "The paper's ratios are of pages of which part is dirty, except for its read-only \
               workload; claims are about clean pages. Dirty ones are written to memory, which \
               takes most of the time and makes policies alike."
            .to_string(),
        plots: vec![plot.into()],
        table,
        claims: claims_10(&speed),
        ..Section::default()
    }
}

fn claims_10(speed: &Grid) -> Vec<Claim> {
    let over = |policy: &str, base: &str| {
        [READ_ONLY, TPCC].map(|w| (w, speed.ratio(&[w, CLEAN, policy], &[w, CLEAN, base])))
    };
    let (lean, watt) = (over(LEAN, RANDOM), over(WATT, RANDOM));
    vec![
        claim("lean eviction reaches at most 0.37 of RANDOM's evictions", &lean, below(0.37)),
        claim("WATT reaches at least 0.68 of them", &watt, above(0.68)),
        claim("hyperbolic to at least 0.79", &over(HYPERBOLIC, RANDOM), above(0.79)),
        claim("WATT evicts at least twice as fast as lean eviction", &over(WATT, LEAN), above(2.0)),
    ]
}

/// Which pages are evicted after which workload, as in the paper.
fn pages_of(workload: &str) -> &'static str {
    if workload == TPCC { DIRTY } else { CLEAN }
}

fn figure_12(scale: Scale, loaded: &Loaded) -> LiveFigure {
    let mut jobs = Vec::new();
    for name in [READ_ONLY, TPCC] {
        for evictors in thread_counts() {
            let axes = || vec![("evictors", evictors.into())];
            jobs.extend(POLICIES.map(|policy| job(scale, name, policy, axes())));
        }
    }
    LiveFigure::new(FIG_12, jobs, loaded, draw_12).with_course(|job, instance, observer| {
        let axis = |name: &str| job.axes.iter().find(|(axis, _)| *axis == name);
        let evictors = axis("evictors").and_then(|(_, value)| value.number()).unwrap_or(1.0);
        let kind = axis("workload").map_or(CLEAN, |(_, name)| pages_of(&name.to_string()));
        rows((job, evictors as u32), &[kind], instance, observer)
    })
}

fn draw_12(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["workload", "evictors", "policy"], "evictions_per_s");
    let mut section = Section::default();
    let (counts, policies) = (grid.labels(1), grid.labels(2));
    let (Some(least), Some(most)) = (counts.first(), counts.last()) else { return section };
    section.table =
        Table::new(["workload", "pages", "policy", "evictors", "evictions/s", "speed-up"]);
    for workload in grid.labels(0) {
        let mut lines = Vec::new();
        for policy in &policies {
            let mut line = Line { label: (*policy).to_string(), ..Line::default() };
            for count in &counts {
                let Some(value) = grid.interval(&[workload, count, policy]) else { continue };
                line.points.push((count.parse().unwrap_or(0.0), value.mean));
                line.band.push((value.low, value.high));
                let speed_up = grid.ratio(&[workload, count, policy], &[workload, least, policy]);
                let place = [workload, pages_of(workload), policy, count].map(Value::from);
                let numbers = [value.mean.into(), speed_up.map(|ratio| ratio.mean).into()];
                section.table.rows.push([&place[..], &numbers[..]].concat());
            }
            lines.push(line);
        }
        let plot = LinePlot {
            title: format!("{workload}, {} pages", pages_of(workload)),
            x: "threads that evict".to_string(),
            y: "evictions per second".to_string(),
            lines,
            ..LinePlot::default()
        };
        section.plots.push(plot.into());
    }
    section.claims = claims_12(&grid, least, most);
    section
}

fn claims_12(grid: &Grid, least: &str, most: &str) -> Vec<Claim> {
    let at_most = |workload: &str, above: &str, below: &str| {
        grid.ratio(&[workload, most, above], &[workload, most, below])
    };
    let grows = |policy: &'static str| -> (&'static str, Option<Interval>) {
        let place = |count| [READ_ONLY, count, policy];
        (policy, (least != most).then(|| grid.ratio(&place(most), &place(least))).flatten())
    };
    let threads: f64 = most.parse().unwrap_or(1.0);
    let over_lean = [("WATT over lean eviction:", at_most(READ_ONLY, WATT, LEAN))];
    let alike = [HYPERBOLIC, LEAN, RANDOM].map(|policy| (policy, at_most(TPCC, policy, WATT)));
    vec![
        claim(
            "clean pages: all but lean eviction are three quarters of N times as fast with N \
             all evictors as with one",
            &[WATT, HYPERBOLIC, RANDOM].map(grows),
            above(0.75 * threads),
        ),
        claim("WATT evicts them faster than lean eviction", &over_lean, above(1.0)),
        claim("dirty pages: with all evictors, all are within 15 % of WATT", &alike, (0.85, 1.15)),
    ]
}

/// Figures 10 and 12 for one scale.
pub(super) fn figures(scale: Scale, loaded: &Loaded) -> [Box<dyn Figure>; 2] {
    [Box::new(figure_10(scale, loaded)), Box::new(figure_12(scale, loaded))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_round_does_not_move_the_median() {
        assert_eq!(median(vec![5.0, 0.1, 4.0]), 4.0);
        assert_eq!(median(vec![2.0]), 2.0);
        assert_eq!(median(Vec::new()), 0.0);
    }

    #[test]
    fn claims_are_about_the_ratios_to_random() {
        let mut table = Table::new(["workload", "state", "policy", "evictions_per_s"]);
        for workload in [READ_ONLY, TPCC] {
            for (policy, per_s) in [(WATT, 70.0), (LEAN, 34.0), (HYPERBOLIC, 60.0), (RANDOM, 100.0)]
            {
                let place = [workload.into(), CLEAN.into(), policy.into(), per_s.into()];
                table.rows.push(place.into());
            }
        }
        let section = draw_10(&table);
        let holds: Vec<_> = section.claims.iter().map(|claim| claim.holds).collect();
        assert_eq!(holds, [Some(true), Some(true), Some(false), Some(true)]);
        assert_eq!(section.table.rows.len(), 8);
    }
}
