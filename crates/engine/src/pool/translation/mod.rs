//! Translation of a page id to a frame: the page table, and the loads that begin when a page is not
//! in memory.
pub mod in_flight;
pub mod page_table;
pub(in crate::pool) mod read_orders;
#[allow(clippy::module_inception, reason = "the folder's noun")]
pub(in crate::pool) mod translation;
mod verify;
