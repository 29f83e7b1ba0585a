//! Li's thesis (2011) on second tiers, by simulation: read hit ratios with hints (chapter 3),
//! deferred sync above a modelled file cache and modelled disks (chapter 4), and total I/O of
//! write-aware policies (chapter 5).
//!
//! Traces are recorded from our own engine in each repetition, by a caller that can run it, with a
//! live pool that works like the thesis' DB2. The MySQL-like family is simulated above page
//! references of the engine.

mod deferred;
mod dsyncs;
mod experiment;
mod first_tier;
mod hints;
mod hints_claims;
mod io;
mod io_claims;
mod kept;
mod listed;
mod only;
mod places;
mod printed;
mod simulate;
mod sync;
mod tables;
mod tables_claims;
mod traces;

pub use experiment::experiment;
pub use first_tier::{Course, Family, FirstTier, PAGE_SIZE, TRACES};
pub use kept::kept;
pub use only::only;
pub use traces::{RecordLi, Recorded};
