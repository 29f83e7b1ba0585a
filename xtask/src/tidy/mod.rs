//! The house rules, checked: `cargo xtask tidy`.

mod circles;
mod code;
mod components;
mod crate_arrows;
mod headers;
mod house;
mod links;
mod module_arrows;
mod module_files;
mod module_map;
mod opening_words;
mod options;
mod outliers;
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
