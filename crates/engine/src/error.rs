//! The causes of an [`Error`](crate::Error): a narrow enum for each operation.
pub use crate::btree::{BulkError, StreamError, WriteError};
pub use crate::encoding::DecodeError;
pub use crate::hash_index::WriteError as HashWriteError;
pub use crate::heap::WriteError as HeapWriteError;
pub use crate::io::{AllocateError, CloseError, CreateError, OpenError, SyncError};
pub use crate::lock::{LockError, TreeName};
pub use crate::log::LogError;
pub use crate::pool::PoolError;
pub use crate::recovery::RecoveryError;
pub use crate::store::combinations::PolicyFitError;
pub use crate::store::{BackupError, OptionsError};
pub use crate::txn::TxnError;
pub use crate::words::ChoiceError;
pub use millpond_tier::TierError;
