//! Sampling on Linux: perf events, unwinding, symbols.

mod modules;
mod rings;
mod sampler;
mod symbols;

pub use sampler::Sampling;
