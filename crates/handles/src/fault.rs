//! Errors of a handle.

use millpond::{Error, ErrorKind};

/// Reason that a call of a handle failed.
///
/// ```
/// use millpond::ErrorKind;
/// use millpond_handles::Fault;
/// assert_eq!(Fault::TransactionOver.kind(), ErrorKind::TransactionFailed);
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// An error of the engine.
    #[error(transparent)]
    Engine(#[from] Error),
    /// The transaction was committed or aborted.
    #[error("the transaction is over: begin another one")]
    TransactionOver,
    /// The transaction rolled back to a savepoint after the cursor was opened.
    #[error("the transaction went back to a savepoint, which ended its cursors: open another one")]
    CursorOver,
    /// The savepoint does not exist, or the transaction rolled back to an earlier one.
    #[error("the transaction has no savepoint {number}: it has {there}")]
    NoSavepoint {
        /// Number of the requested savepoint.
        number: usize,
        /// Number of savepoints that exist.
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
