//! Errors of a hash index.

use millpond_base::PageId;

use crate::pool::{Jump, PoolError};

/// An error of an operation that writes.
///
/// ```
/// # use millpond::{Db, Error, Options, error::HashWriteError};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let index = db.hash_index::<String, Vec<u8>>("films")?;
/// let long = index.put("heron", &[7; 5000][..]);
/// assert!(matches!(long, Err(Error::HashWrite(HashWriteError::TooLong { value: 5000, .. }))));
/// # Ok(()) }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The entry is larger than the page size allows.
    #[error(
        "an entry of {key} + {value} bytes does not fit: key and value have at most {max} bytes \
         together at this page size"
    )]
    TooLong {
        /// Bytes of the key.
        key: usize,
        /// Bytes of the value.
        value: usize,
        /// Maximum length of both together.
        max: usize,
    },
    /// The bucket is full and cannot be split, since the hashes of its keys agree in all bits that
    /// directories can distinguish: the keys were chosen to collide.
    #[error(
        "no room for the key: more keys than fit on a page agree in {bits} bits of their hashes; \
         copy the entries into an index with another seed"
    )]
    Collisions {
        /// Number of bits that directories distinguish.
        bits: u32,
    },
    /// The memory behind the index failed.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

/// Ends the attempt with an error: the store is damaged.
#[cold]
pub(crate) fn corrupt(page: PageId, what: &str) -> Jump {
    Jump::failed(PoolError::Corrupt { page, what: what.to_string() })
}
