//! Gilbert's second chapter live: a transaction's CPU time, component by component.
//!
//! - [`experiment`]: the figures, for one scale.
//! - [`published`]: his numbers.
//! - [`course`]: engines and workloads.
//! - [`throughput`]: throughput over threads (fig. 2.12).
//! - [`sampled`]: CPU time by component, sampled (figs 2.13–2.18, table 2.1).
//! - [`removal`]: CPU time by removing one component after the other (2.1.4).
//! - [`swizzling`]: swips beside a page table (fig. 2.21).
//! - [`sections`]: critical sections by component (2.3.2).
//! - [`steps`]: Harizopoulos' steps (fig. 2.1).
//! - [`step_list`]: the steps of removals, in order.
//! - [`counted`]: a step alone on one thread, for counting instructions.
//! - [`with_counts`]: a figure with instruction counts beside its measurements.

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
