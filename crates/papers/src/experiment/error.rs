//! Errors of an experiment.

use std::io;
use std::path::PathBuf;

use super::figure::FigureError;
use super::need::Short;
use super::plan::PlanError;
use super::scale::Scale;
use millpond_lab::report::ReportError;
use millpond_lab::results::ResultError;

/// Reason that an experiment failed or ended early. Finished cells are kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// The experiment cannot be planned as asked.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The machine is too small for the experiment.
    #[error("`millpond-papers {paper} --scale {scale}` is refused: {short}")]
    Short {
        /// The paper.
        paper: &'static str,
        /// The scale.
        scale: Scale,
        /// Resource that is short.
        short: Short,
    },
    /// The result directory belongs to another experiment.
    #[error(
        "{path} is of `{is}`, and not of `millpond-papers {paper} --scale {scale}`: name its \
         command"
    )]
    Other {
        /// The directory.
        path: PathBuf,
        /// Command line that created it.
        is: String,
        /// Expected paper.
        paper: &'static str,
        /// The scale.
        scale: Scale,
    },
    /// A cell failed.
    #[error("{cell}: {error}")]
    Cell {
        /// The cell.
        cell: String,
        /// Error of the figure.
        error: FigureError,
    },
    /// The result directory.
    #[error(transparent)]
    Result(#[from] ResultError),
    /// The page.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A file of the result directory.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
}
