//! Parts of an experiment.

use super::cell::{Cell, Fields};
use super::scale::Scale;
use millpond_lab::report::Section;
use millpond_lab::table::Table;

/// Description of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct About {
    /// Id of the figure, as it is chosen with `--figure`: `1`, `1.29`, `aggregation`.
    pub id: &'static str,
    /// Heading of the figure.
    pub title: &'static str,
    /// Question of the figure, in a sentence or two.
    pub asks: &'static str,
    /// Statement of the paper, in a sentence or two.
    pub says: &'static str,
}

/// Why a cell could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FigureError {
    /// The observer asked to stop.
    #[error("stopped")]
    Stopped,
    /// Anything else; the experiment ends, and what was finished is kept.
    #[error(transparent)]
    Failed(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl FigureError {
    /// The error of whatever a figure uses.
    pub fn of(error: impl std::error::Error + Send + Sync + 'static) -> FigureError {
        FigureError::Failed(Box::new(error))
    }
}

/// Receives the progress of an experiment, and may end it.
pub trait Watch {
    /// Asked often, also by cells that take long: whether to stop now. What is finished is kept.
    fn stop(&self) -> bool {
        false
    }

    /// A cell begins: `done` of `of` cells are finished, and about `share` of the time is over.
    fn cell(&mut self, _name: &str, _done: usize, _of: usize, _share: f64) {}

    /// Shows the present activity of a long cell.
    fn detail(&mut self, _what: &str) {}

    /// Something that a user should know.
    fn say(&mut self, _line: &str) {}
}

/// Ignores the progress and stops nothing.
pub struct Unwatched;

impl Watch for Unwatched {}

/// A figure or table of a paper, as something that can be run.
///
/// It is created for a [`Scale`], lists its cells, runs them on request, and turns the rows into a
/// section of a page. It may keep what several cells share (a trace, a loaded store) between calls
/// of [`Figure::run`]. Cells come in its own order, all of a repetition before the next one. Every
/// second repetition runs backwards, so that cells that share something are still side by side.
pub trait Figure {
    /// Returns the description of the figure.
    fn about(&self) -> About;

    /// Returns the figure's cells in one repetition, from 1. A figure that is not to be repeated
    /// has none from 2 on. The cells of two repetitions differ only in the number of the
    /// repetition.
    fn cells(&self, repetition: u32) -> Vec<Cell>;

    /// Number of cells that [`Figure::run`] takes at once: more than one where they do not disturb
    /// each other and can share the machine's cores.
    fn batch(&self) -> usize {
        1
    }

    /// Runs cells, which follow each other in its own order, and gives each one's rows, without
    /// the axes.
    ///
    /// # Errors
    /// [`FigureError`]; then none of these cells counts.
    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError>;

    /// Lets go of what it kept: another figure is next.
    fn release(&mut self) {}

    /// Returns the figure's part of the page, from its own rows of all repetitions; some may be
    /// missing.
    fn section(&self, rows: &Table) -> Section;
}

/// A paper's figures, made for one scale.
pub struct Experiment {
    /// The paper's short name: `watt`.
    pub paper: &'static str,
    /// The page's heading.
    pub title: String,
    /// A paragraph below it.
    pub note: String,
    /// For which scale the figures were made.
    pub scale: Scale,
    /// The figures, in the order of the page.
    pub figures: Vec<Box<dyn Figure>>,
}
