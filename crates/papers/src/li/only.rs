//! Restriction to some of the traces, if all would take too long.

use super::first_tier::{TRACES, first_tier};
use crate::experiment::{About, Cell, Experiment, Fields, Figure, FigureError, Watch};
use millpond_lab::report::Section;
use millpond_lab::table::Table;

/// Wrapper of a figure without the cells of other traces.
struct Only {
    figure: Box<dyn Figure>,
    traces: Vec<String>,
}

impl Figure for Only {
    fn about(&self) -> About {
        self.figure.about()
    }

    fn cells(&self, repetition: u32) -> Vec<Cell> {
        let mut cells = self.figure.cells(repetition);
        let is_wanted = |name: &str| self.traces.iter().any(|trace| trace == name);
        // Some figures have something else on this axis.
        cells.retain(|cell| {
            let trace = cell.text("trace");
            first_tier(&trace).is_none() || is_wanted(&trace)
        });
        cells
    }

    fn batch(&self) -> usize {
        self.figure.batch()
    }

    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError> {
        self.figure.run(cells, watch)
    }

    fn release(&mut self) {
        self.figure.release();
    }

    fn section(&self, rows: &Table) -> Section {
        self.figure.section(rows)
    }
}

/// Returns the experiment without the cells of other first tiers' traces. Sentences about
/// omitted traces stay open.
///
/// # Errors
/// An unknown name, with the known ones.
pub fn only(experiment: Experiment, traces: &[String]) -> Result<Experiment, String> {
    if let Some(unknown) = traces.iter().find(|name| first_tier(name).is_none()) {
        let known: Vec<&str> = TRACES.iter().map(|trace| trace.name).collect();
        return Err(format!("no trace is called '{unknown}': {}", known.join(", ")));
    }
    let narrow = |figure| -> Box<dyn Figure> { Box::new(Only { figure, traces: traces.to_vec() }) };
    let figures = experiment.figures.into_iter().map(narrow).collect();
    Ok(Experiment { figures, ..experiment })
}

#[cfg(test)]
mod tests {
    use super::super::experiment;
    use super::*;
    use crate::experiment::Scale;

    #[test]
    fn cells_of_other_traces_are_left_out_and_those_without_a_trace_stay() {
        let whole = || {
            let record: super::super::RecordLi = Box::new(|_, _, _, _| Err(FigureError::Stopped));
            experiment(Scale::Paper, record).unwrap()
        };
        let names = ["300k_400", "540k_400"].map(str::to_string);
        let (all, some) = (whole(), only(whole(), &names).unwrap());
        let cells = |of: &Experiment, id: &str| -> Vec<String> {
            let figure = of.figures.iter().find(|figure| figure.about().id == id).unwrap();
            figure.cells(2).iter().map(|cell| cell.text("trace")).collect()
        };
        assert_eq!(cells(&some, "tables"), names);
        assert_eq!(cells(&some, "3.4").len(), 14);
        assert!(cells(&some, "5.6").is_empty());
        assert_eq!(cells(&some, "4.5"), cells(&all, "4.5"), "chapter 4 has no first tiers");
        let unknown = only(whole(), &["300k".to_string()]).err().unwrap();
        assert!(unknown.contains("'300k'") && unknown.contains("300k_4000"), "{unknown}");
    }
}
