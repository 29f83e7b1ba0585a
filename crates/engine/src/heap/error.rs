//! Errors of a heap.

use millpond_base::PageId;

use crate::pool::{Jump, PoolError};

/// An error of an operation that writes.
///
/// ```
/// # use millpond::{Db, Error, Options, error::HeapWriteError};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let films = db.heap::<Vec<u8>>("films")?;
/// let long = films.append(&[7; 5000][..]);
/// assert!(matches!(long, Err(Error::HeapWrite(HeapWriteError::TooLong { len: 5000, .. }))));
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The record is larger than a page allows.
    #[error("a record of {len} bytes does not fit: records have at most {max} at this page size")]
    TooLong {
        /// Bytes of the record.
        len: usize,
        /// Maximum length of a record in bytes.
        max: usize,
    },
    /// The memory behind the heap failed.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

/// Ends the attempt with an error: the store is damaged.
#[cold]
pub(crate) fn corrupt(page: PageId, what: &str) -> Jump {
    Jump::failed(PoolError::Corrupt { page, what: what.to_string() })
}
