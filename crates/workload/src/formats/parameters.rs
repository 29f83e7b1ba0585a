//! Parameters for reading a trace, as messages name them.

use millpond_base::Parameter;

/// Format of the trace.
pub const FORMAT: Parameter = Parameter::with_flag("format", "trace_format");
/// Meaning of each column.
pub const COLUMNS: Parameter = Parameter::new("columns");
/// Words for operations.
pub const OPS: Parameter = Parameter::new("ops");
/// One reference for each page of a request.
pub const EXPAND_SIZES: Parameter = Parameter::new("expand_sizes");
/// Pages numbered from 0.
pub const MAP_IDS: Parameter = Parameter::new("map_ids");
