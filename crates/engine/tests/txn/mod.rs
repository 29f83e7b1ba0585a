//! Transactions and recovery, as users see them.

mod backup;
mod checking;
mod commit;
mod dropped;
mod faults;
mod golden;
mod histories;
mod history;
mod isolation;
mod large_versions;
mod limits;
mod making;
mod moving;
mod own_thread;
mod panics;
mod queue;
mod recovery;
mod salvage;
mod shrink;
mod snapshot_model;
mod snapshot_threads;
mod snapshots;
mod spilling;
mod transact;
mod undo;
mod verbs;
