//! LeanStore's evaluation (ICDE 2018), live: in memory and beyond.
//!
//! - [`experiment`]: its figures, for one scale.
//! - [`hit_table`]: hit rates of policies over the engine's own references (leanstore
//!   VI-B).
//! - `hits`: the table of hit rates as a figure.
//! - `memory`, `outgrow`, `outside`: in memory, data that outgrow it, and out of memory.
//! - `course`: data, threads and devices at a scale.

mod course;
pub mod experiment;
pub mod hit_table;
mod hits;
mod memory;
mod outgrow;
mod outside;
