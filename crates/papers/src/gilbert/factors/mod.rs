//! Gilbert's three factors of every live policy in one table (gilbert 1.3, 1.4), and what of his
//! first chapter is corrected beside it.
//!
//! - [`factors`](factors()): hit rates live, and what hits, victims and bytes cost.
//! - [`costs`](costs::costs): the last two, over pool sizes.
//! - [`Correction`]: three of his figures, judged as what they measured.

mod corrections;
pub mod costs;
mod live_rounds;
mod policy_factors;
pub mod rows;
#[cfg(test)]
mod tests;

pub(super) use corrections::corrections;
pub use corrections::{Correction, LEAN, LOOP};
pub use policy_factors::{Factors, Live, PolicyFactors, Result, factors, table_policies};
