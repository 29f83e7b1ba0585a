//! Pointer swizzling beside a page table, and its effect (gilbert 2.4.1, fig. 2.21). He
//! measured fewer CPU cycles per transaction, and yet no more transactions, and could not
//! explain that. Here each run is sampled, and waiting is measured separately.

use crate::experiment::{About, Figure, Grid};
use millpond::internals::store::{LatchingMode, TranslationMode};
use millpond_device::SlowProfile;
use millpond_lab::interval::Interval;
use millpond_lab::report::{Bar, BarPlot, Claim, Section};
use millpond_lab::table::{Table, Value};
use millpond_workload::tpcc::Mix;

use super::course::{CONVENTIONAL, Course, engine};
use super::sampled::{ALL, run};
use crate::live::{LiveFigure, Loaded, percent};
use millpond_bench::instance::setup::{DeviceSpec, Setup};
use millpond_lab::verdict::{above, below, claim};

const ABOUT: About = About {
    id: "2.21",
    title: "Pointer swizzling beside a page table (fig. 2.21)",
    asks: "What do swips beside the page table change in a conventional engine: throughput, \
           misses, CPU time by component, and what threads wait?",
    says: "With swizzling the hit rate is higher and a transaction needs fewer CPU cycles, and \
           yet the throughput is lower in pools of all sizes; why, profiling does not say.",
};

/// His engine.
const TABLE: &str = "page table";
/// His engine with Graefe's swizzling: swips beside the table, and inner pages never
/// evicted.
const BOTH: &str = "page table and swips";
/// For comparison: swips instead of the table, and optimistic latches.
const SWIPS: &str = "swips, optimistic latches";

const AXES: [&str; 2] = ["percent", "translation_arm"];

fn setup(arm: &str) -> Setup {
    let mut setup = engine(CONVENTIONAL);
    let (translation, latching) = match arm {
        TABLE => (TranslationMode::Hashed, LatchingMode::Latched),
        BOTH => (TranslationMode::SwizzledTable, LatchingMode::Latched),
        _ => (TranslationMode::Swizzled, LatchingMode::Optimistic),
    };
    (setup.options.lab.translation, setup.options.lab.latching) = (translation, latching);
    setup
}

pub(super) fn figure(course: Course, loaded: &Loaded) -> Box<dyn Figure> {
    let seconds = course.scale.pick(0.1, 2.0, 300.0);
    // The last pool holds everything, however the data grow.
    let percents: &[f64] = course.scale.pick(&[50.0, 200.0], &[20.0, 50.0, 200.0], &[35.0, 200.0]);
    let mut jobs = Vec::new();
    for share in percents {
        for arm in [TABLE, BOTH, SWIPS] {
            let threads = course.threads();
            let setup = Setup {
                pool: Some(percent(*share)),
                device: DeviceSpec::Slow(SlowProfile::SATA),
                ..setup(arm)
            };
            let mut job = course.job(setup, course.tpcc(Mix::GILBERT, threads), seconds);
            // Pages are read at the drive's pace; the last pool reads the whole data.
            job.warm_up = job.measure;
            job.need.seconds += seconds * 1.7;
            job.axes = vec![
                (AXES[0], (*share).into()),
                (AXES[1], arm.into()),
                ("workload", "tpcc".into()),
                ("threads", threads.into()),
            ];
            jobs.push(job);
        }
    }
    Box::new(LiveFigure::new(ABOUT, jobs, loaded, draw).with_course(run))
}

/// Draws, by pool and arm, throughput and reads, and µs per transaction of CPU time and of
/// waiting.
fn draw(rows: &Table) -> Section {
    let whole = rows_of(rows, ALL);
    let grid = |column: &str| Grid::of(&whole, &AXES, column);
    let (speed, reads, cpu) =
        (grid("throughput_per_s"), grid("reads_per_tx"), grid("cpu_us_per_tx"));
    let waited = Grid::with(&whole, &AXES, |row| waited_us(&whole, row));
    let mut section = Section {
        note: "“page table” is his engine: every reference looks into a hash table under a shared \
               latch. Beside it, Graefe's swizzling as he describes it: swips, the table kept for \
               pages that are not swizzled, inner pages never evicted. All with RANDOM. A thread \
               waits when it burns no CPU time: for a page, a lock, the log, or a processor."
            .to_string(),
        table: Table::new([
            "pool, %",
            "translation",
            "transactions/s",
            "reads per tx",
            "µs of CPU per tx",
            "µs waited per tx",
        ]),
        ..Section::default()
    };
    for share in speed.labels(0) {
        for arm in speed.labels(1) {
            let place = [share, arm];
            let mean = |grid: &Grid| Value::from(grid.mean(&place));
            let names = place.map(Value::from);
            let numbers = [&speed, &reads, &cpu, &waited].map(mean);
            section.table.rows.push(names.into_iter().chain(numbers).collect());
        }
        section.plots.push(bars(rows, share).into());
    }
    section.claims = claims(&speed, &reads, &cpu);
    section.claims.extend(speed.labels(0).last().map(|share| explained(rows, share)));
    section
}

/// Returns the rows about one component, or about the whole run.
fn rows_of(rows: &Table, component: &str) -> Table {
    let mut some = rows.clone();
    let is = |row: usize| rows.get(row, "component").is_some_and(|it| *it == component.into());
    some.rows =
        (0..rows.rows.len()).filter(|row| is(*row)).map(|row| rows.rows[row].clone()).collect();
    some
}

/// Returns the time per transaction in which its thread used no CPU time.
fn waited_us(rows: &Table, row: usize) -> Option<f64> {
    let of = |column: &str| rows.get(row, column)?.number();
    let wall = of("threads")? * 1e6 / of("throughput_per_s")?;
    Some((wall - of("cpu_us_per_tx")?).max(0.0))
}

fn bars(rows: &Table, share: &str) -> BarPlot {
    let grid = Grid::of(rows, &["percent", "component", "translation_arm"], "component_us_per_tx");
    let mut plot = BarPlot {
        title: format!("pool of {share} % of the data"),
        note: "Components of at least half a µs.".to_string(),
        y: "µs of CPU time per transaction".to_string(),
        ..BarPlot::default()
    };
    for component in grid.labels(1) {
        let bars = grid.labels(2).into_iter().filter_map(|arm| {
            let value = grid.interval(&[share, component, arm])?;
            Some(Bar { group: component.to_string(), series: arm.to_string(), value })
        });
        let bars: Vec<Bar> = bars.collect();
        if bars.iter().any(|bar| bar.value.mean > 0.5) {
            plot.bars.extend(bars);
        }
    }
    plot
}

fn claims(speed: &Grid, reads: &Grid, cpu: &Grid) -> Vec<Claim> {
    let shares = speed.labels(0);
    let over = |grid: &Grid| -> Vec<(&str, Option<Interval>)> {
        let of = |share| (share, grid.ratio(&[share, BOTH], &[share, TABLE]));
        shares.iter().map(|share| of(*share)).collect()
    };
    let smaller = shares.len().saturating_sub(1);
    let (cycles, fewer) = (over(cpu), over(reads));
    vec![
        claim("with swips the throughput is lower, in each pool", &over(speed), below(1.0)),
        claim(
            "with swips there are fewer misses, in pools smaller than the data",
            &fewer[..smaller],
            below(1.0),
        ),
        claim(
            "with swips a transaction needs less CPU time, when all is in memory",
            &cycles[smaller..],
            below(1.0),
        ),
        claim(
            "swips without a table, under optimistic latches, are faster than the table, in each \
             pool",
            &shares
                .iter()
                .map(|share| (*share, speed.ratio(&[*share, SWIPS], &[*share, TABLE])))
                .collect::<Vec<_>>(),
            above(1.0),
        ),
    ]
}

/// Names the components whose CPU time per transaction swips change most, in one pool.
fn explained(rows: &Table, share: &str) -> Claim {
    let axes = ["percent", "component", "translation_arm"];
    let grid = Grid::of(rows, &axes, "component_us_per_tx");
    let mut changes: Vec<(f64, &str)> = Vec::new();
    for component in grid.labels(1) {
        let of = |arm: &str| grid.mean(&[share, component, arm]).unwrap_or(0.0);
        changes.push((of(BOTH) - of(TABLE), component));
    }
    changes.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    let all: f64 = changes.iter().map(|(change, _)| change).sum();
    let most = changes.iter().take(4).map(|(change, name)| format!("{name} {change:+.2}"));
    let most: Vec<String> = most.collect();
    Claim::open(
        "the pool's share of CPU time shrinks by what the table cost (about 4 %)",
        format!("µs per transaction at {share} %: all {all:+.2}; {}", most.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Table {
        let mut table = Table::new([
            "percent",
            "translation_arm",
            "component",
            "threads",
            "throughput_per_s",
            "reads_per_tx",
            "cpu_us_per_tx",
            "component_us_per_tx",
            "repetition",
        ]);
        let mut push = |cells: [Value; 9]| table.rows.push(cells.into_iter().collect());
        for repetition in [1u64, 2, 3] {
            let noise = repetition as f64 / 1000.0;
            for (arm, speed, cpu) in
                [(TABLE, 1000.0, 900.0), (BOTH, 900.0, 800.0), (SWIPS, 2000.0, 400.0)]
            {
                for share in ["50", "200"] {
                    let (speed, cpu) = (speed + noise, cpu + noise);
                    push([
                        share.into(),
                        arm.into(),
                        ALL.into(),
                        2u64.into(),
                        speed.into(),
                        1.0.into(),
                        cpu.into(),
                        Value::Empty,
                        repetition.into(),
                    ]);
                    push([
                        share.into(),
                        arm.into(),
                        "pool".into(),
                        Value::Empty,
                        Value::Empty,
                        Value::Empty,
                        Value::Empty,
                        (cpu / 4.0).into(),
                        repetition.into(),
                    ]);
                }
            }
        }
        table
    }

    #[test]
    fn less_cpu_time_and_less_throughput_at_once_are_waits() {
        let section = draw(&rows());
        let table = &section.table;
        let both =
            (0..table.rows.len()).find(|row| table.get(*row, "translation") == Some(&BOTH.into()));
        let waited = table.get(both.unwrap(), "µs waited per tx").unwrap().number().unwrap();
        assert!((waited - (2e6 / 900.0 - 800.0)).abs() < 1.0, "{waited}");
        let verdicts: Vec<_> = section.claims.iter().map(|claim| claim.holds).collect();
        assert_eq!(verdicts, [Some(true), Some(false), Some(true), Some(true), None]);
        let last = section.claims.last().unwrap();
        assert!(last.here.contains("pool -25.00"), "{}", last.here);
    }
}
