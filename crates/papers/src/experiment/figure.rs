//! Parts of an experiment.

use super::cell::{Cell, Fields};
use super::scale::Scale;
use millpond_lab::report::Section;
use millpond_lab::table::Table;

/// Description of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct About {
    /// Id of the figure for `--figure`: `1`, `1.29`, `aggregation`.
    pub id: &'static str,
    /// Heading of the figure.
    pub title: &'static str,
    /// Question of the figure, in a sentence or two.
    pub asks: &'static str,
    /// Statement of the paper, in a sentence or two.
    pub says: &'static str,
}

/// Reason that a cell failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FigureError {
    /// The observer asked to stop.
    #[error("stopped")]
    Stopped,
    /// Anything else; the experiment ends, and finished cells are kept.
    #[error(transparent)]
    Failed(#[from] Box<dyn std::error::Error + Send + Sync>),
}

impl FigureError {
    /// Wraps any error of a figure.
    pub fn of(error: impl std::error::Error + Send + Sync + 'static) -> FigureError {
        FigureError::Failed(Box::new(error))
    }
}

/// Receives the progress of an experiment, and may end it.
pub trait Watch {
    /// Returns `true` to stop now; long cells ask often. Finished cells are kept.
    fn stop(&self) -> bool {
        false
    }

    /// Reports the start of a cell: `done` of `of` cells are finished, and about `share` of the
    /// time is over.
    fn cell(&mut self, _name: &str, _done: usize, _of: usize, _share: f64) {}

    /// Shows the present activity of a long cell.
    fn detail(&mut self, _what: &str) {}

    /// Shows a message to the user.
    fn say(&mut self, _line: &str) {}
}

/// Ignores the progress and stops nothing.
pub struct Unwatched;

impl Watch for Unwatched {}

/// A runnable figure or table of a paper.
///
/// A figure is created for a [`Scale`], lists its cells, runs them on request, and turns the rows
/// into a section of a page. It may keep data shared by several cells (a trace, a loaded store)
/// between calls of [`Figure::run`]. Cells run in the figure's order, all of a repetition before
/// the next one. Every second repetition runs backwards, so that cells with shared data stay
/// adjacent.
pub trait Figure {
    /// Returns the description of the figure.
    fn about(&self) -> About;

    /// Returns the figure's cells in one repetition, from 1. A figure without repetitions has none
    /// from 2 on. The cells of two repetitions differ only in the number of the repetition.
    fn cells(&self, repetition: u32) -> Vec<Cell>;

    /// Returns the number of cells per call of [`Figure::run`]: more than one if they do not
    /// disturb each other and can share the machine's cores.
    fn batch(&self) -> usize {
        1
    }

    /// Runs consecutive cells of the figure's order, and returns the rows of each, without the
    /// axes.
    ///
    /// # Errors
    /// [`FigureError`]; none of these cells counts then.
    fn run(
        &mut self,
        cells: &[&Cell],
        watch: &mut dyn Watch,
    ) -> Result<Vec<Vec<Fields>>, FigureError>;

    /// Releases shared data, since another figure is next.
    fn release(&mut self) {}

    /// Returns the figure's section of the page, from its own rows of all repetitions; some may be
    /// missing.
    fn section(&self, rows: &Table) -> Section;
}

/// A paper's figures, made for one scale.
pub struct Experiment {
    /// The paper's short name: `watt`.
    pub paper: &'static str,
    /// The page's heading.
    pub title: String,
    /// Paragraph below the heading.
    pub note: String,
    /// Scale of the figures.
    pub scale: Scale,
    /// The figures, in the order of the page.
    pub figures: Vec<Box<dyn Figure>>,
}
