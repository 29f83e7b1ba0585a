//! Devices that fail, lose power, read wrongly or are slow, and bugs that are planted: what tests
//! and campaigns run against.
pub(in crate::io) mod crash;
pub mod faulty;
pub(crate) mod pause;
pub mod planted;
pub(in crate::io) mod plug;
pub mod power;
pub mod read_faults;
pub mod slow;
