//! The entries of a hash index of byte strings.

use crate::api::place::range::RawEntry;
use crate::api::place::scan::Scan;
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
    scan: Scan<'t>,
}

impl<'t> RawEntries<'t> {
    pub(crate) fn new(scan: Scan<'t>) -> RawEntries<'t> {
        RawEntries { scan }
    }

    /// The name of the index.
    pub(crate) fn name(&self) -> &str {
        self.scan.name()
    }

    pub(crate) fn end(&mut self) {
        self.scan.end();
    }
}

impl Iterator for RawEntries<'_> {
    type Item = Result<RawEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.scan.next(true)?.map(|entry| (entry.key, entry.value)))
    }
}
