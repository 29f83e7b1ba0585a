//! Nodes: layout, search, edits, and the choice of cuts.

pub(crate) mod edit;
pub(crate) mod layout;
pub(crate) mod search;
pub(crate) mod split;
#[cfg(test)]
mod tests;
