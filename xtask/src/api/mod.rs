//! How much of the engine its users see: `cargo xtask api`.

mod count;
mod crate_docs;
mod run;

pub use run::{as_rustdoc, main};
