//! Options of an experiment: its place, its figures, its repetitions and its time.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value as Json;

use super::need::Room;
use super::scale::Scale;

/// Options of an experiment.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder in which the result directory is created.
    pub root: PathBuf,
    /// Ids of the figures to run; none for all of them.
    pub figures: Vec<String>,
    /// Set to take finished cells, and run the others.
    pub resume: bool,
    /// Maximum number of repetitions of every cell.
    pub repetitions: u32,
    /// Time that the experiment may take.
    pub budget: Option<Duration>,
    /// Resources of the machine.
    pub room: Room,
    /// The command line that repeats it, for the page.
    pub command_line: String,
    /// Further parameters on which the rows depend, for the directory's name and `run.json`.
    pub params: Json,
}

impl Options {
    /// Returns the options for all figures, with the scale's repetitions and time, in
    /// `results`, on this machine.
    pub fn of(scale: Scale) -> Options {
        let root = PathBuf::from("results");
        Options {
            room: Room::here(&root),
            root,
            figures: Vec::new(),
            resume: false,
            repetitions: scale.repetitions(),
            budget: scale.budget(),
            command_line: String::new(),
            params: Json::Null,
        }
    }

    /// Returns `true` if the figure with this id must run.
    pub fn wants(&self, id: &str) -> bool {
        self.figures.is_empty() || self.figures.iter().any(|wanted| wanted == id)
    }
}
