//! Errors of a tree.

use crate::pool::PoolError;

/// An error of an operation that writes.
///
/// ```
/// # use millpond::{Db, Error, Options, error::WriteError};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let tree = db.raw_tree("ponds")?;
/// let long = tree.put(&[7; 5000], b"");
/// assert!(matches!(long, Err(Error::Write(WriteError::KeyTooLong { len: 5000, .. }))));
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The key is longer than the page size allows.
    #[error("a key of {len} bytes does not fit: keys have at most {max} at this page size")]
    KeyTooLong {
        /// Bytes of the key.
        len: usize,
        /// Maximum length of a key in bytes.
        max: usize,
    },
    /// The value is longer than values may be.
    #[error("a value of {len} bytes does not fit: values have at most {max}")]
    ValueTooLong {
        /// Bytes of the value.
        len: u64,
        /// Maximum length of a value in bytes.
        max: u64,
    },
    /// The memory behind the tree failed.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

/// An error of writing or reading a value as a stream.
///
/// ```
/// # use millpond::{Db, Error, Options, error::StreamError};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let films = db.tree::<String, Vec<u8>>("films")?;
/// let short = films.put_from("heron", 100, &[7; 50][..]);
/// assert!(matches!(short, Err(Error::Stream(StreamError::Short { read: 50, len: 100 }))));
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The tree could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The source of the value failed.
    #[error("the source of the value failed after {read} bytes: {error}")]
    Source {
        /// Number of bytes read before.
        read: u64,
        /// Error of the source.
        error: std::io::Error,
    },
    /// The source of the value ended early.
    #[error("the source of the value ended after {read} of {len} bytes")]
    Short {
        /// Number of bytes read.
        read: u64,
        /// Number of bytes announced.
        len: u64,
    },
    /// The value was changed or removed while it was read.
    #[error("the value was changed or removed while it was read: open it again")]
    Changed,
}

impl From<PoolError> for StreamError {
    fn from(error: PoolError) -> StreamError {
        StreamError::Write(WriteError::Pool(error))
    }
}

/// An error of a bulk load.
///
/// ```
/// # use millpond::{BulkOptions, Db, Error, Options, error::BulkError};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let tree = db.tree::<u32, String>("words")?;
/// let rows = [(2, "two".to_string()), (1, "one".to_string())];
/// let refused = tree.bulk_load(rows, BulkOptions::default());
/// assert!(matches!(refused, Err(Error::Bulk(BulkError::Order { row: 1, .. }))), "{refused:?}");
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BulkError {
    /// The tree was not empty, or another thread wrote to it.
    #[error("a bulk load needs an empty tree that no other thread writes to")]
    NotEmpty,
    /// A key is not above the one before it.
    #[error("row {row} is out of order: its key {key:?} is not above {previous:?}")]
    Order {
        /// Number of the row, from 0.
        row: u64,
        /// Key of the row.
        key: Vec<u8>,
        /// The key before it.
        previous: Vec<u8>,
    },
    /// A row could not be written.
    #[error("row {row} could not be written: {error}")]
    Write {
        /// Number of the row, from 0.
        row: u64,
        /// The reason.
        error: WriteError,
    },
}
