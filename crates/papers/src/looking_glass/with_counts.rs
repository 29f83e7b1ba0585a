//! A figure of live runs with additional cells that count instructions. They run once, since
//! counts do not depend on chance.

use crate::experiment::{About, Cell, Fields, Figure, FigureError, Grid, Need, Watch};
use millpond_lab::report::Section;
use millpond_lab::table::{Table, Value};

use super::counted::{Counter, StepRun};
use crate::live::LiveFigure;

/// Column of callgrind's counts; the machine's counter has another column.
pub(super) const CALLGRIND: &str = "callgrind_instructions_per_tx";
/// Axis of the cells that callgrind counts.
const COUNTED: &str = "counted_by";

/// A counted cell, and its place in the figure.
pub(super) struct Counted {
    pub run: StepRun,
    pub axes: Vec<(&'static str, Value)>,
}

/// A figure of cells that run, and cells that are counted.
pub(super) struct WithCounts {
    live: LiveFigure,
    /// Counted cells; none without a counter.
    counted: Vec<Counted>,
    counter: Option<Counter>,
}

impl WithCounts {
    /// Creates a figure of `live`, with `counted` if there is a counter.
    pub fn new(live: LiveFigure, counted: Vec<Counted>, counter: Option<Counter>) -> WithCounts {
        let counted = if counter.is_some() { counted } else { Vec::new() };
        WithCounts { live, counted, counter }
    }

    fn cell(&self, counted: &Counted, repetition: u32) -> Cell {
        let Counted { run, axes } = counted;
        let need = Need { seconds: StepRun::seconds(run.scale), memory: 1 << 30, disk: 0 };
        let cell = Cell::new(self.about().id, repetition, need);
        let cell = axes.iter().fold(cell, |cell, (axis, value)| cell.with(axis, value.clone()));
        cell.with(COUNTED, "callgrind")
    }
}

impl Figure for WithCounts {
    fn about(&self) -> About {
        self.live.about()
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        let mut cells = self.live.cells(repetition);
        if repetition == 1 {
            cells.extend(self.counted.iter().map(|counted| self.cell(counted, repetition)));
        }
        cells
    }

    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError> {
        let mut all = Vec::new();
        for cell in cells {
            let is_it = |counted: &&Counted| self.cell(counted, cell.repetition).axes == cell.axes;
            let counted = self.counted.iter().find(is_it);
            let (Some(Counted { run, .. }), Some(counter)) = (counted, &self.counter) else {
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
        self.live.section(rows)
    }
}

/// Returns the instructions per transaction, and their source in a sentence.
pub(super) fn instructions(rows: &Table, axes: &[&str]) -> (Grid, &'static str) {
    let counted = Grid::of(rows, axes, CALLGRIND);
    let machine = Grid::of(rows, axes, "instructions_per_tx");
    let is_there = |grid: &Grid| !grid.labels(0).is_empty();
    match (is_there(&counted), is_there(&machine)) {
        (true, _) => (
            counted,
            "Instructions are those of the thread that runs the transactions, counted once by \
             callgrind, over little data; other threads, such as the log's writer, are not in \
             them.",
        ),
        (false, true) => {
            (machine, "Instructions are the machine's count, of the clients' threads.")
        }
        (false, false) => (
            machine,
            "The machine counts no instructions: with --instructions, callgrind does (valgrind).",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use crate::experiment::{Scale, Unwatched};

    use super::super::course::Course;
    use super::super::{removal, steps};
    use super::*;
    use crate::live::Loaded;

    fn counter() -> Option<Counter> {
        Some(Rc::new(|run| Ok(run.steps as f64 + 0.5)))
    }

    fn both(counter: Option<Counter>) -> [Box<dyn Figure>; 2] {
        let (course, loaded) = (Course { scale: Scale::Quick }, Loaded::default());
        [steps::figure(course, &loaded, counter.clone()), removal::figure(course, &loaded, counter)]
    }

    #[test]
    fn only_the_first_repetition_counts_and_only_with_a_counter() {
        let cells = |counter, repetition| both(counter).map(|it| it.cells(repetition).len());
        assert_eq!((cells(None, 1), cells(None, 2)), ([14, 39], [14, 39]));
        assert_eq!((cells(counter(), 1), cells(counter(), 2)), ([28, 78], [14, 39]));
    }

    #[test]
    fn a_counted_cell_has_what_the_counter_said_of_its_step() {
        for (mut figure, steps) in both(counter()).into_iter().zip([6.5, 5.5]) {
            let cells = figure.cells(1);
            let last = cells.last().unwrap();
            assert_eq!(last.text("step"), "− pool");
            let rows = figure.run(&[last], &mut Unwatched).unwrap();
            let expected =
                [(CALLGRIND.to_string(), steps.into()), ("transactions".into(), 100u64.into())];
            assert_eq!(rows, [[expected.to_vec()]]);
        }
    }
}
