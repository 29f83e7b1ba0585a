//! LeanStore with data larger than the pool: figs 10, 11, 12, and the ramp-up.

use std::collections::BTreeMap;

use crate::experiment::{About, Figure, Grid};
use millpond_base::Size;
use millpond_device::SlowProfile;
use millpond_lab::report::{Claim, Line, LinePlot, Section};
use millpond_lab::table::{Table, Value};
use millpond_workload::tpcc;

use super::course::Course;
use crate::live::{End, Job, LiveFigure, Loaded, percent, row};
use millpond_bench::experiments::table::Row;
use millpond_bench::instance::Instance;
use millpond_bench::instance::setup::DeviceSpec;
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::Length;
use millpond_lab::verdict::{above, at_most, below, between, claim};

const FIG_10: About = About {
    id: "10",
    title: "Lookups over skew, with a pool of a fifth of the data",
    asks: "How do throughput and reads follow the skew of the keys?",
    says: "With little skew the device limits, and throughput is close to its reads; as skew \
           grows there are fewer misses and throughput rises steeply.",
};

const FIG_11: About = About {
    id: "11",
    title: "Size of the cooling stage",
    asks: "How large should the cooling stage be, at which skew?",
    says: "Between 5 % and 20 % it hardly matters. With little skew a large one wastes memory; \
           around 1.6, where the working set is as large as the pool, and at 1.7 with a small \
           one, more than 10 % are lost.",
};

const FIG_12: About = About {
    id: "12",
    title: "Two scans at once",
    asks: "How fast are endless scans of a small and of a large table, in pools of several sizes?",
    says: "The small one is as fast in every pool, because its pages stay; the large one is as \
           fast as the device while it does not fit.",
};

const RAMP_UP: About = About {
    id: "ramp-up",
    title: "From a cold start",
    asks: "How long does TPC-C take from an empty pool to full speed, on which device?",
    says: "8 s with NVMe, 35 s with SATA (10 GB): 0.23; a disk gives some 10 transactions per second \
           for a quarter of an hour.",
};

/// A fifth of the data, like 1 GB of 5 GB.
const FIFTH: f64 = 20.0;

fn figure_10(course: Course, loaded: &Loaded) -> LiveFigure {
    let skews: &[f64] = course.scale.pick(
        &[0.0, 2.0],
        &[0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0],
        &[0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0],
    );
    let seconds = course.scale.pick(0.1, 1.5, 60.0);
    let job = |skew: &f64| {
        let workload = course.lookups(*skew, course.threads());
        let mut job = course.job(workload, Some(percent(FIFTH)), seconds);
        job.setup.device = course.flash();
        Job { axes: vec![("skew", (*skew).into())], ..job }
    };
    LiveFigure::new(FIG_10, skews.iter().map(job).collect(), loaded, draw_10)
}

fn draw_10(rows: &Table) -> Section {
    let of = |column| Grid::of(rows, &["skew"], column);
    let (speed, reads) = (of("throughput_per_s"), of("reads_per_s"));
    let line = |label: &str, grid: &Grid| {
        let mut line = Line { label: label.to_string(), ..Line::default() };
        for skew in grid.labels(0) {
            let Some(value) = grid.interval(&[skew]) else { continue };
            line.points.push((skew.parse().unwrap_or(0.0), value.mean));
            line.band.push((value.low, value.high));
        }
        line
    };
    let plot = |label: &str, grid: &Grid| LinePlot {
        title: label.to_string(),
        x: "skew (exponent of the Zipf distribution)".to_string(),
        y: label.to_string(),
        lines: vec![line(label, grid)],
        ..LinePlot::default()
    };
    let mut table = Table::new(["skew", "lookups per s", "reads per s", "reads per lookup"]);
    for skew in speed.labels(0) {
        let (fast, read) = (speed.mean(&[skew]), reads.mean(&[skew]));
        let each = fast.zip(read).map(|(fast, read)| read / fast.max(1e-9));
        table.rows.push(vec![skew.into(), fast.into(), read.into(), each.into()]);
    }
    let skews = speed.labels(0);
    let (Some(least), Some(most)) = (skews.first(), skews.last()) else {
        return Section::default();
    };
    let gain = [("greatest over least skew:", speed.ratio(&[most], &[least]))];
    let misses = [("greatest over least skew:", reads.ratio(&[most], &[least]))];
    let claims = vec![
        claim("throughput rises steeply with skew", &gain, above(2.0)),
        claim("reads per second fall", &misses, below(1.0)),
    ];
    let plots = [plot("lookups per second", &speed), plot("page reads per second", &reads)];
    Section { table, plots: plots.map(Into::into).into(), claims, ..Section::default() }
}

/// Base setting of fig. 11.
const TENTH: &str = "10";

fn figure_11(course: Course, loaded: &Loaded) -> LiveFigure {
    let skews: &[f64] = course.scale.pick(
        &[1.6],
        &[1.0, 1.4, 1.55, 1.6, 1.65, 1.7, 2.0],
        &[1.0, 1.4, 1.5, 1.55, 1.6, 1.65, 1.7, 1.8, 2.0],
    );
    let stages: &[u32] =
        course.scale.pick(&[10, 50], &[1, 2, 5, 10, 20, 50], &[1, 2, 5, 10, 20, 30, 50]);
    let seconds = course.scale.pick(0.1, 0.8, 60.0);
    let mut jobs = Vec::new();
    for skew in skews {
        for stage in stages {
            let workload = course.lookups(*skew, course.threads());
            let mut job = course.job(workload, Some(percent(FIFTH)), seconds);
            job.setup.device = course.flash();
            let options = std::mem::take(&mut job.setup.options);
            job.setup.options = options.policy(format!("lean-evict(cooling={stage}%)"));
            job.axes = vec![("skew", (*skew).into()), ("cooling", (*stage).into())];
            jobs.push(job);
        }
    }
    LiveFigure::new(FIG_11, jobs, loaded, draw_11)
}

fn draw_11(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["skew", "cooling"], "throughput_per_s");
    let (skews, stages) = (grid.labels(0), grid.labels(1));
    let mut table = Table::new(["skew", "cooling %", "over 10 %", "low", "high"]);
    let mut lines = Vec::new();
    let mut middle = Vec::new();
    for skew in &skews {
        let mut line = Line { label: format!("skew {skew}"), ..Line::default() };
        for stage in &stages {
            let Some(ratio) = grid.ratio(&[skew, stage], &[skew, TENTH]) else { continue };
            line.points.push((stage.parse().unwrap_or(0.0), ratio.mean));
            line.band.push((ratio.low, ratio.high));
            let row = [(*skew).into(), (*stage).into(), ratio.mean.into()];
            table.rows.push(row.into_iter().chain([ratio.low.into(), ratio.high.into()]).collect());
            if ["5", "20"].contains(stage) {
                middle.push((*skew, Some(ratio)));
            }
        }
        lines.push(line);
    }
    let plot = LinePlot {
        title: "lookups per second over those with 10 %".to_string(),
        x: "cooling stage, % of the pool".to_string(),
        y: "ratio".to_string(),
        lines,
        is_log: true,
        is_cut: true,
        ..LinePlot::default()
    };
    let says = "5 % and 20 % are within 10 % of 10 %, at all skews";
    let claims =
        if middle.is_empty() { Vec::new() } else { vec![claim(says, &middle, between(0.9, 1.1))] };
    Section {
        note: "Where the working set is as large as the pool depends on how many rows there are: \
               in miniature it lies at another skew than in the paper."
            .to_string(),
        table,
        plots: vec![plot.into()],
        claims,
        ..Section::default()
    }
}

fn figure_12(course: Course, loaded: &Loaded) -> LiveFigure {
    // The paper has 2 to 12 GB for 10.7 GB of both tables; here sizes are shares of all nine
    // tables, of which these are a third.
    let sizes: &[f64] = course.scale.pick(
        &[10.0, 50.0],
        &[5.0, 10.0, 20.0, 30.0, 40.0],
        &[5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0],
    );
    let seconds = course.scale.pick(0.1, 2.0, 60.0);
    let job = |(share, hints): (&f64, bool)| {
        let workload = match course.tpcc(2) {
            Workload::Tpcc(config) => Workload::Scan(tpcc::Config { threads: 2, ..config }),
            other => other,
        };
        let mut job = course.job(workload, Some(percent(*share)), seconds);
        job.setup.device = course.flash();
        job.setup.scan_hints = hints;
        let hints = if hints { HINTS } else { PREFETCH };
        Job { axes: vec![("percent", (*share).into()), ("scans", hints.into())], ..job }
    };
    let jobs = [false, true].into_iter().flat_map(|hints| sizes.iter().map(move |s| (s, hints)));
    let jobs = jobs.map(job).collect();
    LiveFigure::new(FIG_12, jobs, loaded, draw_12).with_rows(scan_rows)
}

/// Scans with read-ahead, as the paper measured them.
const PREFETCH: &str = "prefetch";
/// Scans that are also marked as scans, which the paper describes and does not measure.
const HINTS: &str = "prefetch and hints";

/// Returns one row for each table, with its bytes per second.
fn scan_rows(job: &Job, end: &End, instance: &dyn Instance) -> Vec<Row> {
    let whole = row(job, end, instance);
    let End::Ran(outcome) = end else { return vec![whole] };
    let bytes = instance.row_bytes();
    let of = |(index, class): (usize, &&'static str)| {
        let rows = outcome.by_class.get(index).copied().unwrap_or(0) as f64;
        let per_s = rows / outcome.seconds.max(1e-9);
        let bytes = bytes.get(index).copied().unwrap_or(0.0);
        let own = Row::default().with("table", *class).with("rows_per_s", per_s);
        let own = own.with("mib_per_s", per_s * bytes / 1048576.0);
        whole
            .clone()
            .into_fields()
            .into_iter()
            .fold(own, |row, (name, value)| row.with(&name, value))
    };
    job.workload.classes().iter().enumerate().map(of).collect()
}

fn draw_12(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["percent", "scans", "table"], "mib_per_s");
    let reads = Grid::of(rows, &["percent", "scans"], "reads_per_s");
    let names = ["pool, %", "scans", "order MiB/s", "order_line MiB/s", "reads per s"];
    let mut table = Table::new(names);
    for scans in grid.labels(1) {
        for percent in grid.labels(0) {
            let mean = |name| grid.mean(&[percent, scans, name]).into();
            let row = vec![percent.into(), scans.into(), mean("order"), mean("order_line")];
            table.rows.push([row, vec![reads.mean(&[percent, scans]).into()]].concat());
        }
    }
    let line = |(scans, name): (&str, &str)| {
        let hinted = if scans == HINTS { ", hints" } else { "" };
        let mut line = Line { label: format!("{name}{hinted}"), ..Line::default() };
        for percent in grid.labels(0) {
            let Some(value) = grid.interval(&[percent, scans, name]) else { continue };
            line.points.push((percent.parse().unwrap_or(0.0), value.mean));
            line.band.push((value.low, value.high));
        }
        line
    };
    let both = grid.labels(1).into_iter();
    let both = both.flat_map(|scans| grid.labels(2).into_iter().map(move |name| (scans, name)));
    let plot = LinePlot {
        title: "MiB of rows per second".to_string(),
        x: "pool, % of all data".to_string(),
        y: "MiB of rows per second".to_string(),
        lines: both.map(line).collect(),
        ..LinePlot::default()
    };
    let percents = grid.labels(0);
    let (Some(least), Some(most)) = (percents.first(), percents.last()) else {
        return Section::default();
    };
    let over = |name| grid.ratio(&[least, PREFETCH, name], &[most, PREFETCH, name]);
    let claims = vec![
        claim(
            "the small scan is as fast in the smallest pool as in the largest, within a quarter",
            &[("smallest over largest:", over("order"))],
            above(0.75),
        ),
        claim(
            "the large scan is slower there",
            &[("smallest over largest:", over("order_line"))],
            below(1.0),
        ),
    ];
    let note = "The paper measures scans that read ahead. Scans that also say that they are scans \
                have rows of their own: their pages go first, those of the small table, too.";
    Section {
        note: note.to_string(),
        table,
        plots: vec![plot.into()],
        claims,
        ..Section::default()
    }
}

fn ramp_up(course: Course, loaded: &Loaded) -> LiveFigure {
    let profiles = [SlowProfile::NVME, SlowProfile::SATA, SlowProfile::DISK, SlowProfile::ARRAY];
    let count = course.scale.pick(1, 4, 4);
    let seconds = course.scale.pick(0.2, 4.0, 900.0);
    let job = |profile: &SlowProfile| {
        let mut job = course.job(course.tpcc(course.threads()), Some(Size::Share(3.0)), seconds);
        job.setup.device = DeviceSpec::Slow(*profile);
        (job.warm_up, job.need.seconds) = (Length::NONE, seconds + 0.5);
        Job { axes: vec![("drive", profile.name.into())], ..job }
    };
    let jobs = profiles[..count].iter().map(job).collect();
    LiveFigure::new(RAMP_UP, jobs, loaded, draw_ramp_up).with_rows(series)
}

/// Returns the row of the run, and the points of its time series.
fn series(job: &Job, end: &End, instance: &dyn Instance) -> Vec<Row> {
    let mut rows = vec![row(job, end, instance)];
    if let End::Ran(outcome) = end {
        for (at, tick) in outcome.series.iter().enumerate() {
            let rate = |events: u64| events as f64 / tick.seconds.max(1e-9);
            rows.push(
                Row::default()
                    .with("point", at as u64 + 1)
                    .with("second", tick.at_s)
                    .with("course_per_s", rate(tick.transactions))
                    .with("course_reads_per_s", tick.counts.map(|counts| rate(counts.reads))),
            );
        }
    }
    rows
}

fn draw_ramp_up(rows: &Table) -> Section {
    let grid = |column| Grid::of(rows, &["drive", "point"], column);
    let (speed, seconds) = (grid("course_per_s"), grid("second"));
    let full = times_to_full(rows);
    let mut lines = Vec::new();
    let mut table = Table::new(["drive", "seconds to 80 % of its peak", "peak tx/s"]);
    for drive in speed.labels(0) {
        let points: Vec<(f64, f64)> = speed
            .labels(1)
            .into_iter()
            .filter_map(|point| {
                Some((seconds.mean(&[drive, point])?, speed.mean(&[drive, point])?))
            })
            .collect();
        let peak = points.iter().map(|(_, speed)| *speed).fold(0.0, f64::max);
        table.rows.push(vec![drive.into(), full.mean(&[drive]).into(), peak.into()]);
        lines.push(Line { label: drive.to_string(), points, ..Line::default() });
    }
    let plot = LinePlot {
        title: "TPC-C from an empty pool".to_string(),
        x: "second".to_string(),
        y: "transactions per second".to_string(),
        lines,
        ..LinePlot::default()
    };
    let whole = Grid::of(rows, &["drive"], "throughput_per_s");
    let flash = [("nvme over sata:", full.ratio(&["nvme"], &["sata"]))];
    let says = "NVMe takes at most 0.23 of SATA's time to full speed";
    let disk = [("", whole.interval(&["disk"]))];
    // Times are known to a point of the series, so a time within the first points proves
    // nothing.
    let first = speed.labels(1).first().and_then(|point| seconds.mean(&["nvme", point]));
    let is_told = full.mean(&["sata"]).zip(first).is_some_and(|(sata, first)| sata > 4.0 * first);
    let claims = vec![
        match is_told {
            true => claim(says, &flash, at_most(0.23)),
            false => Claim::open(says, "both are within the first points of the course"),
        },
        claim("a disk gives 5 to 20 transactions per second", &disk, between(5.0, 20.0)),
    ];
    let note = "Full speed is the first moment at 80 % of the fastest one of the same run.";
    Section {
        note: note.to_string(),
        table,
        plots: vec![plot.into()],
        claims,
        ..Section::default()
    }
}

/// Returns the seconds until a run reaches 80 % of its peak, by drive and repetition.
fn times_to_full(rows: &Table) -> Grid {
    let number = |row, name| rows.get(row, name).and_then(Value::number);
    let mut courses: BTreeMap<(String, u64), Vec<(f64, f64)>> = BTreeMap::new();
    for row in 0..rows.rows.len() {
        let Some(drive) = rows.get(row, "drive").map(ToString::to_string) else { continue };
        let Some(point) = number(row, "second").zip(number(row, "course_per_s")) else { continue };
        let repetition = number(row, "repetition").unwrap_or(1.0) as u64;
        courses.entry((drive, repetition)).or_default().push(point);
    }
    let mut times = Table::new(["drive", "repetition", "seconds"]);
    for ((drive, repetition), mut points) in courses {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let peak = points.iter().map(|(_, speed)| *speed).fold(0.0, f64::max);
        let first = points.iter().find(|(_, speed)| *speed >= 0.8 * peak).map(|(at, _)| *at);
        times.rows.push(vec![drive.into(), repetition.into(), first.into()]);
    }
    Grid::of(&times, &["drive"], "seconds")
}

/// Returns the figures.
pub(super) fn figures(course: Course, loaded: &Loaded) -> Vec<Box<dyn Figure>> {
    let make = [figure_10, figure_11, figure_12, ramp_up];
    make.map(|figure| Box::new(figure(course, loaded)) as Box<dyn Figure>).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_is_judged_by_the_time_to_full_speed_and_not_by_how_fast_that_is() {
        let columns =
            ["drive", "repetition", "second", "course_per_s", "throughput_per_s", "point"];
        let rows = |nvme_s: f64, per_s: f64| {
            let mut table = Table::new(columns);
            for repetition in 1..=3_u64 {
                for (drive, full_s, peak) in
                    [("nvme", nvme_s, 100.0), ("sata", 35.0, 100.0), ("disk", 900.0, per_s)]
                {
                    let run = [drive.into(), repetition.into(), Value::Empty, Value::Empty];
                    table.rows.push([&run[..], &[peak.into(), Value::Empty]].concat());
                    for (second, speed) in [(1.0, 5.0), (full_s, 0.85 * peak), (999.0, peak)] {
                        let at: Value = second.into();
                        let point = [drive.into(), repetition.into(), at.clone(), speed.into()];
                        table.rows.push([&point[..], &[Value::Empty, at]].concat());
                    }
                }
            }
            table
        };
        let holds = |nvme_s, per_s| {
            let section = draw_ramp_up(&rows(nvme_s, per_s));
            section.claims.iter().map(|claim| claim.holds).collect::<Vec<_>>()
        };
        assert_eq!(holds(8.0, 10.0), [Some(true), Some(true)]);
        assert_eq!(holds(9.0, 30.0), [Some(false), Some(false)]);
        let mut coarse = rows(8.0, 10.0);
        let second = coarse.column("second").unwrap();
        for row in &mut coarse.rows {
            if row[second] == Value::Float(1.0) {
                row[second] = 10.0.into();
            }
        }
        assert_eq!(draw_ramp_up(&coarse).claims[0].holds, None, "three and a half points");
    }
}
