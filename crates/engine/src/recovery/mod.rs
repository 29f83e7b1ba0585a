//! Checkpoints, opening a store together with its log, and recovery after a crash: analysis, redo
//! and undo; `README.md` has the rules.

pub mod analysis;
pub mod checkpoint;
pub(crate) mod checkpointer;
pub mod damage;
pub mod error;
pub mod examine;
pub(crate) mod generation;
pub mod index;
pub mod log_open;
pub(crate) mod log_salvage;
mod log_settings;
pub mod progress;
mod rebuild;
pub mod redo;
pub mod report;
pub mod run;
mod sweep;
pub(crate) mod undo;

pub use analysis::{Analysis, Loser};
pub use checkpoint::{Active, Checkpoint};
pub(crate) use checkpointer::Checkpointer;
pub use damage::{LogDamage, LostRecords, Obstacle, StrayPage, StrayPages};
pub use error::RecoveryError;
pub(crate) use error::{CheckpointError, OpenLogError, UndoError};
pub use examine::{Examined, examine, stray_pages};
pub use index::{Life, PageIndex};
pub(crate) use log_open::OpenedLog;
pub(crate) use log_settings::{LogSettings, StructureNames};
pub use progress::{Phase, Progress};
pub use rebuild::ApplyRedoNote;
pub use redo::{RedoOptions, Redone, redo};
pub use report::{Recovery, Salvaged};
pub use run::{Recovered, recover};
pub(crate) use undo::HoldsStructure;
