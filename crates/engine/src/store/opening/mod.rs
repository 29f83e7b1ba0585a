//! Opening: the one way to a store, its log, what recovery leaves to undo, and a damaged log.
mod assemble;
pub mod builder;
pub mod log_open;
pub(crate) mod log_salvage;
pub(crate) mod undo;

pub use builder::Builder;
