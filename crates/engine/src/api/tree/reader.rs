//! Large values as streams, in every context.

use std::io::{self, Read, Seek, SeekFrom};

use crate::api::strategy::*;

/// A source that returns a value piece by piece.
pub(crate) trait Pieces: Read + Seek {
    /// Number of bytes in the value.
    fn value_len(&self) -> u64;
}

/// A value, read piece by piece through [`io::Read`] and [`io::Seek`]. Outside transactions and
/// snapshots, reading fails if the value is changed or removed in the meantime.
///
/// ```
/// # use std::io::{Read, Seek, SeekFrom};
/// # use millpond::{Db, Options};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let films = db.tree::<String, Vec<u8>>("films")?;
/// films.put_from("heron", 1 << 20, std::io::repeat(7))?;
/// let mut film = films.reader("heron")?.ok_or("no film")?;
/// assert_eq!(film.len(), 1 << 20);
/// film.seek(SeekFrom::End(-2))?;
/// let mut end = Vec::new();
/// film.read_to_end(&mut end)?;
/// assert_eq!(end, [7, 7]);
/// # Ok(()) }
/// ```
pub struct ValueReader<'t> {
    pieces: Box<dyn Pieces + Send + 't>,
}

impl<'t> ValueReader<'t> {
    pub(crate) fn new(pieces: impl Pieces + Send + 't) -> ValueReader<'t> {
        ValueReader { pieces: Box::new(pieces) }
    }

    /// Returns the number of bytes in the value.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let films = db.tree::<String, Vec<u8>>("films")?;
    /// films.put("heron", &[7; 5000][..])?;
    /// assert_eq!(films.reader("heron")?.map(|film| film.len()), Some(5000));
    /// # Ok(()) }
    /// ```
    pub fn len(&self) -> u64 {
        self.pieces.value_len()
    }

    /// Returns `true` if the value has no bytes.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let films = db.tree::<String, Vec<u8>>("films")?;
    /// films.put("heron", &[7; 5000][..])?;
    /// assert_eq!(films.reader("heron")?.map(|film| film.is_empty()), Some(false));
    /// # Ok(()) }
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Read for ValueReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.pieces.read(out)
    }
}

impl Seek for ValueReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.pieces.seek(to)
    }
}

impl Pieces for DbReader<'_> {
    fn value_len(&self) -> u64 {
        self.len()
    }
}
