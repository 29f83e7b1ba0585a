//! Structural changes: splits, merges, shifts, and the operations built from them.

pub(crate) mod bulk;
mod compact;
mod merge;
mod range_delete;
mod relink;
mod shift;
mod split;
