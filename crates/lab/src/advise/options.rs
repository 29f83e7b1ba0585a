//! The options of a request for advice.

use millpond_base::Size;

/// Options of a request for advice.
#[derive(Clone, PartialEq, Debug)]
pub struct AdviseOptions {
    /// The default policy, with which the others are compared.
    pub default: String,
    /// Policies beside the shortlist.
    pub more: Vec<String>,
    /// Pool sizes; if empty, sizes that make sense for the trace.
    pub sizes: Vec<Size>,
    /// Bytes of a page, for sizes in bytes.
    pub page_size: u64,
    /// Cost of a page write, in page reads.
    pub write_weight: f64,
}

impl AdviseOptions {
    /// Compares with `default` at sizes that make sense, with a write as expensive as a read.
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
