//! The house in figures: how large its rooms are, how many names its users meet, how its prose
//! reads.
//!
//! No figure of it is a limit but the two shares of openings, which `components.toml` caps. The
//! rest is for a reviewer, who compares two commits.

mod bytes;
mod counts;
mod measured;
mod object_types;
mod openings;
mod parsed;
mod raw_locks;
mod render;
mod root_names;
mod sentences;
mod sizes;
mod tuple_parameters;
mod vocabulary;

pub use measured::House;
pub use render::{Sites, render};
