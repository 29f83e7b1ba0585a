//! Conversions of the errors of lower layers into errors of a store.

use millpond_device::{DeviceError, OpenFileError};

use crate::btree::{StreamError, WriteError};
use crate::lock::LockError;
use crate::log::LogError;
use crate::pool::PoolError;
use crate::recovery::{CheckpointError, LogDamage, OpenLogError, UndoError};
use crate::store::error::backup::BackupError;
use crate::store::error::error::Error;
use crate::txn::TxnError;
use crate::{hash_index, heap};

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Error {
        match error {
            WriteError::Pool(error) => Error::Pool(error),
            other => Error::Write(other),
        }
    }
}

impl From<hash_index::WriteError> for Error {
    fn from(error: hash_index::WriteError) -> Error {
        match error {
            hash_index::WriteError::Pool(error) => Error::Pool(error),
            other => Error::HashWrite(other),
        }
    }
}

impl From<heap::WriteError> for Error {
    fn from(error: heap::WriteError) -> Error {
        match error {
            heap::WriteError::Pool(error) => Error::Pool(error),
            other => Error::HeapWrite(other),
        }
    }
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Error {
        match error {
            StreamError::Write(error) => error.into(),
            other => Error::Stream(other),
        }
    }
}

impl From<LogDamage> for Error {
    fn from(damage: LogDamage) -> Error {
        Error::LogDamaged(Box::new(damage))
    }
}

impl From<OpenLogError> for Error {
    fn from(error: OpenLogError) -> Error {
        match error {
            OpenLogError::Open(error) => error.into(),
            OpenLogError::Create(error) => error.into(),
            OpenLogError::File(error) => error.into(),
            OpenLogError::Device(error) => error.into(),
            OpenLogError::Log(error) => error.into(),
            OpenLogError::Recovery(error) => error.into(),
            OpenLogError::Damaged(damage) => Error::LogDamaged(damage),
            OpenLogError::Missing { path } => Error::LogMissing { path },
            OpenLogError::OldLog { path, reason } => Error::OldLog { path, reason },
        }
    }
}

impl From<UndoError> for Error {
    fn from(error: UndoError) -> Error {
        match error {
            UndoError::Log(error) => error.into(),
            UndoError::NoUndo { at, tx } => Error::NoUndo { at, tx },
            UndoError::Txn(error) => error.into(),
            UndoError::Write(error) => error.into(),
            UndoError::Pool(error) => error.into(),
        }
    }
}

impl From<CheckpointError> for Error {
    fn from(error: CheckpointError) -> Error {
        match error {
            CheckpointError::Pool(error) => error.into(),
            CheckpointError::Sync(error) => error.into(),
            CheckpointError::Log(error) => error.into(),
            CheckpointError::Length(error) => error.into(),
            CheckpointError::Map(error) => Error::Pool(PoolError::storage(error)),
            CheckpointError::Pack(error) => Error::Pool(PoolError::storage(error)),
            CheckpointError::Displaced { path } => Error::Displaced { path },
            CheckpointError::LogPinned => BackupError::UnderWay.into(),
        }
    }
}

impl From<LogError> for Error {
    fn from(error: LogError) -> Error {
        Error::Pool(PoolError::Log(error))
    }
}

impl From<TxnError> for Error {
    fn from(error: TxnError) -> Error {
        match error {
            TxnError::Pool(error) => Error::Pool(error),
            TxnError::Write(error) => error.into(),
            TxnError::HashWrite(error) => error.into(),
            TxnError::HeapWrite(error) => error.into(),
            TxnError::Log(error) => error.into(),
            TxnError::Forked => Error::Forked,
            TxnError::Closed => Error::Closed,
            other => Error::Txn(other),
        }
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Error {
        Error::Txn(TxnError::Lock(error))
    }
}

impl From<OpenFileError> for Error {
    fn from(error: OpenFileError) -> Error {
        Error::Open(error.into())
    }
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Error {
        Error::Open(error.into())
    }
}
