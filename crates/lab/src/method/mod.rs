//! Comparison of policies: tests of significance, Luan's joint method (luan 3.4), and regret.
//!
//! Tests work on pairs of values: two policies at one cache size, or in one repetition. The sign
//! test asks only which of the two is larger, the t-test by how much. [`Joint`] takes both tests,
//! for any number of policies, as Luan's tables do. For several claims at once, [`holm`] bounds the
//! probability that any of them is wrong. [`Ranks`] compares many policies over many settings.
//! [`block_bootstrap`] is for values that depend on their neighbours, such as blocks of one trace.
//! [`Regrets`] measure the distance of policies from the best one of each cell, by which a default
//! is judged; [`repeated`] does that for live runs.

mod bootstrap;
mod halves;
mod holm;
mod joint;
mod paired;
mod ranks;
mod regret;
mod repeated;
mod spearman;

pub use bootstrap::{block_bootstrap, block_len};
pub use halves::{Half, halves};
pub use holm::holm;
pub use joint::{Better, Joint, Mark, Marks, Weights};
pub use paired::{Outcome, sign_test, t_test};
pub use ranks::Ranks;
pub use regret::{Bootstrap, CellCost, Regret, RegretError, Regrets};
pub use repeated::repeated;
pub use spearman::spearman;
