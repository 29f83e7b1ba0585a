//! After a crash: what the log says, applied to pages; `README.md` has the rules.

pub mod analysis;
pub mod checkpoint;
pub mod damage;
pub mod error;
pub mod examine;
pub mod index;
pub mod progress;
mod rebuild;
pub mod redo;
pub mod report;
pub mod run;

pub use analysis::{Analysis, Loser};
pub use checkpoint::{Active, Checkpoint};
pub use damage::{LogDamage, LostRecords, Obstacle, StrayPage, StrayPages};
pub use error::RecoveryError;
pub use examine::{Examined, examine, stray_pages};
pub use index::{Life, PageIndex};
pub use progress::{Phase, Progress};
pub use rebuild::ApplyRedoNote;
pub use redo::{RedoOptions, Redone, redo};
pub use report::{Recovery, Salvaged};
pub use run::{Recovered, recover};
