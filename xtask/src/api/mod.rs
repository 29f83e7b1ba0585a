//! How much of the engine its users see, and whether each item has an example: `cargo xtask api`.

mod count;
mod crate_docs;
mod examples;
mod run;
mod visit;

pub use run::{as_rustdoc, main};
