//! The hash index and the heap: against models, on thrashing pools, and under threads.

mod harness;
mod hash_model;
mod hash_stress;
mod heap_model;
mod heap_stress;
mod registration;
