//! Harizopoulos' steps (gilbert fig. 2.1): NEW ORDER and PAYMENT, in instructions and CPU time.
//!
//! Instructions are counted by running a cell again under a program that counts them, twice, with
//! two numbers of transactions: the difference is theirs, without loading. So they are exact to a
//! few in a thousand; the data are those of the quick scale, since counting is fifty times slower.

use std::process::Command;

use millpond::internals::store::{LatchingMode, TranslationMode};
use millpond_lab::experiment::{About, Cell, Fields, Figure, FigureError, Grid, Scale, Watch};
use millpond_lab::report::{Bar, BarPlot, Claim, Section};
use millpond_lab::table::{Table, Value};
use millpond_workload::tpcc::{Kind, Mix};

use super::course::{CONVENTIONAL, Course, Step, engine};
use super::removal::to_twin;
use crate::error::BenchError;
use crate::experiments::papers::live::{Job, LiveFigure, Loaded};
use crate::experiments::papers::verdict::{below, claim};
use crate::instance::prepare;
use crate::run::runner::{Length, RunSpec, Unwatched};

const ABOUT: About = About {
    id: "2.1",
    title: "Harizopoulos' steps: NEW ORDER and PAYMENT (fig. 2.1)",
    asks: "How many instructions, and how much CPU time, does a transaction save by each step from \
           the whole engine to a tree in memory?",
    says: "Of NEW ORDER's instructions logging is 11.9 %, locking 16.3 %, latching 14.2 %, the \
           most the buffer manager; keys as integers save 16.2 %. Instructions and cycles do not \
           save alike: logging refers to many places in memory.",
};

/// The command that runs one step alone, for a number of transactions, and counts instructions.
/// Its standard error has a line with `Collected` and the number. `None` where there is none.
pub type Count = fn(step: &str, transactions: u64) -> Option<Command>;

const FULL: &str = "everything";
const STEPS: [Step; 7] = [
    (FULL, |_| {}),
    ("− logging", |setup| setup.options.lab.log = false),
    ("− locking, transactions", |setup| setup.options.lab.locks = false),
    ("− latching", |setup| setup.options.lab.latching = LatchingMode::Optimistic),
    ("pages of 32 KiB", |setup| setup.options.page_size = Some(32 << 10)),
    ("− page table", |setup| setup.options.lab.translation = TranslationMode::Swizzled),
    ("− pool", to_twin),
];
const TRANSACTIONS: [(&str, Kind); 2] = [("new-order", Kind::NewOrder), ("payment", Kind::Payment)];

fn jobs(course: Course) -> Vec<Job> {
    let seconds = course.scale.pick(0.1, 1.0, 60.0);
    let mut jobs = Vec::new();
    for (name, kind) in TRANSACTIONS {
        let mut setup = engine(CONVENTIONAL);
        for (step, take) in STEPS {
            take(&mut setup);
            let mut job = course.job(setup.clone(), course.tpcc(Mix::only(kind), 1), seconds);
            job.need.seconds += course.scale.pick(0.0, 12.0, 12.0);
            job.axes = vec![("transaction", name.into()), ("step", step.into())];
            jobs.push(job);
        }
    }
    jobs
}

/// The figure.
pub(super) fn figure(course: Course, loaded: &Loaded, count: Option<Count>) -> Box<dyn Figure> {
    let live = LiveFigure::new(ABOUT, jobs(course), loaded, draw);
    Box::new(Steps { live, count })
}

/// The name of a step, as [`run_alone`] knows it.
fn name(axes: &[(&'static str, Value)]) -> String {
    axes.iter().map(|(_, value)| value.to_string()).collect::<Vec<_>>().join(": ")
}

/// Runs one step at the quick scale, by the name that [`Count`] got.
///
/// # Errors
/// There is no such step, or what it reports.
pub fn run_alone(step: &str, transactions: u64) -> Result<(), BenchError> {
    let all = jobs(Course { scale: Scale::Quick });
    let Some(job) = all.into_iter().find(|job| name(&job.axes) == step) else {
        return Err(BenchError::Usage(format!("there is no step '{step}'")));
    };
    let mut setup = job.setup;
    // Threads whose share of the instructions depends on how long the run takes.
    setup.options.lab.background_writer = false;
    setup.options.lab.background_merge = false;
    let mut instance = prepare(&setup, &job.workload, &mut Unwatched)?;
    let spec = RunSpec::of(Length::Operations(transactions));
    instance.run(&spec, &mut |_| Ok(()), &mut Unwatched)?;
    Ok(())
}

struct Steps {
    live: LiveFigure,
    count: Option<Count>,
}

impl Figure for Steps {
    fn about(&self) -> About {
        self.live.about()
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        self.live.cells(repetition)
    }

    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError> {
        let mut all = self.live.run(cells, watch)?;
        for (cell, rows) in cells.iter().zip(&mut all) {
            if watch.stop() {
                return Err(FigureError::Stopped);
            }
            let name = name(&cell.axes);
            watch.detail(&format!("instructions of {name}"));
            // The same in every repetition.
            let count = self.count.filter(|_| cell.repetition == 1);
            let counted = match count {
                Some(count) => per_transaction(count, &name)?,
                None => None,
            };
            for row in rows {
                row.retain(|(name, _)| name != "instructions_per_tx");
                row.push(("instructions_per_tx".to_string(), counted.into()));
            }
        }
        Ok(all)
    }

    fn section(&self, rows: &Table) -> Section {
        self.live.section(rows)
    }
}

/// Instructions of one transaction; `None` where they cannot be counted.
fn per_transaction(count: Count, step: &str) -> Result<Option<f64>, FigureError> {
    const FEW: u64 = 50;
    const MANY: u64 = 550;
    let counted = |transactions: u64| -> Result<Option<u64>, FigureError> {
        let Some(mut command) = count(step, transactions) else { return Ok(None) };
        let failed = |what: String| FigureError::Failed(what.into());
        let output = command
            .output()
            .map_err(|error| failed(format!("instructions could not be counted: {error}")))?;
        let said = String::from_utf8_lossy(&output.stderr);
        match collected(&said) {
            Some(number) if output.status.success() => Ok(Some(number)),
            _ => Err(failed(format!("instructions of '{step}' could not be counted: {said}"))),
        }
    };
    let Some((few, many)) = counted(FEW)?.zip(counted(MANY)?) else { return Ok(None) };
    Ok(Some(many.saturating_sub(few) as f64 / (MANY - FEW) as f64))
}

/// The number that the counting program reports.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected"))?;
    line.rsplit(' ').next()?.trim().parse().ok()
}

fn draw(rows: &Table) -> Section {
    let axes = ["transaction", "step"];
    let time = Grid::of(rows, &axes, "cpu_us_per_tx");
    let instructions = Grid::of(rows, &axes, "instructions_per_tx");
    let columns =
        ["transaction", "step", "µs", "of all", "low", "high", "instructions", "of all's"];
    let mut section = Section {
        note: "The first is the conventional engine: page table, shared latches, RANDOM, pages of \
               8 KiB, an asynchronous log in memory. Steps of his that nothing here corresponds to: \
               keys as integers (keys are strings that compare as bytes), the directory look-up \
               (trees are opened once), the disk log (the log is in memory) and LSNs by themselves \
               (they go with the log). Instructions are counted where valgrind is installed, with \
               few data; the driver, which draws what is bought, is in all of them."
            .to_string(),
        table: Table::new(columns),
        ..Section::default()
    };
    for transaction in time.labels(0) {
        let mut plot = BarPlot {
            title: format!("{transaction}: what is left of the whole engine"),
            y: "share".to_string(),
            ..BarPlot::default()
        };
        for (step, _) in STEPS {
            let (place, full) = ([transaction, step], [transaction, FULL]);
            let Some(us) = time.interval(&place) else { continue };
            let Some(ratio) = time.ratio(&place, &full) else { continue };
            let counted = instructions.mean(&place);
            let of_all = instructions.ratio(&place, &full);
            let mut cells =
                vec![transaction.into(), step.into(), us.mean.into(), ratio.mean.into()];
            cells.extend([ratio.low.into(), ratio.high.into(), counted.into()]);
            cells.push(of_all.map(|ratio| ratio.mean).into());
            section.table.rows.push(cells);
            let bar = |series: &str, value| Bar {
                group: step.to_string(),
                series: series.to_string(),
                value,
            };
            plot.bars.push(bar("CPU time", ratio));
            plot.bars.extend(of_all.map(|ratio| bar("instructions", ratio)));
        }
        section.plots.push(plot.into());
        section.claims.extend(claims(&time, &instructions, transaction));
    }
    section
}

fn claims(time: &Grid, instructions: &Grid, transaction: &str) -> Vec<Claim> {
    let left = |grid: &Grid, step: &str| grid.ratio(&[transaction, step], &[transaction, FULL]);
    let (log, whole) = ("− logging", "− pool");
    let time_left = [("CPU time left", left(time, log))];
    let rest =
        [("CPU time left", left(time, whole)), ("instructions left", left(instructions, whole))];
    let mut all = vec![
        claim(
            &format!("{transaction}: without logging, at least 11.9 % less"),
            &time_left,
            below(0.881),
        ),
        claim(&format!("{transaction}: the tree alone needs less than a tenth"), &rest, below(0.1)),
    ];
    let says = format!("{transaction}: without logging, CPU time falls more than instructions");
    all.push(match (left(time, log), left(instructions, log)) {
        (Some(time), Some(count)) => {
            let here = format!(
                "CPU time {:.3} ({:.3} to {:.3}), instructions {:.3} of the whole engine's",
                time.mean, time.low, time.high, count.mean
            );
            match (time.high < count.mean, time.low > count.mean) {
                (true, _) => Claim::new(&says, here, true),
                (_, true) => Claim::new(&says, here, false),
                _ => Claim::open(&says, here),
            }
        }
        _ => Claim::open(&says, "instructions were not counted"),
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_instructions_is_read_from_what_the_program_says() {
        let said = "==1== Events    : Ir\n==1== Collected : 3365449\n==1==\n";
        assert_eq!(collected(said), Some(3_365_449));
        assert_eq!(collected("==1== nothing"), None);
        assert_eq!(collected("Collected : many"), None);
    }

    #[test]
    fn a_step_that_does_not_exist_is_refused_and_each_that_does_runs_alone() {
        let error = run_alone("new-order: − everything", 1).unwrap_err().to_string();
        assert!(error.contains("there is no step 'new-order: − everything'"), "{error}");
        let all = jobs(Course { scale: Scale::Quick });
        for job in &all[..STEPS.len()] {
            run_alone(&name(&job.axes), 3).unwrap();
        }
    }
}
