//! Tools for administrators: check, dump, salvage, backup, shrink, a view of the log.
pub mod backup;
mod backup_file;
pub mod check;
pub mod dump;
pub mod log_view;
pub mod salvage;
pub mod shrink;

pub use backup::{Backup, BackupPhase, BackupProgress};
pub use log_view::LogRecord;
pub use shrink::{ShrinkProgress, ShrinkWatch, Shrunk};
