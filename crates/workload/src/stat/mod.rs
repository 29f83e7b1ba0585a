//! Statistics of a trace: sizes and shares, reuse distances, footprint, storage requests.

mod describe;
mod footprint;
mod pages;
mod reuse;
mod storage;

pub use describe::{Describer, KindCount, TraceStat, describe};
pub use footprint::FootprintPoint;
pub use reuse::{ReuseBucket, ReuseHistogram};
pub use storage::{NextRequest, RequestType, StorageStat};
