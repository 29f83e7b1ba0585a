//! Errors of the laboratory's strategies, which users do not meet.

use crate::store::combinations::CombinationError;
use crate::store::entry::Structure;

/// A strategy of the laboratory does not support the request.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// These strategies are not compiled together.
    #[error(transparent)]
    Combination(#[from] CombinationError),
    /// `Db` is not compiled for these strategies.
    #[error(
        "{combination} is the laboratory's: open it as a `Store<M>`, by `Combination::visit`, or \
         leave translation, latching and recording as they are by default"
    )]
    NotForUsers {
        /// The strategies.
        combination: String,
    },
    /// The store's strategies are compiled for trees only.
    #[error(
        "'{name}': no {wanted} is compiled for translation, latching or recording as they are set; \
         leave them as they are by default"
    )]
    TreesOnly {
        /// The name.
        name: String,
        /// The requested structure.
        wanted: Structure,
    },
    /// The store's strategies have no log and no transactions.
    #[error(
        "no transactions are compiled for translation, latching or recording as they are set: \
         leave them as they are by default"
    )]
    NoTransactions,
    /// A store with `latching = none` was used by a second thread.
    #[error("latching = none is for the thread that opened the store: open it with latches")]
    WrongThread,
}
