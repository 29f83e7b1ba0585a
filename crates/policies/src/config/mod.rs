//! A policy's parameters: declared once, set from a command line, printed with their defaults.
//!
//! A policy file declares its parameters with [`config!`](crate::config!). Every parameter gets a
//! name, a default, a help line and, optionally, a range. Nothing else in the crate knows them.

#[macro_use]
mod declare;
mod error;
mod param;
mod part;
mod spec;
#[cfg(test)]
mod tests;

pub use declare::{Config, NoConfig, ParamInfo, unknown};
pub use error::ParamError;
pub use param::{Amount, Param, in_range, read_param, within};
pub use part::{Multiple, Part};
pub use spec::Spec;
