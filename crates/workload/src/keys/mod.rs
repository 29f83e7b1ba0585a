//! Choice of the next row: the distributions from which live runs draw row numbers.
//!
//! A [`Chooser`] draws numbers from 0 to n − 1 with one of the [`Distribution`]s, and may spread
//! the popular ones over the rows by a [`Scramble`]. All draws come from one fixed generator
//! (xoshiro256++, [`crate::generate::Random`]) by conversions written here, so a seed gives the
//! same keys on every machine.

mod chooser;
mod scramble;
mod zeta;
mod zipf;

pub use chooser::{Chooser, ChooserError, Distribution};
pub use scramble::{Scramble, mix, permute_keyed};
pub use zeta::zeta;
pub use zipf::Zipf;
