//! LeanStore in memory: figs 1, 7, 8, and table I.

use crate::experiment::{About, Figure, Grid};
use millpond_lab::report::{Bar, BarPlot, Line, LinePlot, Section};
use millpond_lab::table::{Table, Value};

use super::course::{Course, LEAN};
use crate::live::means::means;
use crate::live::threads::thread_counts;
use crate::live::{Job, LiveFigure, Loaded, cores};
use millpond_bench::experiments::contest::{Step, affinity, ladder};
use millpond_bench::instance::setup::{Engine, Setup};
use millpond_lab::verdict::{above, at_least, below, between, claim};

const FIG_1: About = About {
    id: "1",
    title: "One thread in memory",
    asks: "How much slower than the same trees without a pool is the pool, with one thread?",
    says: "67 thousand transactions per second against 69 thousand: 0.97. BerkeleyDB has 10 and \
           WiredTiger 16 thousand.",
};

const FIG_7: About = About {
    id: "7",
    title: "From a classic pool to no pool",
    asks: "What do swizzling, lean eviction and optimistic latches bring, with one thread and \
           with many?",
    says: "With one thread, swizzling and lean eviction double the speed and optimistic latches \
           add little; with ten threads each of the three is needed.",
};

const FIG_8: About = About {
    id: "8",
    title: "Over threads, in memory",
    asks: "How does TPC-C scale over threads, with the pool and without?",
    says: "A speed-up of 8.8 with 10 threads, and the trees without a pool scale alike.",
};

const TABLE_1: About = About {
    id: "table-1",
    title: "Affinity, touched memory, NUMA nodes",
    asks: "What do a home warehouse for each thread, memory that was touched beforehand, and a \
           pool divided among NUMA nodes bring?",
    says: "With 60 threads, speed-ups of 33.3, 50.4, 52.7 and 56.9.",
};

/// Converts a step of a contest to a job.
fn step_job(course: Course, step: Step, axes: Vec<(&'static str, Value)>, seconds: f64) -> Job {
    let job = course.job(step.workload, None, seconds);
    let setup = Setup { growth: job.setup.growth, ..step.setup };
    Job { axes, setup, ..job }
}

fn seconds(course: Course) -> f64 {
    course.scale.pick(0.1, 2.0, 60.0)
}

fn figure_1(course: Course, loaded: &Loaded) -> LiveFigure {
    let jobs = [Engine::Pool, Engine::Twin].map(|engine| {
        let mut job = course.job(course.tpcc(1), None, seconds(course));
        job.setup.engine = engine;
        Job { axes: vec![("what", engine.to_string().into())], ..job }
    });
    LiveFigure::new(FIG_1, jobs.into(), loaded, draw_1)
}

fn draw_1(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["what"], "throughput_per_s");
    let bars = grid.labels(0).into_iter().filter_map(|what| {
        let (group, series) = ("TPC-C, one thread".to_string(), what.to_string());
        Some(Bar { group, series, value: grid.interval(&[what])? })
    });
    let y = "transactions per second".to_string();
    let plot = BarPlot { title: y.clone(), y, bars: bars.collect(), ..BarPlot::default() };
    let ratio = [("pool over trees alone:", grid.ratio(&["pool"], &["twin"]))];
    let claims = vec![claim("the pool reaches 0.97 of the trees alone", &ratio, at_least(0.97))];
    Section {
        plots: vec![plot.into()],
        table: means(rows, &["what"]),
        claims,
        ..Section::default()
    }
}

fn figure_7(course: Course, loaded: &Loaded) -> LiveFigure {
    let mut counts = vec![1, course.threads()];
    counts.dedup();
    let mut jobs = Vec::new();
    for threads in counts {
        for step in ladder(&course.setup(), &course.tpcc(threads)) {
            let axes = vec![("threads", threads.into()), ("step", step.name.as_str().into())];
            jobs.push(step_job(course, step, axes, seconds(course)));
        }
    }
    LiveFigure::new(FIG_7, jobs, loaded, draw_7)
}

fn draw_7(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["threads", "step"], "throughput_per_s");
    let mut plot = BarPlot {
        title: "transactions per second over the classic pool's".to_string(),
        y: "ratio".to_string(),
        ..BarPlot::default()
    };
    for threads in grid.labels(0) {
        for step in grid.labels(1) {
            let ratio = grid.ratio(&[threads, step], &[threads, "baseline"]);
            let Some(value) = ratio else { continue };
            let group = format!("{threads} thread{}", if threads == "1" { "" } else { "s" });
            plot.bars.push(Bar { group, series: step.to_string(), value });
        }
    }
    let counts = grid.labels(0);
    let (Some(one), Some(many)) = (counts.first(), counts.last()) else {
        return Section::default();
    };
    let over =
        |threads: &str, above: &str, below: &str| grid.ratio(&[threads, above], &[threads, below]);
    let each = |threads| {
        [("+swizzling", "baseline"), ("+lean-evict", "+swizzling"), ("+optimistic", "+lean-evict")]
            .map(|(step, before)| (step, over(threads, step, before)))
    };
    let both = [("one thread", over(one, "+lean-evict", "baseline"))];
    let latches = [("one thread", over(one, "+optimistic", "+lean-evict"))];
    let twin = [("one thread", over(one, "+optimistic", "twin"))];
    let claims = vec![
        claim(
            "one thread: swizzling and lean eviction together double the speed, within a tenth",
            &both,
            above(1.8),
        ),
        claim("one thread: optimistic latches bring little", &latches, between(0.95, 1.25)),
        claim("many threads: each step brings something", &each(many), above(1.0)),
        claim("the result is near the trees without a pool", &twin, above(0.9)),
    ];
    let table = means(rows, &["threads", "step"]);
    Section { plots: vec![plot.into()], table, claims, ..Section::default() }
}

fn figure_8(course: Course, loaded: &Loaded) -> LiveFigure {
    let mut jobs = Vec::new();
    for threads in thread_counts() {
        for engine in [Engine::Pool, Engine::Twin] {
            let mut job = course.job(course.tpcc(threads), None, seconds(course));
            job.setup.engine = engine;
            job.axes = vec![("threads", threads.into()), ("what", engine.to_string().into())];
            jobs.push(job);
        }
    }
    LiveFigure::new(FIG_8, jobs, loaded, draw_8)
}

fn draw_8(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["threads", "what"], "throughput_per_s");
    let counts = grid.labels(0);
    let (Some(one), Some(many)) = (counts.first(), counts.last()) else {
        return Section::default();
    };
    let line = |what: &str| {
        let mut line = Line { label: what.to_string(), ..Line::default() };
        for threads in &counts {
            let Some(value) = grid.interval(&[threads, what]) else { continue };
            line.points.push((threads.parse().unwrap_or(0.0), value.mean));
            line.band.push((value.low, value.high));
        }
        line
    };
    let plot = LinePlot {
        title: "TPC-C in memory".to_string(),
        x: "threads".to_string(),
        y: "transactions per second".to_string(),
        lines: grid.labels(1).into_iter().map(line).collect(),
        ..LinePlot::default()
    };
    let up = ["pool", "twin"].map(|what| (what, grid.ratio(&[many, what], &[one, what])));
    let least = 0.88 * many.parse::<f64>().unwrap_or(1.0);
    let over = [("pool over trees alone:", grid.ratio(&[many, "pool"], &[many, "twin"]))];
    let mut claims =
        vec![claim("with all threads the pool is near the trees alone", &over, above(0.9))];
    if one != many {
        let says = format!("{many} threads: a speed-up of 0.88 for each thread, {least:.1}");
        claims.insert(0, claim(&says, &up, above(least)));
    }
    let table = means(rows, &["threads", "what"]);
    Section { plots: vec![plot.into()], table, claims, ..Section::default() }
}

fn table_1(course: Course, loaded: &Loaded) -> LiveFigure {
    let threads = course.threads();
    let mut base = course.setup();
    base.options = base.options.policy(LEAN);
    let steps = affinity(&base, &course.tpcc(threads), threads, 2);
    let job = |step: Step| {
        let axes = vec![("step", step.name.as_str().into())];
        step_job(course, step, axes, seconds(course))
    };
    LiveFigure::new(TABLE_1, steps.into_iter().map(job).collect(), loaded, draw_table_1)
}

fn draw_table_1(rows: &Table) -> Section {
    let grid = Grid::of(rows, &["step"], "throughput_per_s");
    let steps = grid.labels(0);
    let Some(first) = steps.first() else { return Section::default() };
    let mut table = Table::new(["step", "tx/s", "speed-up", "low", "high"]);
    for step in &steps {
        let Some(ratio) = grid.ratio(&[step], &[first]) else { continue };
        let row = [(*step).into(), grid.mean(&[step]).into(), ratio.mean.into()];
        table.rows.push(row.into_iter().chain([ratio.low.into(), ratio.high.into()]).collect());
    }
    let gain = [("affinity", grid.ratio(&["+affinity"], &["baseline"]))];
    let up = [("all together", grid.ratio(&["+numa"], &[first]))];
    let threads = f64::from(cores());
    Section {
        note: "A machine with one NUMA node gains nothing by the last step: its two nodes are \
               pretended."
            .to_string(),
        table,
        claims: vec![
            claim("a home warehouse is faster", &gain, above(1.0)),
            claim(
                "with all of them, a speed-up of 0.95 for each thread",
                &up,
                above(0.95 * threads),
            ),
            claim("and no more than one for each", &up, below(1.05 * threads)),
        ],
        ..Section::default()
    }
}

/// Returns the figures.
pub(super) fn figures(course: Course, loaded: &Loaded) -> Vec<Box<dyn Figure>> {
    let make = [figure_1, figure_7, figure_8, table_1];
    make.map(|figure| Box::new(figure(course, loaded)) as Box<dyn Figure>).into()
}
