//! Harizopoulos' steps (gilbert fig. 2.1): NEW ORDER and PAYMENT, in instructions and CPU time.
//!
//! The machine counts instructions if it has a counter; many virtual machines have none. On
//! request, callgrind counts them.

use crate::experiment::{About, Figure, Grid};
use millpond_lab::interval::Interval;
use millpond_lab::report::{Bar, BarPlot, Claim, Section};
use millpond_lab::table::Table;
use millpond_workload::tpcc::Mix;

use super::counted::{Counter, StepRun};
use super::course::Course;
use super::step_list::{FULL, LATCHES, LOCKS, LOG, POOL, StepList, TRANSACTIONS};
use super::with_counts::{Counted, WithCounts, instructions};
use crate::live::{LiveFigure, Loaded};
use millpond_lab::verdict::{below, between, claim, claim_of};

const LIST: StepList = StepList::Harizopoulos;

const ABOUT: About = About {
    id: "2.1",
    title: "Harizopoulos' steps: NEW ORDER and PAYMENT (fig. 2.1)",
    asks: "How many instructions, and how much CPU time, does a transaction save by each step from \
           the whole engine to a tree in memory?",
    says: "Of NEW ORDER's instructions logging is 11.9 %, locking 16.3 %, latching 14.2 %, the \
           most the buffer manager; keys as integers save 16.2 %. Instructions and cycles do not \
           save alike: logging refers to many places in memory.",
};

/// Shares of NEW ORDER's instructions that he and Harizopoulos et al. charge to a step.
const STATED: [(&str, &str, f64); 3] =
    [("logging", LOG, 0.119), ("locking", LOCKS, 0.163), ("latching", LATCHES, 0.142)];

pub(super) fn figure(course: Course, loaded: &Loaded, counter: Option<Counter>) -> Box<dyn Figure> {
    let seconds = course.scale.pick(0.1, 1.0, 60.0);
    let (mut jobs, mut counted) = (Vec::new(), Vec::new());
    for (name, kind) in TRANSACTIONS {
        for (steps, (step, setup)) in LIST.engines().enumerate() {
            let axes = vec![("transaction", name.into()), ("step", step.into())];
            let mut job = course.job(setup, course.tpcc(Mix::only(kind), 1), seconds);
            job.axes.clone_from(&axes);
            jobs.push(job);
            counted.push(Counted { run: StepRun::of(LIST, steps, name, course.scale), axes });
        }
    }
    let live = LiveFigure::new(ABOUT, jobs, loaded, draw);
    Box::new(WithCounts::new(live, counted, counter))
}

const NOTE: &str = "The first is the conventional engine: page table, shared latches, RANDOM, pages of 8 KiB, an \
     asynchronous log in memory. Steps of his that nothing here corresponds to: keys as integers \
     (keys are strings that compare as bytes), the directory look-up (trees are opened once), the \
     disk log (the log is in memory) and LSNs by themselves (they go with the log). What a step \
     removes is a share of the whole. The driver, which draws what is bought, is in all of them.";

fn draw(rows: &Table) -> Section {
    let axes = ["transaction", "step"];
    let time = Grid::of(rows, &axes, "cpu_us_per_tx");
    let (instructions, source) = instructions(rows, &axes);
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
        for (step, _) in LIST.steps() {
            let step = *step;
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

fn left(grid: &Grid, transaction: &str, step: &str) -> Option<Interval> {
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
            claim_of(&says, here, &[(Some(time), below(count.mean))])
        }
        _ => Claim::open(&says, "instructions were not counted"),
    });
    all
}

/// Compares the instructions that each of his steps removes from NEW ORDER with those that it
/// removes here.
fn stated(instructions: &Grid) -> Vec<Claim> {
    let left = |step: &str| Some(left(instructions, TRANSACTIONS[0].0, step)?.mean);
    let mut all = Vec::new();
    for (name, step, his) in STATED {
        let at = LIST.steps().iter().position(|(other, _)| *other == step);
        let before = at.and_then(|at| left(LIST.steps().get(at.checked_sub(1)?)?.0));
        let says = format!(
            "new-order: {name} is {:.1} % of the instructions, within a fifth of that",
            his * 100.0
        );
        all.push(match before.zip(left(step)) {
            None => Claim::open(&says, "instructions were not counted"),
            Some((before, left)) => {
                let share = before - left;
                // The count of one thread is repeatable.
                let here = format!("{:.1} %", share * 100.0);
                let bounds = between(his - his / 5.0, his + his / 5.0);
                claim_of(&says, here, &[(Some(Interval::exact(share)), bounds)])
            }
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use millpond_lab::table::Value;

    use super::super::with_counts::CALLGRIND;
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
}
