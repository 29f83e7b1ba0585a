//! Victims by a threshold: the least valued frame of a sample, and then, if more than one frame is
//! wanted, every candidate of no higher value (watt 5.3, listing 2).
//!
//! Draws are with replacement. The sample and the candidates of the next pass are drawn, and their
//! metadata loaded, while victims of this pass are offered. A refused frame gives way to the
//! sample's next best. If the number of draws reaches the number of frames without a victim, all
//! frames are offered in turn.

mod chase;
mod drawn;
mod hunted;

pub use chase::hunt;
pub use hunted::{Hunted, Plan};
