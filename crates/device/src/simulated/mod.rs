//! Devices that fail, lose power, read wrongly or are slow, for tests and campaigns.
pub(crate) mod crash;
pub mod faulty;
pub(crate) mod pause;
pub(crate) mod plug;
pub mod power;
pub mod read_faults;
pub mod slow;
