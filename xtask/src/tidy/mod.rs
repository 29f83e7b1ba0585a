//! The house rules, checked: `cargo xtask tidy`.

mod circles;
mod code;
mod components;
mod crate_arrows;
mod folders;
mod functions;
mod headers;
mod house;
mod lengths;
mod links;
mod module_arrows;
mod module_files;
mod module_map;
mod options;
mod paragraphs;
mod phrase_list;
mod phrases;
mod profile;
mod prose;
mod run;
mod samples;
mod source;
mod text;
mod violation;

pub use components::Components;
pub use run::{check, main};
