//! Gilbert's three factors of every live policy in one table (gilbert 1.3, 1.4), with
//! corrections of his first chapter.
//!
//! - [`factors`](factors()): live hit rates, and the costs of hits, victims and bytes.
//! - [`costs`](costs::costs): costs of hits and victims over pool sizes.
//! - [`Correction`]: three of his figures, judged by what they measured.

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
