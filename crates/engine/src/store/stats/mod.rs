//! Statistics of a store: counted, published in a file, and read from it.
pub(crate) mod census;
mod json;
mod latency;
mod process;
mod prometheus;
#[cfg(all(test, feature = "serde"))]
mod stat_bounds;
pub mod stat_file;
// `Stats` has a file of its own name, like everything else.
#[allow(clippy::module_inception)]
mod stats;

pub use latency::Latency;
pub use process::Process;
pub use stat_file::{Freshness, Published, Publisher};
pub use stats::Stats;
