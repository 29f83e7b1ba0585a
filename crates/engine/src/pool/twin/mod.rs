//! The twin: the same structures on plain memory, without a pool.
pub(in crate::pool) mod twin_memory;
pub mod twin_pages;
