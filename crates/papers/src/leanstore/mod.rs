//! LeanStore's evaluation (ICDE 2018), live: in memory and beyond.
//!
//! - [`experiment`]: its figures, for one scale.
//! - [`hit_table`]: what policies make of the engine's own references (leanstore VI-B).
//! - `hits`: the same as a figure.
//! - `memory`, `outgrow`, `outside`: in memory, data that outgrow it, and out of memory.
//! - `course`: data, threads and devices at a scale.

mod course;
pub mod experiment;
pub mod hit_table;
mod hits;
mod memory;
mod outgrow;
mod outside;
