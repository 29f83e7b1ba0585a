//! Gilbert's second chapter live: where a transaction's CPU time goes, component by component.
//!
//! - [`experiment`]: the figures, for one scale.
//! - [`published`]: his numbers.
//! - [`course`]: engines and workloads.
//! - [`throughput`]: throughput over threads (fig. 2.12).
//! - [`sampled`]: CPU time by component, sampled (figs 2.13–2.18, table 2.1).
//! - [`removal`]: by taking one component after the other away (2.1.4).
//! - [`swizzling`]: swips beside a page table (fig. 2.21).
//! - [`sections`]: critical sections by component (2.3.2).
//! - [`steps`]: Harizopoulos' steps (fig. 2.1).
//! - [`step_list`]: what removals take away, in which order.
//! - [`counted`]: a step alone on one thread, to count instructions of.
//! - [`with_counts`]: a figure that has them beside what it measures.

pub mod counted;
pub mod experiment;

mod course;
mod published;
mod removal;
mod sampled;
mod sections;
mod step_list;
mod steps;
mod swizzling;
mod throughput;
mod with_counts;
