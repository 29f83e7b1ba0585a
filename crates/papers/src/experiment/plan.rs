//! Plan of an experiment: its cells, and the resources that they need.

use std::collections::HashSet;

use super::cell::Cell;
use super::figure::Experiment;
use super::need::Need;

/// Reason that an experiment cannot be planned.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// No figure has that id.
    #[error("`millpond-papers {paper}` has no figure '{id}': it has {known}")]
    NoFigure {
        /// The paper.
        paper: &'static str,
        /// Unknown id.
        id: String,
        /// All ids.
        known: String,
    },
    /// Two cells are indistinguishable, which is a mistake of the figure.
    #[error("figure {figure} has the cell '{key}' twice")]
    Twice {
        /// The figure.
        figure: &'static str,
        /// The cell.
        key: String,
    },
}

/// The cells to run, repetition by repetition.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// Cells of each repetition with the number of their figure, in the order of running.
    pub repetitions: Vec<Vec<(usize, Cell)>>,
}

impl Plan {
    /// Plans the cells of the figures with these ids, or of all figures if there is no id.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn of(experiment: &Experiment, ids: &[String], times: u32) -> Result<Plan, PlanError> {
        let all: Vec<&str> = experiment.figures.iter().map(|figure| figure.about().id).collect();
        if let Some(id) = ids.iter().find(|id| !all.contains(&id.as_str())) {
            let (paper, known) = (experiment.paper, all.join(", "));
            return Err(PlanError::NoFigure { paper, id: id.clone(), known });
        }
        let is_wanted = |id: &str| ids.is_empty() || ids.iter().any(|wanted| wanted == id);
        let wanted: Vec<usize> = (0..all.len()).filter(|at| is_wanted(all[*at])).collect();
        let mut keys = HashSet::new();
        let mut repetitions = Vec::new();
        for repetition in 1..=times.max(1) {
            let mut cells = Vec::new();
            for at in &wanted {
                let of_figure = experiment.figures[*at].cells(repetition);
                cells.extend(of_figure.into_iter().map(|cell| (*at, cell)));
            }
            if let Some((_, twice)) = cells.iter().find(|(_, cell)| !keys.insert(cell.key())) {
                return Err(PlanError::Twice { figure: twice.figure, key: twice.key() });
            }
            if repetition % 2 == 0 {
                // A drift within a repetition cancels out in pairs of repetitions.
                cells.reverse();
            }
            repetitions.push(cells);
        }
        Ok(Plan { repetitions })
    }

    /// Returns the number of all cells.
    pub fn cells(&self) -> usize {
        self.repetitions.iter().map(Vec::len).sum()
    }

    /// Returns the resources that all cells need, run one after the other.
    pub fn need(&self) -> Need {
        let cells = self.repetitions.iter().flatten();
        cells.fold(Need::default(), |need, (_, cell)| need.then(cell.need))
    }

    /// Returns the plan without the cells for which `is_done` returns `true`.
    #[must_use]
    pub fn without(mut self, is_done: impl Fn(&Cell) -> bool) -> Plan {
        for cells in &mut self.repetitions {
            cells.retain(|(_, cell)| !is_done(cell));
        }
        self
    }
}
