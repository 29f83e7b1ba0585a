//! What can go wrong with a store.
pub mod backup;
// `Error` has a file of its own name, as everything else has.
#[allow(clippy::module_inception)]
mod error;
pub mod lab;

pub use backup::BackupError;
pub use error::Error;
pub use lab::LabError;
