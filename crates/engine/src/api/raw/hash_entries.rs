//! The entries of a hash index of byte strings.

use crate::api::place::counted::ScanCount;
use crate::api::place::range::RawEntry;
use crate::api::strategy::*;
use crate::store::error::Error;

/// The entries of a hash index. After an error it ends.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let sessions = db.raw_hash_index("sessions")?;
/// sessions.put(b"4f1c", b"17")?;
/// for entry in &sessions {
///     assert_eq!(entry?, (b"4f1c".to_vec(), b"17".to_vec()));
/// }
/// # Ok(()) }
/// ```
pub struct RawEntries<'t> {
    index: &'t DbHashIndex,
    entries: DbEntries<'t>,
    count: ScanCount<'t>,
    is_over: bool,
}

impl<'t> RawEntries<'t> {
    pub(crate) fn new(
        index: &'t DbHashIndex,
        entries: DbEntries<'t>,
        count: ScanCount<'t>,
    ) -> RawEntries<'t> {
        RawEntries { index, entries, count, is_over: false }
    }

    /// The name of the index.
    pub(crate) fn name(&self) -> &str {
        self.index.name()
    }

    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    fn step(&mut self) -> Result<Option<RawEntry>, Error> {
        self.index.store().may_read()?;
        Ok(self.entries.next().transpose()?)
    }
}

impl Iterator for RawEntries<'_> {
    type Item = Result<RawEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.step();
        match &next {
            Ok(Some(_)) => self.count.rows += 1,
            Ok(None) | Err(_) => self.is_over = true,
        }
        next.transpose()
    }
}
