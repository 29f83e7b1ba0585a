//! Size of the engine's public interface, and its items without an example: `cargo xtask api`.

mod count;
mod crate_docs;
mod examples;
mod run;
mod visit;

pub use run::{as_rustdoc, main};
