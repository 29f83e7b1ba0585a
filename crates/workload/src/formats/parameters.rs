//! The parameters of reading a trace, as messages name them.

use millpond_base::Parameter;

/// Format of the trace.
pub(crate) const FORMAT: Parameter = Parameter::with_flag("format", "trace_format");
/// Meaning of each column.
pub(crate) const COLUMNS: Parameter = Parameter::new("columns");
/// Words for operations.
pub(crate) const OPS: Parameter = Parameter::new("ops");
/// As many references as a request has pages.
pub(crate) const EXPAND_SIZES: Parameter = Parameter::new("expand_sizes");
/// Pages numbered from 0.
pub(crate) const MAP_IDS: Parameter = Parameter::new("map_ids");
