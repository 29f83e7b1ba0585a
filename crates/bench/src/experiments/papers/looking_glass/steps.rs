//! Harizopoulos' steps (gilbert fig. 2.1): NEW ORDER and PAYMENT, in instructions and CPU time.
//!
//! Instructions are counted by the machine where it has a counter; many virtual ones have none. On
//! request they are counted by callgrind, in cells of their own: once, since no chance is in them.

use millpond_lab::experiment::{
    About, Cell, Fields, Figure, FigureError, Grid, Need, Scale, Watch,
};
use millpond_lab::report::{Bar, BarPlot, Claim, Section};
use millpond_lab::table::{Table, Value};
use millpond_workload::tpcc::Mix;

use super::counted::{Counter, StepRun};
use super::course::{CONVENTIONAL, Course, engine};
use super::step_list::{FULL, LATCHES, LOCKS, LOG, POOL, STEPS, TRANSACTIONS};
use crate::experiments::papers::live::{Job, LiveFigure, Loaded};
use crate::experiments::papers::verdict::{below, claim};

const ABOUT: About = About {
    id: "2.1",
    title: "Harizopoulos' steps: NEW ORDER and PAYMENT (fig. 2.1)",
    asks: "How many instructions, and how much CPU time, does a transaction save by each step from \
           the whole engine to a tree in memory?",
    says: "Of NEW ORDER's instructions logging is 11.9 %, locking 16.3 %, latching 14.2 %, the \
           most the buffer manager; keys as integers save 16.2 %. Instructions and cycles do not \
           save alike: logging refers to many places in memory.",
};

/// What of NEW ORDER's instructions he and Harizopoulos et al. charge to a step.
const STATED: [(&str, &str, f64); 3] =
    [("logging", LOG, 0.119), ("locking", LOCKS, 0.163), ("latching", LATCHES, 0.142)];

/// The column of what callgrind counted; the machine's counter has one of its own.
const CALLGRIND: &str = "callgrind_instructions_per_tx";
/// An axis of the cells that callgrind counts.
const COUNTED: &str = "counted_by";

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

/// Cells that run, and cells that are counted.
struct Steps {
    live: LiveFigure,
    scale: Scale,
    counter: Option<Counter>,
}

impl Steps {
    /// What the counted cells run, in their order.
    fn counted(&self) -> Vec<StepRun> {
        if self.counter.is_none() {
            return Vec::new();
        }
        let of =
            |(name, _)| (0..STEPS.len()).map(move |steps| StepRun::of(name, steps, self.scale));
        TRANSACTIONS.into_iter().flat_map(of).collect()
    }
}

fn cell_of(run: &StepRun, repetition: u32) -> Cell {
    let need = Need { seconds: StepRun::seconds(run.scale), memory: 1 << 30, disk: 0 };
    Cell::new(ABOUT.id, repetition, need)
        .with("transaction", run.transaction)
        .with("step", STEPS[run.steps].0)
        .with(COUNTED, "callgrind")
}

impl Figure for Steps {
    fn about(&self) -> About {
        self.live.about()
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        let mut cells = self.live.cells(repetition);
        if repetition == 1 {
            cells.extend(self.counted().iter().map(|run| cell_of(run, repetition)));
        }
        cells
    }

    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError> {
        let runs = self.counted();
        let mut all = Vec::new();
        for cell in cells {
            let run = runs.iter().find(|run| cell_of(run, cell.repetition).axes == cell.axes);
            let (Some(run), Some(counter)) = (run, &mut self.counter) else {
                all.extend(self.live.run(&[cell], watch)?);
                continue;
            };
            watch.detail("counting instructions");
            let count = Value::from(counter(run)?);
            let transactions = Value::from(run.transactions);
            let fields = [(CALLGRIND, count), ("transactions", transactions)];
            all.push(vec![fields.map(|(name, value)| (name.to_string(), value)).into()]);
        }
        Ok(all)
    }

    fn section(&self, rows: &Table) -> Section {
        draw(rows)
    }
}

pub(super) fn figure(course: Course, loaded: &Loaded, counter: Option<Counter>) -> Box<dyn Figure> {
    let live = LiveFigure::new(ABOUT, jobs(course), loaded, draw);
    Box::new(Steps { live, scale: course.scale, counter })
}

const NOTE: &str = "The first is the conventional engine: page table, shared latches, RANDOM, pages of 8 KiB, an \
     asynchronous log in memory. Steps of his that nothing here corresponds to: keys as integers \
     (keys are strings that compare as bytes), the directory look-up (trees are opened once), the \
     disk log (the log is in memory) and LSNs by themselves (they go with the log). What a step \
     removes is a share of the whole. The driver, which draws what is bought, is in all of them.";

/// Where the instructions are from, in a sentence.
fn source(is_counted: bool, has_counter: bool) -> &'static str {
    match (is_counted, has_counter) {
        (true, _) => {
            "Instructions are those of the thread that runs the transactions, counted once by \
             callgrind, with one warehouse; other threads, such as the log's writer, are not in \
             them."
        }
        (false, true) => "Instructions are the machine's count, of the clients' threads.",
        (false, false) => {
            "The machine counts no instructions: with --instructions, callgrind does (valgrind)."
        }
    }
}

fn draw(rows: &Table) -> Section {
    let axes = ["transaction", "step"];
    let time = Grid::of(rows, &axes, "cpu_us_per_tx");
    let machine = Grid::of(rows, &axes, "instructions_per_tx");
    let counted = Grid::of(rows, &axes, CALLGRIND);
    let is_there = |grid: &Grid| !grid.labels(0).is_empty();
    let source = source(is_there(&counted), is_there(&machine));
    let instructions = if is_there(&counted) { counted } else { machine };
    let mut section = Section {
        note: format!("{NOTE} {source}"),
        table: Table::new([
            "transaction",
            "step",
            "µs",
            "of all",
            "low",
            "high",
            "removed",
            "instructions",
            "of all's",
            "removed of them",
        ]),
        ..Section::default()
    };
    for (transaction, _) in TRANSACTIONS {
        let mut plot = BarPlot {
            title: format!("{transaction}: what is left of the whole engine"),
            y: "share".to_string(),
            ..BarPlot::default()
        };
        let mut before = [Some(1.0); 2];
        for (step, _) in STEPS {
            let (place, full) = ([transaction, step], [transaction, FULL]);
            let (us, ratio) = (time.interval(&place), time.ratio(&place, &full));
            let counted = instructions.mean(&place);
            let of_all = instructions.ratio(&place, &full);
            if us.is_none() && counted.is_none() {
                continue;
            }
            let left = [ratio, of_all].map(|ratio| ratio.map(|ratio| ratio.mean));
            let removed = [0, 1].map(|at| Some(before[at]? - left[at]?));
            before = left;
            let mut cells = vec![transaction.into(), step.into(), us.map(|us| us.mean).into()];
            cells.extend([left[0].into(), ratio.map(|r| r.low).into()]);
            cells.extend([ratio.map(|r| r.high).into(), removed[0].into(), counted.into()]);
            cells.extend([left[1].into(), removed[1].into()]);
            section.table.rows.push(cells);
            let bar = |series: &str, value| Bar {
                group: step.to_string(),
                series: series.to_string(),
                value,
            };
            plot.bars.extend(ratio.map(|ratio| bar("CPU time", ratio)));
            plot.bars.extend(of_all.map(|ratio| bar("instructions", ratio)));
        }
        if plot.bars.is_empty() {
            continue;
        }
        section.plots.push(plot.into());
        section.claims.extend(claims(&time, &instructions, transaction));
    }
    section.claims.extend(stated(&instructions));
    section
}

fn left(grid: &Grid, transaction: &str, step: &str) -> Option<millpond_lab::interval::Interval> {
    grid.ratio(&[transaction, step], &[transaction, FULL])
}

fn claims(time: &Grid, instructions: &Grid, transaction: &str) -> Vec<Claim> {
    let left = |grid: &Grid, step: &str| left(grid, transaction, step);
    let time_left = [("CPU time left", left(time, LOG))];
    let rest =
        [("CPU time left", left(time, POOL)), ("instructions left", left(instructions, POOL))];
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
    all.push(match (left(time, LOG), left(instructions, LOG)) {
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

/// What each of his steps removes of NEW ORDER's instructions, beside what it removes here.
fn stated(instructions: &Grid) -> Vec<Claim> {
    let left = |step: &str| Some(left(instructions, TRANSACTIONS[0].0, step)?.mean);
    let mut all = Vec::new();
    for (name, step, his) in STATED {
        let at = STEPS.iter().position(|(other, _)| *other == step);
        let before = at.and_then(|at| left(STEPS.get(at.checked_sub(1)?)?.0));
        let says = format!(
            "new-order: {name} is {:.1} % of the instructions, within a fifth of that",
            his * 100.0
        );
        all.push(match before.zip(left(step)) {
            None => Claim::open(&says, "instructions were not counted"),
            Some((before, left)) => {
                let share = before - left;
                let is_near = (share - his).abs() < his / 5.0;
                Claim::new(&says, format!("{:.1} %", share * 100.0), is_near)
            }
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(instructions: &[(&str, f64)]) -> Table {
        let mut rows =
            Table::new(["transaction", "step", "repetition", "cpu_us_per_tx", CALLGRIND]);
        for (at, (step, count)) in instructions.iter().enumerate() {
            for repetition in 1..=2u64 {
                let us = (100 - 10 * at) as f64;
                let row = ["new-order".into(), (*step).into(), repetition.into(), us.into()];
                rows.rows.push(row.into_iter().chain([Value::Empty]).collect());
            }
            let row = ["new-order".into(), (*step).into(), 1u64.into(), Value::Empty];
            rows.rows.push(row.into_iter().chain([(*count).into()]).collect());
        }
        rows
    }

    #[test]
    fn counts_stand_beside_the_times_of_all_repetitions() {
        let counts = [(FULL, 1000.0), (LOG, 881.0), (LOCKS, 870.0), (LATCHES, 728.0)];
        let section = draw(&rows(&counts));
        let number = |row: usize, name: &str| section.table.get(row, name).unwrap().number();
        assert_eq!(section.table.rows.len(), 4);
        assert_eq!((number(1, "instructions"), number(1, "µs")), (Some(881.0), Some(90.0)));
        let removed = |row, name: &str| (number(row, name).unwrap() * 1e6).round() / 1e6;
        assert_eq!((removed(1, "removed"), removed(1, "removed of them")), (0.1, 0.119));
        assert_eq!(removed(3, "removed of them"), 0.142);
        let holds = |what: &str| {
            section.claims.iter().find(|claim| claim.says.contains(what)).unwrap().holds
        };
        assert_eq!(holds("logging is 11.9"), Some(true));
        assert_eq!(holds("locking is 16.3"), Some(false), "1.1 % here");
        assert_eq!(holds("latching is 14.2"), Some(true));
        assert!(section.note.contains("callgrind") && !section.note.contains("--instructions"));
    }

    #[test]
    fn without_counts_the_figure_says_how_to_get_them() {
        let mut rows = rows(&[(FULL, 1.0), (LOG, 1.0)]);
        rows.rows.retain(|row| row[4] == Value::Empty);
        let section = draw(&rows);
        assert_eq!(section.table.get(1, "instructions"), Some(&Value::Empty));
        assert!(section.note.contains("--instructions"));
        assert!(
            section
                .claims
                .iter()
                .filter(|claim| claim.says.contains("%,"))
                .all(|claim| { claim.holds.is_none() })
        );
    }

    #[test]
    fn only_the_first_repetition_counts_and_only_with_a_counter() {
        let course = Course { scale: Scale::Quick };
        let cells = |counter, repetition| {
            figure(course, &Loaded::default(), counter).cells(repetition).len()
        };
        let counter = || -> Option<Counter> { Some(Box::new(|_| Ok(1.0))) };
        assert_eq!((cells(None, 1), cells(None, 2)), (14, 14));
        assert_eq!((cells(counter(), 1), cells(counter(), 2)), (28, 14));
    }

    #[test]
    fn a_counted_cell_has_what_the_counter_said_of_its_step() {
        let counter: Counter = Box::new(|run| Ok(run.steps as f64 + 0.5));
        let course = Course { scale: Scale::Quick };
        let mut figure = figure(course, &Loaded::default(), Some(counter));
        let cells = figure.cells(1);
        let last = cells.last().unwrap();
        assert_eq!((last.text("transaction"), last.text("step")), ("payment".into(), POOL.into()));
        let rows = figure.run(&[last], &mut millpond_lab::experiment::Unwatched).unwrap();
        let expected =
            [(CALLGRIND.to_string(), 6.5.into()), ("transactions".into(), 100u64.into())];
        assert_eq!(rows, [[expected.to_vec()]]);
    }
}
