//! Throughput over threads (gilbert fig. 2.12).

use crate::experiment::{About, Figure, Grid};
use millpond_lab::interval::Interval;
use millpond_lab::report::{Claim, Line, LinePlot, Section};
use millpond_lab::table::Table;

use super::course::{ARMS, CONVENTIONAL, Course, MODERN, WORKLOADS};
use crate::live::means::means;
use crate::live::threads::thread_counts;
use crate::live::{LiveFigure, Loaded};
use millpond_lab::verdict::{above, between, claim};

const ABOUT: About = About {
    id: "2.12",
    title: "Throughput over threads",
    asks: "How do look-ups, updates and TPC-C scale over threads, with log and locks?",
    says: "Twelve threads more than double the throughput of look-ups and more than quadruple \
           that of TPC-C; updates do not gain, and hardware threads beyond the cores only hurt.",
};

pub(super) fn figure(course: Course, loaded: &Loaded) -> Box<dyn Figure> {
    let seconds = course.scale.pick(0.1, 1.5, 300.0);
    let mut jobs = Vec::new();
    for workload in WORKLOADS {
        for threads in course.scale.pick(vec![1, 2], thread_counts(), thread_counts()) {
            jobs.extend(ARMS.map(|arm| course.arm(arm, workload, threads, seconds)));
        }
    }
    Box::new(LiveFigure::new(ABOUT, jobs, loaded, draw))
}

const AXES: [&str; 3] = ["arm", "workload", "threads"];

fn draw(rows: &Table) -> Section {
    let grid = Grid::of(rows, &AXES, "throughput_per_s");
    let counts = grid.labels(2);
    let plots = grid.labels(1).into_iter().map(|workload| {
        let line = |arm: &str| {
            let mut line = Line { label: arm.to_string(), ..Line::default() };
            for threads in &counts {
                let Some(value) = grid.interval(&[arm, workload, threads]) else { continue };
                line.points.push((threads.parse().unwrap_or(0.0), value.mean));
                line.band.push((value.low, value.high));
            }
            line
        };
        let lines = grid.labels(0).into_iter().map(line).collect();
        let (x, y) = ("threads".to_string(), "transactions per second".to_string());
        LinePlot { title: workload.to_string(), x, y, lines, ..LinePlot::default() }.into()
    });
    Section {
        plots: plots.collect(),
        table: means(rows, &AXES),
        claims: claims(&grid, &counts),
        ..Section::default()
    }
}

/// Judges throughput. His machine had twelve cores; on a machine with fewer, growth is judged
/// per thread.
fn claims(grid: &Grid, counts: &[&str]) -> Vec<Claim> {
    let (Some(one), Some(many)) = (counts.first(), counts.last()) else { return Vec::new() };
    if one == many {
        return vec![Claim::open("more threads do more", "this machine has one core")];
    }
    let threads: f64 = many.parse().unwrap_or(1.0);
    let growth = |arm: &str, workload: &str| -> Option<Interval> {
        grid.ratio(&[arm, workload, many], &[arm, workload, one])
    };
    let both = |workload| [CONVENTIONAL, MODERN].map(|arm| (arm, growth(arm, workload)));
    // Doubling by twelve threads is a gain of 1/11 per thread beyond the first, 3/11 for TPC-C.
    let least = |at_twelve: f64| 1.0 + (at_twelve - 1.0) / 11.0 * (threads - 1.0);
    let says = |what: &str, least: f64| {
        format!("{what}, and so {many} threads do {least:.2} times as much as one")
    };
    let (reads, tpcc) = (least(2.0), least(4.0));
    vec![
        claim(&says("12 threads double look-ups", reads), &both("ycsb-read"), above(reads)),
        claim(&says("12 threads quadruple TPC-C", tpcc), &both("tpcc"), above(tpcc)),
        claim("updates do not gain by threads", &both("ycsb-update"), between(0.0, 1.05)),
    ]
}
