//! Exit of the program after a failed experiment.

use millpond_cli::program::Failure;

use crate::experiment::ExperimentError;

impl From<ExperimentError> for Failure {
    /// Uses exit code 2 for an unknown figure, else 1.
    fn from(error: ExperimentError) -> Failure {
        match error {
            ExperimentError::Plan(_) => Failure::Usage(error.to_string()),
            _ => Failure::Partly(error.to_string()),
        }
    }
}
