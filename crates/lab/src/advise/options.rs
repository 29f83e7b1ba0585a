//! What advice is asked for.

use millpond_base::Size;

/// What is asked.
#[derive(Clone, PartialEq, Debug)]
pub struct AdviseOptions {
    /// The default policy: what others are compared with.
    pub default: String,
    /// Policies beside the shortlist.
    pub more: Vec<String>,
    /// Pool sizes; none for those that make sense for the trace.
    pub sizes: Vec<Size>,
    /// Bytes of a page, for sizes in bytes.
    pub page_size: u64,
    /// What a page write costs, in page reads.
    pub write_weight: f64,
}

impl AdviseOptions {
    /// Beside `default`, at sizes that make sense, a write as expensive as a read.
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
