//! `millpond top`: what a running store does, interval by interval.
//!
//! The numbers are those that the store publishes; nothing is asked of its process. From the file
//! to the screen: [`watcher`] reads versions, [`sampler`] makes intervals of them, [`view`] lines
//! of an interval and [`json`] an object; [`terminal`] alone knows of a terminal.

mod command;
mod json;
mod sampler;
mod terminal;
mod units;
mod view;
mod waits;
mod watcher;

pub(crate) use command::{Args, run};
