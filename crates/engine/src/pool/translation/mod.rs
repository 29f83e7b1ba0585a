//! Translation of a page id to a frame: swips that are followed, a page table that is looked up,
//! and the loads that both begin when a page is not in memory.
mod ahead;
pub(in crate::pool) mod fetch;
pub mod in_flight;
pub mod page_table;
pub(in crate::pool) mod read_orders;
pub(in crate::pool) mod resolve;
mod verify;
