//! Why an experiment could not be run.

use std::io;
use std::path::PathBuf;

use super::figure::FigureError;
use super::need::Short;
use super::plan::PlanError;
use super::scale::Scale;
use millpond_lab::report::ReportError;
use millpond_lab::results::ResultError;

/// Why an experiment could not be run, or not to its end. What was finished is kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// The experiment cannot be planned as asked.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The machine is too small for it.
    #[error("`millpond-papers {paper} --scale {scale}` is refused: {short}")]
    Short {
        /// The paper.
        paper: &'static str,
        /// The scale.
        scale: Scale,
        /// Resource that is short.
        short: Short,
    },
    /// A result directory of something else.
    #[error(
        "{path} is of `{is}`, and not of `millpond-papers {paper} --scale {scale}`: name its \
         command"
    )]
    Other {
        /// The directory.
        path: PathBuf,
        /// The command line that made it.
        is: String,
        /// The paper that it was to be of.
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
