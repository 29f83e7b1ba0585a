//! Errors of a store.
pub mod backup;
mod conversions;
mod display;
// `Error` has a file of its own name, like everything else.
#[allow(clippy::module_inception)]
mod error;
pub(in crate::store) mod kind;
pub mod lab;

pub use backup::BackupError;
pub use error::Error;
pub use kind::ErrorKind;
pub use lab::LabError;
