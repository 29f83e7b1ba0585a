//! Opening of a store, in a file or on devices.
mod assemble;
pub mod builder;
mod remains;
mod second_tier;

pub use builder::Builder;
