//! Nodes: their layout, search, changes, and where to cut them.

pub(crate) mod edit;
pub(crate) mod layout;
pub(crate) mod search;
pub(crate) mod split;
#[cfg(test)]
mod tests;
