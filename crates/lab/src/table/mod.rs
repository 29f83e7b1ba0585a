//! Results as rows of named columns, and every form in which they leave the program.

mod csv;
mod json;
mod names;
mod parquet;
mod text;
mod value;

pub use names::short_names;
pub use text::terminal_width;
pub use value::{Table, TableError, Value};
