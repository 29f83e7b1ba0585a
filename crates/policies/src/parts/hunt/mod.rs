//! Victims by a threshold: the least value of a sample, and then, where more than one frame is
//! wanted, every one of some candidates that is worth no more (watt 5.3, listing 2).
//!
//! Draws are with replacement; the sample and the candidates of the next pass are drawn and their
//! metadata loaded while victims of this one are offered. A frame that is refused gives way to the
//! sample's next best, and after as many draws as there are frames without a victim all are offered
//! in turn.

mod chase;
mod drawn;
mod hunted;

pub use chase::hunt;
pub use hunted::{Hunted, Plan};
