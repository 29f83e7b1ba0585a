//! All tests of live runs but `paged`, in one program.

mod runs;
mod store;
mod tier_worlds;
mod tpcc_policies;
mod transactions;
mod two_worlds;
