//! The house rules, checked: `cargo xtask tidy`.

mod code;
mod components;
mod crate_arrows;
mod functions;
mod headers;
mod links;
mod module_arrows;
mod module_files;
mod module_map;
mod run;
mod source;
mod text;
mod violation;

pub use run::{check, main};
