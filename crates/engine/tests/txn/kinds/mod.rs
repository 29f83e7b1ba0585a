//! Transactions and snapshots over a tree, a hash index and a heap together.

mod histories;
mod scene;
mod waits;
