//! `millpond top`: the activity of a running store, interval by interval.
//!
//! `top` reads the numbers that the store publishes and never contacts its process. From file to
//! screen: [`watcher`] reads versions, [`sampler`] turns them into intervals, and [`view`] turns
//! an interval into lines, [`json`] into an object. Only [`terminal`] knows the terminal.

mod command;
mod json;
mod sampler;
mod terminal;
mod units;
mod view;
mod waits;
mod watcher;

pub(crate) use command::{Args, run};
