//! The pool's memory: the region of frames, huge pages, NUMA nodes, free lists, memory
//! populated ahead of need.
pub mod ahead;
pub(in crate::pool) mod frame_page;
pub(crate) mod frames;
pub mod free_list;
pub mod huge;
pub mod numa;
pub mod region;
