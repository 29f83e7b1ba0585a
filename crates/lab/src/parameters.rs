//! The parameters of the laboratory, as messages name them.

use millpond_base::{Parameter, Spelled};

pub(crate) const BLOCKS: Parameter = Parameter::new("blocks");
pub(crate) const METRIC: Parameter = Parameter::new("metric");
pub(crate) const PAGE_SIZE: Parameter = Parameter::new("page_size");
pub(crate) const REPLICATE: Parameter = Parameter::new("replicate");
pub(crate) const SCAN_HINTS: Parameter = Parameter::new("scan_hints");
pub(crate) const SIZES: Parameter = Parameter::with_flag("sizes", "size");

/// Advice for rows of which only a part can be compared.
pub(crate) const SELECT: Spelled = Spelled {
    rust: "pass only rows that agree in it",
    command_line: "choose among them with --where COLUMN=VALUE",
    python: "pass only rows that agree in it",
};

/// The beginning of a condition on the column `options`, which a closing quote ends.
pub(crate) const SELECT_OPTIONS: Spelled = Spelled {
    rust: "pass only rows with 'options=",
    command_line: "choose with --where 'options=",
    python: "pass only rows with 'options=",
};
