//! WATT's isolated evictors (watt 6.3 and 6.4): evictions per second while nothing else runs, of
//! one thread (fig. 10) and over threads (fig. 12), as ratios to RANDOM's.
//!
//! In each cell the workload fills a pool of half of the data and then pauses while a quarter of
//! the pool is evicted. This happens several times: with the pages as the workload left them, with
//! all pages clean, and with all pages dirty. The paper evicts beside its workloads, so its
//! statements are about the first case. Its hyperbolic caching differs from its WATT only in the
//! tracked data and in the value of a page (watt 6.1). Claims are about that form; the form that
//! draws a sample for each victim runs beside it. A cell's value is the median of its rounds, since
//! other processes sometimes interrupt an eviction of a few milliseconds.

use crate::experiment::{About, Figure, Grid, Need, Scale};
use millpond_base::Size;
use millpond_lab::interval::Interval;
use millpond_lab::report::{Bar, BarPlot, Claim, Line, LinePlot, Section};
use millpond_lab::table::{Table, Value};
use millpond_workload::{tpcc, ycsb};

use super::runs::{HYPERBOLIC, HYPERBOLIC_SHARED, LEAN, MIXED, READ_ONLY, TPCC, WATT};
use crate::live::threads::thread_counts;
use crate::live::{Job, LiveFigure, Loaded, cores};
use millpond_bench::error::BenchError;
use millpond_bench::experiments::evictors::Rates;
use millpond_bench::experiments::table::Row;
use millpond_bench::instance::Instance;
use millpond_bench::instance::eviction::{Evict, Out, Pages};
use millpond_bench::instance::setup::Setup;
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::{Length, Observer};
use millpond_lab::verdict::{above, at_least, at_most, between, claim};

const FIG_10: About = About {
    id: "10",
    title: "Evictions per second of one evictor",
    asks: "How fast does one thread evict with each policy while nothing else runs, beside RANDOM, \
           and how many candidates does it look at for each page that goes?",
    says: "Of RANDOM's evictions per second lean eviction reaches 0.31 after read-only YCSB, 0.34 \
           after 90/10, 0.35 and 0.37 after TPC-C; WATT 0.68, 0.75, 0.73 and 0.76; hyperbolic \
           0.79, 0.83, 0.79 and 0.85; WATT at least twice as many as lean eviction.",
};

const FIG_12: About = About {
    id: "12",
    title: "Evictions per second over evictors",
    asks: "How do evictions per second grow with the threads that evict?",
    says: "Clean pages (read-only YCSB): all but lean eviction scale very well, WATT as \
           hyperbolic does. Dirty pages (TPC-C): writing limits all of them, and they are alike.",
};

const RANDOM: &str = "random";
const POLICIES: [&str; 5] = [WATT, HYPERBOLIC_SHARED, HYPERBOLIC, LEAN, RANDOM];
const AS_LEFT: &str = "as left";

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
            let updates = if name == MIXED { 10 } else { 0 };
            Workload::Ycsb(ycsb::Config { threads, ..ycsb::Config::watt(rows, updates) })
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
        // The time of a cell depends on the number of fills of its pool.
        warm_up: Length::NONE,
        measure: Length::NONE,
        need: Need { seconds: scale.pick(0.3, 2.5, 600.0), memory, disk: 0 },
    }
}

/// Rounds of a cell.
const ROUNDS: u32 = 5;

/// Evicts with `evictors` threads, several times for each state of the pages; returns a row for
/// each state.
fn rows(
    job: &Job,
    evictors: u32,
    kinds: &[Pages],
    instance: &mut dyn Instance,
    observer: &mut dyn Observer,
) -> Result<Vec<Row>, BenchError> {
    let mut outs: Vec<Vec<Out>> = vec![Vec::new(); kinds.len()];
    let mut evict = |pages: Pages| {
        if observer.stop() {
            return Err(BenchError::Stopped);
        }
        instance.evict(&Evict { threads: evictors, share: 0.25, pages }, observer)
    };
    // Loading leaves dirty pages, as does the eviction of dirty ones; neither belongs to the
    // workload.
    evict(Pages::Clean)?;
    for (kind, outs) in kinds.iter().zip(&mut outs) {
        for _ in 0..ROUNDS {
            outs.push(evict(*kind)?);
        }
    }
    let row = |(kind, outs): (&Pages, Vec<Out>)| {
        let rates = Rates::of(&outs, evictors);
        Row::default()
            .with("state", kind.name())
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
    let jobs = [READ_ONLY, MIXED, TPCC].into_iter().flat_map(of).collect();
    LiveFigure::new(FIG_10, jobs, loaded, draw_10).with_course(|job, instance, observer| {
        let kinds = [Pages::AsLeft, Pages::Clean, Pages::Dirty];
        rows(job, 1, &kinds, instance, observer)
    })
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
        note: "Claims are about pages as the workload left them, part of them dirty but after its \
               read-only one, as the paper's are. Dirty ones are written to memory here. The \
               paper's hyperbolic caching shares WATT's sample and threshold, as the one with \
               candidates does here; the other draws a sample for each victim."
            .to_string(),
        plots: vec![plot.into()],
        table,
        claims: claims_10(&speed),
        ..Section::default()
    }
}

fn claims_10(speed: &Grid) -> Vec<Claim> {
    let over = |workload: &'static str, policy: &str, base: &str| {
        let place = |policy| [workload, AS_LEFT, policy];
        [(workload, speed.ratio(&place(policy), &place(base)))]
    };
    let mut claims = Vec::new();
    // TPC-C has two sizes in the paper; the bound is the one that both reach.
    for (workload, lean, watt, hyperbolic) in
        [(READ_ONLY, 0.31, 0.68, 0.79), (MIXED, 0.34, 0.75, 0.83), (TPCC, 0.37, 0.73, 0.79)]
    {
        let of = |policy| over(workload, policy, RANDOM);
        let says = format!("{workload}: lean eviction reaches at most {lean} of RANDOM's rate");
        claims.push(claim(&says, &of(LEAN), at_most(lean)));
        let says = format!("{workload}: WATT reaches at least {watt} of it");
        claims.push(claim(&says, &of(WATT), at_least(watt)));
        let says = format!("{workload}: hyperbolic reaches at least {hyperbolic} of it");
        claims.push(claim(&says, &of(HYPERBOLIC_SHARED), at_least(hyperbolic)));
        let says = format!("{workload}: WATT evicts at least twice as fast as lean eviction");
        claims.push(claim(&says, &over(workload, WATT, LEAN), at_least(2.0)));
    }
    claims
}

/// Returns the state of the pages to evict after a workload, as in the paper.
fn pages_of(workload: &str) -> Pages {
    if workload == TPCC { Pages::Dirty } else { Pages::Clean }
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
        let kind = axis("workload").map_or(Pages::Clean, |(_, name)| pages_of(&name.to_string()));
        rows(job, evictors as u32, &[kind], instance, observer)
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
                let pages = pages_of(workload).name();
                let place = [workload, pages, policy, count].map(Value::from);
                let numbers = [value.mean.into(), speed_up.map(|ratio| ratio.mean).into()];
                section.table.rows.push([&place[..], &numbers[..]].concat());
            }
            lines.push(line);
        }
        let plot = LinePlot {
            title: format!("{workload}, {} pages", pages_of(workload).name()),
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
    let with_most = |workload: &str, above: &str, below: &str| {
        grid.ratio(&[workload, most, above], &[workload, most, below])
    };
    let grows = |policy: &'static str| -> (&'static str, Option<Interval>) {
        let place = |count| [READ_ONLY, count, policy];
        (policy, (least != most).then(|| grid.ratio(&place(most), &place(least))).flatten())
    };
    let threads: f64 = most.parse().unwrap_or(1.0);
    let over_lean = [("WATT over lean eviction:", with_most(READ_ONLY, WATT, LEAN))];
    let alike =
        [HYPERBOLIC_SHARED, LEAN, RANDOM].map(|policy| (policy, with_most(TPCC, policy, WATT)));
    vec![
        claim(
            "clean pages: all but lean eviction are three quarters of N times as fast with N \
             all evictors as with one",
            &[WATT, HYPERBOLIC_SHARED, RANDOM].map(grows),
            above(0.75 * threads),
        ),
        claim("WATT evicts them faster than lean eviction", &over_lean, above(1.0)),
        claim(
            "dirty pages: with all evictors, all are within 15 % of WATT",
            &alike,
            between(0.85, 1.15),
        ),
    ]
}

/// Returns figures 10 and 12 for one scale.
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
    fn claims_are_about_the_pages_that_the_workload_left_each_by_its_own_number() {
        let mut table =
            Table::new(["workload", "state", "policy", "evictions_per_s", "repetition"]);
        for workload in [READ_ONLY, MIXED, TPCC] {
            let own = [(WATT, 70.0), (LEAN, 34.4), (RANDOM, 100.0), (HYPERBOLIC, 20.0)];
            for (policy, per_s) in own.into_iter().chain([(HYPERBOLIC_SHARED, 83.0)]) {
                for (state, factor) in [(AS_LEFT, 1.0), ("clean", 0.1)] {
                    let per_s = if policy == RANDOM { per_s } else { per_s * factor };
                    for repetition in [1u64, 2] {
                        let place = [workload.into(), state.into(), policy.into(), per_s.into()];
                        table.rows.push([&place[..], &[repetition.into()]].concat());
                    }
                }
            }
        }
        let section = draw_10(&table);
        let holds: Vec<_> = section.claims.iter().map(|claim| claim.holds == Some(true)).collect();
        let [yes, no] = [true, false];
        assert_eq!(holds, [no, yes, yes, yes, yes, no, yes, yes, yes, no, yes, yes]);
        assert_eq!(section.table.rows.len(), 30);
    }

    #[test]
    fn hyperbolic_is_judged_by_the_form_that_shares_watts_evictor_or_not_at_all() {
        let rows = |policy: &str, per_s: [f64; 2]| {
            let mut table =
                Table::new(["workload", "state", "policy", "repetition", "evictions_per_s"]);
            for (repetition, per_s) in [1u64, 2].into_iter().zip(per_s) {
                for (policy, per_s) in [(policy, per_s), (RANDOM, 100.0)] {
                    let place = [READ_ONLY.into(), AS_LEFT.into(), policy.into()];
                    table.rows.push([&place[..], &[repetition.into(), per_s.into()]].concat());
                }
            }
            table
        };
        let judged = |policy, per_s| {
            let section = draw_10(&rows(policy, per_s));
            let of = section.claims.iter().find(|claim| claim.says.contains("hyperbolic"));
            of.map(|claim| claim.holds)
        };
        assert_eq!(judged(HYPERBOLIC_SHARED, [81.0, 81.2]), Some(Some(true)));
        assert_eq!(judged(HYPERBOLIC_SHARED, [60.0, 60.2]), Some(Some(false)));
        assert_eq!(judged(HYPERBOLIC_SHARED, [60.0, 90.0]), Some(None), "an interval with 0.79");
        assert_eq!(judged(HYPERBOLIC, [81.0, 81.2]), Some(None), "the other form says nothing");
    }

    #[test]
    fn over_evictors_the_shared_form_is_judged_too() {
        let rows = |growth: f64| {
            let mut table =
                Table::new(["workload", "evictors", "policy", "repetition", "evictions_per_s"]);
            for (evictors, factor) in [(1u64, 1.0), (2, growth)] {
                for policy in [WATT, HYPERBOLIC_SHARED, RANDOM] {
                    for repetition in 1..=2u64 {
                        let factor = if policy == HYPERBOLIC_SHARED { factor } else { 1.8 };
                        let per_s = if evictors == 1 { 100.0 } else { 100.0 * factor };
                        let place = [READ_ONLY.into(), evictors.into(), policy.into()];
                        table.rows.push([&place[..], &[repetition.into(), per_s.into()]].concat());
                    }
                }
            }
            table
        };
        let holds = |growth| draw_12(&rows(growth)).claims[0].holds;
        assert_eq!([holds(1.8), holds(1.2)], [Some(true), Some(false)]);
    }
}
