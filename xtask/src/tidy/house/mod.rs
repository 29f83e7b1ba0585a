//! The code base in figures: sizes of its parts, number of public names, style of its prose.
//!
//! `components.toml` caps the two shares of openings. No other figure is a limit: a reviewer
//! compares them between two commits.

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
pub use openings::{Openings, openings};
pub use render::{Sites, render};
