//! Chapter 4: deferred syncs, above a modelled file cache and modelled disks.
//!
//! His three systems are `org`, `rec` and `nio`; the last one is called `range` here, as in the
//! engine. Parameters that the text leaves open were chosen once, by its numbers for the calls: an
//! `fsync` of `rec` writes over 100 MB of a file cache of 240 MB, a `dsync` of `nio` under 10 MB
//! (4.4.1.2). The log per transaction, the part of the gap that a recovery frees, and the spread of
//! the updates' pages are set to reproduce both.

mod served;
mod setting;
mod systems;
mod tables;
mod tables_claims;
mod updates;
mod variants;
mod writes;

pub(super) use tables::figure as tables;
pub(super) use updates::figure as updates;
pub(super) use variants::figure as variants;
pub(super) use writes::Writes;
