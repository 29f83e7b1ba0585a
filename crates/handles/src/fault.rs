//! Errors of a handle.

use millpond::{Error, ErrorKind};

/// Why a call of a handle failed.
///
/// ```
/// use millpond::ErrorKind;
/// use millpond_handles::Fault;
/// assert_eq!(Fault::TransactionOver.kind(), ErrorKind::TransactionFailed);
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// One of the engine's errors.
    #[error(transparent)]
    Engine(#[from] Error),
    /// The transaction was committed or aborted.
    #[error("the transaction is over: begin another one")]
    TransactionOver,
    /// The transaction went back to a savepoint, after the cursor had been opened.
    #[error("the transaction went back to a savepoint, which ended its cursors: open another one")]
    CursorOver,
    /// There is no such savepoint, or the transaction went back to one before it.
    #[error("the transaction has no savepoint {number}: it has {there}")]
    NoSavepoint {
        /// The one that was asked for.
        number: usize,
        /// Number of savepoints.
        there: usize,
    },
}

impl Fault {
    /// Returns the category of the error.
    ///
    /// ```
    /// use millpond::{Error, ErrorKind};
    /// use millpond_handles::Fault;
    /// assert_eq!(Fault::from(Error::ReadOnly).kind(), ErrorKind::ReadOnly);
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Fault::Engine(error) => error.kind(),
            Fault::TransactionOver | Fault::CursorOver | Fault::NoSavepoint { .. } => {
                ErrorKind::TransactionFailed
            }
        }
    }
}
