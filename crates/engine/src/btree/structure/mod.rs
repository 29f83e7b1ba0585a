//! Structural changes: splits, merges, shifts, and the operations built of them.

pub(crate) mod bulk;
mod compact;
mod merge;
mod range_delete;
mod relink;
mod shift;
mod split;
