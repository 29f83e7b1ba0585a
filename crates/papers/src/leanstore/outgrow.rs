//! LeanStore's fig. 9: TPC-C whose data grow beyond memory.
//!
//! Three engines begin with the same data, half as large as the memory that they may use, and run
//! until the data are two and a half times as large as the memory, or the time is over:
//!
//! - the pool, with that much memory, over a file;
//! - the same trees without a pool, in plain memory without a limit: the ceiling;
//! - these trees in a memory-mapped file, in a process with that memory limit. The operating
//!   system selects the pages to keep, as if it swapped without a swap device.
//!
//! Both files are in the results folder, on the same drive. If no memory limit can be set, the
//! third line is left out, and the page gives the reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::experiment::{About, Cell, Fields, Figure, FigureError, Grid, Need, Watch};
use millpond_base::Size;
use millpond_lab::report::{Line, LinePlot, Section};
use millpond_lab::table::{Table, Value};
use millpond_workload::tpcc;

use super::course::{Course, LEAN, PAGE};
use crate::live::watched::{Watched, failed};
use millpond_bench::error::BenchError;
use millpond_bench::experiments::table::Row;
use millpond_bench::instance::setup::{DeviceSpec, Engine, Paged, Setup};
use millpond_bench::instance::{Instance, prepare};
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::{Length, Observer, RunSpec};
use millpond_lab::verdict::{above, below, claim};

const ABOUT: About = About {
    id: "9",
    title: "Data that outgrow memory",
    asks: "What becomes of TPC-C as its data grow from half of the memory to two and a half times \
           as much: with the pool, and where the operating system pages the same trees in and out?",
    says: "With the pool, performance stays close to that in memory; with swapping it drops \
           severely and is highly unstable.",
};

const POOL: &str = "pool";
const IN_MEMORY: &str = "in memory, no limit";
const PAGED: &str = "paged by the system";

/// Final size of the data, as a multiple of memory.
const END: f64 = 2.5;

/// The figure.
pub(super) struct Outgrown {
    course: Course,
    /// Folder in which files are created.
    folder: PathBuf,
}

/// Progress between two checks of the data size.
struct Point {
    second: f64,
    data_bytes: u64,
    seconds: f64,
    transactions: u64,
    reads: u64,
    writes: u64,
}

impl Point {
    fn per_s(&self) -> f64 {
        self.transactions as f64 / self.seconds.max(1e-9)
    }
}

impl Outgrown {
    pub fn new(course: Course, folder: &Path) -> Outgrown {
        Outgrown { course, folder: folder.to_path_buf() }
    }

    fn workload(&self) -> Workload {
        let threads = self.course.threads();
        // Small enough to outgrow its memory within seconds.
        let miniature = tpcc::Scale { warehouses: 4, items: 4_000, customers: 120 };
        let data = self.course.scale.pick(tpcc::Scale::tiny(2), miniature, tpcc::Scale::full(100));
        let threads = threads.min(data.warehouses);
        Workload::Tpcc(tpcc::Config::standard(data, threads))
    }

    /// Returns the bytes of the pool, and of the process with paged trees.
    fn limit(&self) -> u64 {
        (2 * self.workload().bytes_loaded(PAGE as usize)).max(32 << 20)
    }

    fn setup(&self, what: &str, seed: u64) -> Setup {
        let setup = self.course.setup();
        let options = setup.options.policy(LEAN).lab(|lab| lab.seed = seed);
        let setup = Setup { options, ..setup };
        let file = || self.folder.join(format!("outgrown-{}", std::process::id()));
        match what {
            POOL => Setup {
                pool: Some(Size::Bytes(self.limit())),
                device: DeviceSpec::File(file()),
                ..setup
            },
            PAGED => {
                let paged = Paged { folder: self.folder.clone(), limit: self.limit() };
                Setup { engine: Engine::Twin, paged: Some(paged), ..setup }
            }
            _ => Setup { engine: Engine::Twin, ..setup },
        }
    }

    /// Runs piece by piece, until the data have grown enough or the time is over.
    fn points(
        &self,
        instance: &mut dyn Instance,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Point>, BenchError> {
        let scale = self.course.scale;
        let (seconds, piece) = scale.pick((1.0, 0.05), (16.0, 0.4), (900.0, 5.0));
        let piece = Duration::from_secs_f64(piece);
        let spec = RunSpec { warm_up: Length::NONE, measure: Length::Time(piece), interval: piece };
        let page_size = u64::from(instance.info().page_size);
        let end = (self.limit() as f64 * END) as u64;
        let start = Instant::now();
        let mut points = Vec::new();
        let mut second = 0.0;
        while start.elapsed().as_secs_f64() < seconds {
            let outcome = instance.run(&spec, &mut |_| Ok(()), observer)?;
            if outcome.was_stopped {
                return Err(BenchError::Stopped);
            }
            let counts = outcome.counts.unwrap_or_default();
            second += outcome.seconds;
            let data_bytes = instance.data_pages()? * page_size;
            points.push(Point {
                second,
                data_bytes,
                seconds: outcome.seconds,
                transactions: outcome.transactions,
                reads: counts.reads,
                writes: counts.writes,
            });
            if data_bytes >= end {
                break;
            }
        }
        Ok(points)
    }

    fn play(&self, cell: &Cell, watch: &mut dyn Watch) -> Result<Vec<Row>, BenchError> {
        let what = cell.text("what");
        if what != IN_MEMORY {
            let made = fs::create_dir_all(&self.folder);
            made.map_err(|error| BenchError::Drive(Box::new(error)))?;
        }
        if what == PAGED && lies_in_memory(&self.folder) {
            let why = format!("{} is in memory: name a folder on a drive", self.folder.display());
            return Ok(vec![self.left_out(&why, watch)]);
        }
        let setup = self.setup(&what, u64::from(cell.repetition));
        let observer = &mut Watched(&mut *watch);
        let mut instance = match prepare(&setup, &self.workload(), observer) {
            Err(BenchError::Limit(error)) => {
                let why = format!("no memory limit can be set here: {error}");
                return Ok(vec![self.left_out(&why, watch)]);
            }
            instance => instance?,
        };
        let points = self.points(instance.as_mut(), observer)?;
        let rows = self.rows(&setup, &points, instance.as_ref());
        if let Some(report) = instance.check_at_rest()?
            && !report.is_consistent()
        {
            let error = format!("the data is inconsistent: {report:?}");
            return Err(BenchError::Drive(error.into()));
        }
        Ok(rows)
    }

    fn left_out(&self, why: &str, watch: &mut dyn Watch) -> Row {
        watch.say(&format!("figure 9: the line '{PAGED}' is left out: {why}"));
        Row::default().with("end", "left out").with("why", why)
    }

    /// Returns the row of the whole run, and one of each point.
    fn rows(&self, setup: &Setup, points: &[Point], instance: &dyn Instance) -> Vec<Row> {
        let over = |point: &Point| point.data_bytes as f64 / self.limit() as f64;
        // Halves are by time: a slow engine has less data, and memory is full before the data
        // alone fill it.
        let half = points.last().map_or(0.0, |last| last.second / 2.0);
        let (late, early): (Vec<&Point>, _) = points.iter().partition(|p| p.second > half);
        let slowest = late.iter().map(|point| point.per_s()).min_by(f64::total_cmp);
        let steadiness = slowest.zip(rate(&late)).map(|(slowest, mean)| slowest / mean);
        let device = match (&setup.paged, setup.engine) {
            (Some(_), _) => "mapped file".to_string(),
            (None, Engine::Twin) => "none".to_string(),
            (None, Engine::Pool) => "file".to_string(),
        };
        let whole = Row::default()
            .with("end", "ran")
            .with("device", device)
            .with("limit_mib", self.limit() as f64 / 1048576.0)
            .with("per_s_first_half", rate(&early))
            .with("per_s_second_half", rate(&late))
            .with("slowest_over_mean", steadiness)
            .with("largest_over_limit", points.last().map(over))
            .with_facts(instance.info());
        let point = |(at, point): (usize, &Point)| {
            let has_counts = setup.engine == Engine::Pool;
            let per_s = |events: u64| has_counts.then(|| events as f64 / point.seconds.max(1e-9));
            Row::default()
                .with("point", at as u64 + 1)
                .with("second", point.second)
                .with("data_mib", point.data_bytes as f64 / 1048576.0)
                .with("data_over_limit", over(point))
                .with("course_per_s", point.per_s())
                .with("course_reads_per_s", per_s(point.reads))
                .with("course_writes_per_s", per_s(point.writes))
        };
        std::iter::once(whole).chain(points.iter().enumerate().map(point)).collect()
    }
}

/// Returns the transactions per second over several points.
fn rate(points: &[&Point]) -> Option<f64> {
    let seconds: f64 = points.iter().map(|point| point.seconds).sum();
    let transactions: u64 = points.iter().map(|point| point.transactions).sum();
    (seconds > 0.0).then(|| transactions as f64 / seconds)
}

/// Returns `true` if a folder's files are in memory that is not paged to any drive.
#[cfg(target_os = "linux")]
fn lies_in_memory(folder: &Path) -> bool {
    /// The kernel's magic numbers of tmpfs and ramfs.
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    rustix::fs::statfs(folder).is_ok_and(|stat| IN_MEMORY.contains(&(stat.f_type as u64)))
}

/// Returns `false`: other systems have no memory limits of this kind.
#[cfg(not(target_os = "linux"))]
fn lies_in_memory(_: &Path) -> bool {
    false
}

impl Figure for Outgrown {
    fn about(&self) -> About {
        ABOUT
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        let scale = self.course.scale;
        let seconds = scale.pick(1.5, 20.0, 1200.0);
        let bytes = (self.limit() as f64 * (END + 0.5)) as u64;
        let cell = |what: &str| {
            let (memory, disk) = match what {
                IN_MEMORY => (bytes, 0),
                // The final check holds all data in memory.
                _ => (bytes + (64 << 20), bytes),
            };
            let need = Need { seconds, memory, disk };
            Cell::new(ABOUT.id, repetition, need).with("what", what)
        };
        [POOL, IN_MEMORY, PAGED].map(cell).into()
    }

    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError> {
        let mut all = Vec::new();
        for cell in cells {
            let rows = self.play(cell, watch).map_err(failed)?;
            all.push(rows.into_iter().map(Row::into_fields).collect());
        }
        Ok(all)
    }

    fn section(&self, rows: &Table) -> Section {
        let points = |column: &str| Grid::of(rows, &["what", "point"], column);
        let speed = points("course_per_s");
        let plot = |x: &str, column: &str| {
            let places = points(column);
            let line = |what: &&str| {
                let point = |at: &str| Some((places.mean(&[what, at])?, speed.mean(&[what, at])?));
                let points = speed.labels(1).into_iter().filter_map(point).collect();
                Line { label: (*what).to_string(), points, ..Line::default() }
            };
            LinePlot {
                title: format!("TPC-C over {x}"),
                x: x.to_string(),
                y: "transactions per second".to_string(),
                lines: speed.labels(0).iter().map(line).collect(),
                ..LinePlot::default()
            }
        };
        let plots = [plot("seconds", "second"), plot("data over memory", "data_over_limit")];
        let of = |column| Grid::of(rows, &["what"], column);
        let (early, late) = (of("per_s_first_half"), of("per_s_second_half"));
        let (steady, largest) = (of("slowest_over_mean"), of("largest_over_limit"));
        let mut table = Table::new([
            "what",
            "tx/s, first half",
            "tx/s, second half",
            "slowest moment over mean, second half",
            "data over memory at the end",
        ]);
        for what in largest.labels(0) {
            let means = [&early, &late, &steady, &largest].map(|grid| grid.mean(&[what]).into());
            table.rows.push([&[what.into()], &means[..]].concat());
        }
        let over = |a: &str, b: &str| late.ratio(&[a], &[b]);
        let claims = vec![
            claim(
                "in the second half, the pool stays close to the trees in memory: at least 0.9",
                &[("pool over in memory:", over(POOL, IN_MEMORY))],
                above(0.9),
            ),
            claim(
                "paged by the system, the trees are less than half as fast as the pool",
                &[("paged over pool:", over(PAGED, POOL))],
                below(0.5),
            ),
            claim(
                "and unstable: the slowest moment is below half of the mean",
                &[("slowest over mean:", steady.interval(&[PAGED]))],
                below(0.5),
            ),
        ];
        Section {
            note: note(rows),
            table,
            plots: plots.map(Into::into).into(),
            claims,
            ..Section::default()
        }
    }
}

/// Returns a note for readers: the set-up, and the omitted parts.
fn note(rows: &Table) -> String {
    let mut note = "Memory is twice the data at the beginning; halves are those of a run's time. Each point is the mean of the \
                    repetitions that came so far."
        .to_string();
    let why = (0..rows.rows.len()).find_map(|row| match rows.get(row, "why")? {
        Value::Empty => None,
        why => Some(why.to_string()),
    });
    if let Some(why) = why {
        note += &format!(" The line '{PAGED}' is left out: {why}.");
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Scale;

    #[test]
    fn claims_are_about_the_second_half() {
        let mut table =
            Table::new(["what", "per_s_second_half", "slowest_over_mean", "repetition"]);
        for (what, per_s, slowest) in
            [(POOL, 92.0, 0.9), (IN_MEMORY, 100.0, 0.95), (PAGED, 20.0, 0.1)]
        {
            for repetition in [1u64, 2] {
                let numbers = [per_s.into(), slowest.into(), repetition.into()];
                table.rows.push([what.into()].into_iter().chain(numbers).collect());
            }
        }
        let course = Course { scale: Scale::Quick };
        let section = Outgrown::new(course, Path::new("results")).section(&table);
        let holds: Vec<_> = section.claims.iter().map(|claim| claim.holds).collect();
        assert_eq!(holds, [Some(true), Some(true), Some(true)]);
        assert!(!section.note.contains("left out"));
    }

    #[test]
    fn what_is_left_out_is_said_and_decides_nothing() {
        let mut table = Table::new(["what", "end", "why", "per_s_second_half"]);
        table.rows.push(vec![POOL.into(), "ran".into(), Value::Empty, 80.0.into()]);
        table.rows.push(vec![PAGED.into(), "left out".into(), "no limit".into(), Value::Empty]);
        let course = Course { scale: Scale::Quick };
        let section = Outgrown::new(course, Path::new("results")).section(&table);
        assert!(section.note.ends_with("is left out: no limit."), "{}", section.note);
        assert!(section.claims.iter().all(|claim| claim.holds.is_none()));
    }
}
