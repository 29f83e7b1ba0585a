//! The options of a request for advice.

use millpond_base::Size;

/// Options of a request for advice.
#[derive(Clone, PartialEq, Debug)]
pub struct AdviseOptions {
    /// The default policy, with which the others are compared.
    pub default: String,
    /// Policies to run beside the shortlist.
    pub more: Vec<String>,
    /// Pool sizes; if empty, sizes are chosen for the trace.
    pub sizes: Vec<Size>,
    /// Bytes per page, for sizes in bytes.
    pub page_size: u64,
    /// Cost of a page write, in page reads.
    pub write_weight: f64,
}

impl AdviseOptions {
    /// Returns the options for a comparison with `default`, at sizes chosen for the trace, with a
    /// write as expensive as a read.
    pub fn new(default: &str) -> AdviseOptions {
        AdviseOptions {
            default: default.to_string(),
            more: Vec::new(),
            sizes: Vec::new(),
            page_size: 4096,
            write_weight: 1.0,
        }
    }
}
