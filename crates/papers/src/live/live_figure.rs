//! A figure whose cells are runs of the engine.
//!
//! A cell is one run of one setup. With a pool without transactions, it begins with an empty pool
//! over a copy of data that were loaded once for each repetition ([`Image`]). So all policies get
//! the same data, and loading takes no time. After each run, TPC-C's consistency is checked on the
//! device's content, in a pool with room for everything. A violation ends the experiment.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::experiment::{About, Cell, Fields, Figure, FigureError, Need, Scale, Watch};
use millpond::internals::btree::WriteError;
use millpond::internals::pool::PoolError;
use millpond_base::Size;
use millpond_lab::report::Section;
use millpond_lab::table::{Table, Value};
use millpond_workload::keys::Distribution;
use millpond_workload::ycsb::Mix;

use crate::live::watched::{Watched, failed};
use millpond_bench::error::BenchError;
use millpond_bench::experiments::table::Row;
use millpond_bench::instance::image::Image;
use millpond_bench::instance::setup::{DeviceSpec, Engine, Setup};
use millpond_bench::instance::{Instance, prepare, prepare_on};
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::{Length, Observer, Outcome, RunSpec};
use millpond_bench::stores::tree_store::TreeStoreError;

/// One run of a figure.
#[derive(Clone, Debug)]
pub struct Job {
    /// Axis values that distinguish the run from the figure's others, in the order of the columns.
    pub axes: Vec<(&'static str, Value)>,
    /// Set-up of the engine; its seed is the repetition.
    pub setup: Setup,
    /// Workload that runs on the engine.
    pub workload: Workload,
    /// Warm-up before the measurement.
    pub warm_up: Length,
    /// Length of the measurement.
    pub measure: Length,
    /// Resources that the run needs.
    pub need: Need,
}

/// Most recently loaded data, shared by the figures of an experiment.
pub type Loaded = Rc<RefCell<Option<(Workload, u32, u32, Image)>>>;

/// End of a run.
#[derive(Clone, Debug)]
pub enum End {
    /// The run was measured.
    Ran(Box<Outcome>),
    /// The pool had no free frame.
    Full,
    /// An operation never had all its pages in memory, and the option `lab.attempts_max` made it
    /// fail.
    Starved,
}

/// Makes rows from a run.
type Rows = fn(&Job, &End, &dyn Instance) -> Vec<Row>;
/// Uses an instance in another way than for one run.
type Course = fn(&Job, &mut dyn Instance, &mut dyn Observer) -> Result<Vec<Row>, BenchError>;

/// Use of an instance by a figure.
#[derive(Clone, Copy)]
enum Play {
    /// One run.
    Run(Rows),
    /// Anything else.
    Own(Course),
}

/// A figure whose cells are runs of the engine.
pub struct LiveFigure {
    about: About,
    jobs: Vec<Job>,
    play: Play,
    draw: fn(&Table) -> Section,
    loaded: Loaded,
}

impl LiveFigure {
    /// Creates a figure with a row for each job.
    pub fn new(about: About, jobs: Vec<Job>, loaded: &Loaded, draw: fn(&Table) -> Section) -> Self {
        let loaded = loaded.clone();
        LiveFigure { about, jobs, play: Play::Run(one_row), draw, loaded }
    }

    /// Sets other rows than one for each job.
    #[must_use]
    pub fn with_rows(mut self, rows: Rows) -> LiveFigure {
        self.play = Play::Run(rows);
        self
    }

    /// Sets another use of each instance than one run.
    #[must_use]
    pub fn with_course(mut self, course: Course) -> LiveFigure {
        self.play = Play::Own(course);
        self
    }

    /// Creates a figure without jobs of its own, to run other jobs on shared data.
    pub(crate) fn shared(loaded: &Loaded) -> LiveFigure {
        let about = About { id: "shared", title: "", asks: "", says: "" };
        LiveFigure::new(about, Vec::new(), loaded, |_| Section::default())
    }

    /// Returns the data with which the workload starts.
    fn image(
        &self,
        job: &Job,
        repetition: u32,
        observer: &mut Watched<'_>,
    ) -> Result<std::cell::RefMut<'_, Image>, BenchError> {
        let page_size = job.setup.options.page_size;
        let page_size = page_size.unwrap_or(millpond::internals::store::options::PAGE_SIZE_DEFAULT);
        let wanted = as_loaded(job.workload);
        let mut loaded = self.loaded.borrow_mut();
        let is_there = |(workload, size, of, _): &(Workload, u32, u32, Image)| {
            *workload == wanted && *size == page_size && *of == repetition
        };
        if !loaded.as_ref().is_some_and(is_there) {
            *loaded = None;
            let options = Setup::new().options.page_size(page_size);
            let seed = u64::from(repetition);
            let setup = Setup { options: options.lab(|lab| lab.seed = seed), ..Setup::new() };
            let image = prepare(&setup, &wanted, observer)?.image()?;
            *loaded = Some((wanted, page_size, repetition, image));
        }
        std::cell::RefMut::filter_map(loaded, |loaded| loaded.as_mut().map(|loaded| &mut loaded.3))
            .map_err(|_| BenchError::Closed)
    }

    /// Runs a job in a repetition, which is also the seed; returns its rows without the axes.
    pub(crate) fn play(
        &self,
        job: &Job,
        repetition: u32,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Row>, BenchError> {
        let observer = &mut Watched(watch);
        let mut setup = job.setup.clone();
        setup.options.lab.seed = u64::from(repetition);
        let has_image = setup.engine == Engine::Pool
            && !setup.options.lab.log
            && !setup.options.lab.locks
            && !matches!(setup.device, DeviceSpec::File(_));
        let mut instance = match has_image {
            true => prepare_on(&*self.image(job, repetition, observer)?, &setup, &job.workload)?,
            false => prepare(&setup, &job.workload, observer)?,
        };
        let (rows, is_whole) = match self.play {
            Play::Run(rows) => {
                let end = run(job, instance.as_mut(), observer)?;
                (rows(job, &end, instance.as_ref()), matches!(end, End::Ran(_)))
            }
            Play::Own(course) => (course(job, instance.as_mut(), observer)?, true),
        };
        // Without a log, an aborted operation is not undone.
        if is_whole
            && let Some(report) = instance.check_at_rest()?
            && !report.is_consistent()
        {
            let error = format!("the data is inconsistent: {report:?}");
            return Err(BenchError::Drive(error.into()));
        }
        Ok(rows)
    }
}

/// Runs the job once.
fn run(
    job: &Job,
    instance: &mut dyn Instance,
    observer: &mut dyn Observer,
) -> Result<End, BenchError> {
    let spec = RunSpec { warm_up: job.warm_up, measure: job.measure, interval: interval(job) };
    match instance.run(&spec, &mut |_| Ok(()), observer) {
        Ok(outcome) if outcome.was_stopped => Err(BenchError::Stopped),
        Ok(outcome) => Ok(End::Ran(Box::new(outcome))),
        Err(error) => broken_off(&error).ok_or(error),
    }
}

/// Returns the workload reduced to the parts that affect loading.
fn as_loaded(workload: Workload) -> Workload {
    match workload.with_threads(1) {
        Workload::Ycsb(mut config) => {
            (config.distribution, config.mix) = (Distribution::Uniform, Mix::READ);
            Workload::Ycsb(config)
        }
        Workload::Tpcc(mut config) | Workload::Scan(mut config) => {
            config.has_affinity = false;
            Workload::Tpcc(config)
        }
        inserts @ Workload::Inserts(_) => inserts,
    }
}

/// Returns an interval for a time series of about twenty points.
fn interval(job: &Job) -> Duration {
    match job.measure {
        Length::Time(time) => (time / 20).clamp(Duration::from_millis(50), Duration::from_secs(1)),
        Length::Operations(_) => Duration::from_millis(200),
    }
}

/// Returns the end of a run that stalled under its policy; `None` for any other error.
pub fn broken_off(error: &BenchError) -> Option<End> {
    let end = |error: &PoolError| match error {
        PoolError::Full { .. } => Some(End::Full),
        PoolError::Starved { .. } => Some(End::Starved),
        _ => None,
    };
    let mut at: &(dyn std::error::Error + 'static) = match error {
        BenchError::Pool(error) => return end(error),
        BenchError::Drive(error) => error.as_ref(),
        _ => return None,
    };
    loop {
        // Errors that only pass on another error are missing in the chain of sources.
        if let Some(error) = at.downcast_ref::<TreeStoreError>() {
            return match error {
                TreeStoreError::Pool(error) => end(error),
                TreeStoreError::Write(WriteError::Pool(error)) => end(error),
                _ => None,
            };
        }
        match at.downcast_ref::<PoolError>() {
            Some(error) => return end(error),
            None => at = at.source()?,
        }
    }
}

/// Returns the row of a run: its end, and all measurements.
pub fn row(job: &Job, end: &End, instance: &dyn Instance) -> Row {
    let row = Row::default();
    let row = match end {
        End::Full => row.with("end", "full").with("threads", job.workload.threads()),
        End::Starved => row.with("end", "starved").with("threads", job.workload.threads()),
        End::Ran(outcome) => {
            let counts = outcome.counts.unwrap_or_default();
            row.with("end", "ran")
                .with("threads", outcome.threads)
                .with_outcome(outcome, instance.info().engine)
                .with("miss_ratio", 1.0 - counts.hit_ratio())
                .with("misses_per_tx", counts.misses as f64 / outcome.transactions.max(1) as f64)
                .with("reads_per_s", counts.reads as f64 / outcome.seconds.max(1e-9))
        }
    };
    row.with("hit_delivery", job.setup.options.lab.hit_delivery.to_string())
        .with("device", job.setup.device.to_string())
        .with_facts(instance.info())
}

fn one_row(job: &Job, end: &End, instance: &dyn Instance) -> Vec<Row> {
    vec![row(job, end, instance)]
}

impl Figure for LiveFigure {
    fn about(&self) -> About {
        self.about
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        let cell = |job: &Job| {
            let axes = job.axes.clone();
            Cell { axes, ..Cell::new(self.about.id, repetition, job.need) }
        };
        self.jobs.iter().map(cell).collect()
    }

    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError> {
        let mut all = Vec::new();
        for cell in cells {
            let job = self.jobs.iter().find(|job| job.axes == cell.axes);
            let unknown = || BenchError::Usage(format!("no such cell: {}", cell.name()));
            let job = job.ok_or_else(unknown).map_err(failed)?;
            let rows = self.play(job, cell.repetition, watch).map_err(failed)?;
            let is_axis = |name: &str| cell.axes.iter().any(|(axis, _)| *axis == name);
            let fields = rows.into_iter().map(|row| {
                let fields = row.into_fields().into_iter();
                fields.filter(|(name, _)| !is_axis(name)).collect()
            });
            all.push(fields.collect());
        }
        Ok(all)
    }

    fn section(&self, rows: &Table) -> Section {
        (self.draw)(rows)
    }
}

/// Returns the lengths of a run's warm-up and measurement: `seconds` seconds, after `warm_up`
/// times that. At the quick scale they are numbers of operations, so that even a slow machine
/// measures something.
pub fn lengths(scale: Scale, workload: &Workload, seconds: f64, warm_up: f64) -> (Length, Length) {
    if scale == Scale::Quick {
        let operations = Length::Operations(match workload {
            Workload::Ycsb(_) => 2000,
            Workload::Tpcc(_) => 100,
            Workload::Scan(_) | Workload::Inserts(_) => 4,
        });
        return (operations, operations);
    }
    let time = |seconds| Length::Time(Duration::from_secs_f64(seconds));
    (if warm_up > 0.0 { time(seconds * warm_up) } else { Length::NONE }, time(seconds))
}

/// Returns the number of cores of this machine.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

/// Returns a share of the loaded pages as a pool size.
pub fn percent(percent: f64) -> Size {
    Size::Share(percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use millpond_workload::live::DriveError;

    #[test]
    fn a_full_pool_is_found_however_deep_it_lies() {
        let full = || PoolError::Full { frames: 8 };
        let small = PoolError::TooSmall { frames: 2, least: 8 };
        let is_full = |error: &BenchError| matches!(broken_off(error), Some(End::Full));
        assert!(is_full(&BenchError::Pool(full())));
        let drive = |error| BenchError::from(DriveError::Store(TreeStoreError::Pool(error)));
        assert!(is_full(&drive(full())));
        let write = WriteError::Pool(full());
        let write = DriveError::Store(TreeStoreError::Write(write));
        assert!(is_full(&BenchError::from(write)));
        assert!(broken_off(&drive(small)).is_none() && broken_off(&BenchError::Closed).is_none());
        let starved = drive(PoolError::Starved { attempts: 16 });
        assert!(matches!(broken_off(&starved), Some(End::Starved)));
    }
}
