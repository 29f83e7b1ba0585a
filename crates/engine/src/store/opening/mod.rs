//! Opening: the one way to a store in a file or on devices.
mod assemble;
pub mod builder;
mod second_tier;

pub use builder::Builder;
