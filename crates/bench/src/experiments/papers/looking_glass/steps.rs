//! Harizopoulos' steps (gilbert fig. 2.1): NEW ORDER and PAYMENT, in instructions and CPU time.
//!
//! Instructions are counted where the machine has a counter; many virtual ones have none.

use millpond::internals::store::{LatchingMode, TranslationMode};
use millpond_lab::experiment::{About, Figure, Grid};
use millpond_lab::report::{Bar, BarPlot, Claim, Section};
use millpond_lab::table::Table;
use millpond_workload::tpcc::{Kind, Mix};

use super::course::{CONVENTIONAL, Course, Step, engine};
use crate::experiments::papers::live::{Job, LiveFigure, Loaded};
use crate::experiments::papers::verdict::{below, claim};
use crate::instance::setup::Setup;

const ABOUT: About = About {
    id: "2.1",
    title: "Harizopoulos' steps: NEW ORDER and PAYMENT (fig. 2.1)",
    asks: "How many instructions, and how much CPU time, does a transaction save by each step from \
           the whole engine to a tree in memory?",
    says: "Of NEW ORDER's instructions logging is 11.9 %, locking 16.3 %, latching 14.2 %, the \
           most the buffer manager; keys as integers save 16.2 %. Instructions and cycles do not \
           save alike: logging refers to many places in memory.",
};

const FULL: &str = "everything";
const STEPS: [Step; 7] = [
    (FULL, |_| {}),
    ("− logging", |setup| setup.options.lab.log = false),
    ("− locking, transactions", |setup| setup.options.lab.locks = false),
    ("− latching", |setup| setup.options.lab.latching = LatchingMode::Optimistic),
    ("pages of 32 KiB", |setup| setup.options.page_size = Some(32 << 10)),
    ("− page table", |setup| setup.options.lab.translation = TranslationMode::Swizzled),
    ("− pool", Setup::to_twin),
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
            job.axes = vec![("transaction", name.into()), ("step", step.into())];
            jobs.push(job);
        }
    }
    jobs
}

pub(super) fn figure(course: Course, loaded: &Loaded) -> Box<dyn Figure> {
    Box::new(LiveFigure::new(ABOUT, jobs(course), loaded, draw))
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
               (they go with the log). Instructions are counted where \
               the machine has a counter; the driver, which draws what is bought, is in all of them."
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
        claim(
            &format!("{transaction}: the tree alone needs a tiny fraction; a tenth at most here"),
            &rest,
            below(0.1),
        ),
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
