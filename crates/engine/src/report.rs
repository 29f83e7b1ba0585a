//! Progress and results of long operations: backups, checks, recoveries, shrinking.
pub use crate::admin::{Backup, BackupPhase, BackupProgress, ShrinkProgress, ShrinkWatch, Shrunk};
#[cfg(not(any(test, feature = "model")))]
pub use crate::api::{CheckProgress, CheckReport, CheckWatch, CheckedStructure};
pub use crate::recovery::{
    LogDamage, LostRecords, Obstacle, Phase, Progress, Recovery, Salvaged, StrayPage, StrayPages,
};
pub use crate::store::RecoveryWatch;
