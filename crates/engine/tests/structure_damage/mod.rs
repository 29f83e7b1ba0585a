//! Damaged pages of hash indexes and heaps: reported by checks, without a panic.

use std::sync::{Arc, LazyLock};

use millpond::internals::pool::{Optimistic, Twin};

mod hash;
mod heap;

/// Bytes of a page.
const PAGE: usize = 512;

/// One memory for all: a new one for each case would take longer than the cases do.
fn memory() -> Arc<Twin<Optimistic>> {
    static MEMORY: LazyLock<Arc<Twin<Optimistic>>> =
        LazyLock::new(|| Arc::new(Twin::new(PAGE).unwrap()));
    MEMORY.clone()
}
