//! `millpond tour`: the main job once, end to end.

mod command;
mod contest;
mod live;
mod watch;

pub(crate) use command::{Args, run};
