//! All tests of live runs but `paged`, in one program.

mod runs;
mod stalls;
mod store;
mod tier_worlds;
mod tpcc_policies;
mod transactions;
mod two_worlds;
