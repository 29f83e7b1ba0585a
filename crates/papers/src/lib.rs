//! Five papers repeated, each figure beside what the paper prints and each sentence judged.
//!
//! - [`gilbert`], [`leanstore`], [`li`], [`luan`], [`watt`]: the papers; [`looking_glass`] is
//!   gilbert's second chapter.
//! - [`default_policy`]: a question of ours: which policy decides where nothing names one, by
//!   regret.
//! - [`recording`]: traces of the engine for simulated experiments.
//! - [`live`]: figures whose cells are runs of the engine.
//! - [`simulated`]: figures whose cells are simulations.
//! - [`cost`]: the cost of a policy by itself: its hits, its victims, its bytes.
//! - [`storage`]: disks, an array, a file cache and their clients, in virtual time.
//! - [`experiment`]: the frame in which a paper's figures run, cell by cell.
//!
//! A lower entry of this list knows none above it. No other crate of this repository uses this one.
//!
//! The command line `millpond-papers` is [`main_with`]: a user's own program can call it with
//! policies of the user's own.
//!
//! ```no_run
//! use millpond_papers::Policies;
//! // let policies = Policies::builtin().with::<MyPolicy>()?;
//! let code = millpond_papers::main_with(Policies::builtin());
//! ```
#![deny(missing_docs)]

mod commands;
pub mod cost;
pub mod default_policy;
pub mod experiment;
pub mod gilbert;
pub mod leanstore;
pub mod li;
pub mod live;
pub mod looking_glass;
pub mod luan;
pub mod recording;
pub mod simulated;
pub mod storage;
pub mod watt;

pub use commands::{Policies, command, main_with};
