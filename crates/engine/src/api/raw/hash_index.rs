//! Hash indexes of byte strings.
//!
//! As with [trees](crate::api::raw::tree), what is compiled for each combination is compiled in
//! this crate.

use crate::api::place::at::{Alone, InTxn, Inside, Where};
use crate::api::place::range::RawEntry;
use crate::api::place::scan::{self, Scan};
use crate::api::raw::hash_entries::RawEntries;
use crate::api::strategy::*;
use crate::hash_index::{HashStats, Limits};
use crate::page::Scratch;
use crate::pool::Shared;
use crate::store::counted::GET;
use crate::store::error::Error;
use crate::store::member::Member;

/// A named hash index: an unordered map of byte strings.
///
/// A handle: clones are cheap, and any thread may use them. Each call takes effect as a whole, at
/// some moment between its beginning and its end. A key and its value together have at most
/// [`entry_max`](RawHashIndex::limits) bytes.
#[derive(Clone)]
pub struct RawHashIndex<W = Alone> {
    pub(super) handle: DbHashIndex,
    pub(super) at: W,
}

impl<W: Where> std::fmt::Debug for RawHashIndex<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawHashIndex").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl RawHashIndex {
    pub(crate) fn new(handle: DbHashIndex) -> RawHashIndex {
        RawHashIndex { handle, at: Alone }
    }

    pub(crate) fn handle(&self) -> &DbHashIndex {
        &self.handle
    }

    /// The same index, read and written in another place.
    pub(crate) fn at<W: Where>(&self, at: W) -> RawHashIndex<W> {
        RawHashIndex { handle: self.handle.clone(), at }
    }

    /// Walks the whole index and says what it is made of.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// println!("{:?}", sessions.stats()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn stats(&self) -> Result<HashStats, Error> {
        self.handle.look(|index| index.stats())
    }
}

impl<W: Where> RawHashIndex<W> {
    pub(super) fn member(&self) -> &dyn Member {
        &self.handle
    }

    /// The name of an entry, by which transactions and snapshots know it.
    pub(super) fn name_of(&self, key: &[u8]) -> Vec<u8> {
        let mut name = Vec::new();
        self.handle.structure().name_entry(key, &mut name);
        name
    }

    /// Its name.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.name(), "sessions");
    /// # Ok(()) }
    /// ```
    pub fn name(&self) -> &str {
        self.handle.name()
    }

    /// What fits.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert!(sessions.limits().entry_max > 100);
    /// # Ok(()) }
    /// ```
    pub fn limits(&self) -> Limits {
        self.handle.structure().limits()
    }

    /// Hands a copy of the value of `key` to `f`, and returns its result; `None` if there
    /// is no such key. Up to 1 KiB the copy is on the stack.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.get_with(b"4f1c", |value| value.len())?, Some(2));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The store failed; the same for all that reads.
    pub fn get_with<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        if let Some(inside) = self.at.at().0 {
            let (mut f, mut result) = (Some(f), None);
            inside.look(self.member(), &self.name_of(key), &mut |value| {
                if let Some(f) = f.take() {
                    result = Some(f(value));
                }
            })?;
            return Ok(result);
        }
        let mut scratch = Scratch::default();
        Ok(self.find(key, Some(&mut scratch))?.then(|| f(scratch.bytes())))
    }

    /// Hands the value of `key` itself to `f`, where it lies in its page, and returns what
    /// comes out; `None` if there is no such key. What `f` may do, and when
    /// [`RawHashIndex::get_with`] is faster, is as for [`RawTree::read`](crate::RawTree::read).
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.read(b"4f1c", |value| value.len())?, Some(2));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn read<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        if self.at.at().0.is_some() {
            return self.get_with(key, f);
        }
        Ok(self.hold(key)?.map(|value| f(value.bytes())))
    }

    /// Not generic, so that it is compiled here, once per combination.
    fn hold(&self, key: &[u8]) -> Result<Option<Shared<'_>>, Error> {
        self.handle.read_key(GET, key, |index| index.hold(key))
    }

    fn find(&self, key: &[u8], mut scratch: Option<&mut Scratch>) -> Result<bool, Error> {
        self.handle.read_key(GET, key, |index| index.find(key, scratch.as_deref_mut()))
    }

    /// The value of `key`.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.get(b"4f1c")?, Some(b"17".to_vec()));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Puts the value of `key` into `out`; `false`, and `out` empty, if there is no such key.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// let mut value = Vec::new();
    /// assert!(sessions.get_into(b"4f1c", &mut value)? && value == b"17");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        out.clear();
        Ok(self.get_with(key, |value| out.extend_from_slice(value))?.is_some())
    }

    /// Whether there is such a key.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert!(sessions.contains(b"4f1c")?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    pub fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        match self.at.at().0 {
            Some(inside) => inside.look(self.member(), &self.name_of(key), &mut |_| ()),
            None => self.find(key, None),
        }
    }

    /// All entries, in no order that means anything. By itself it shows what is committed; others
    /// may write meanwhile: an entry that is there all the time comes exactly once. In a
    /// transaction, what it has shown is locked.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.iter().count(), 1);
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn iter(&self) -> RawEntries<'_> {
        RawEntries::new(Scan::begin(self.member(), self.at.at(), 0))
    }

    /// Counts the entries: a walk over all buckets.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert_eq!(sessions.len()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    #[track_caller]
    pub fn len(&self) -> Result<u64, Error> {
        if self.at.at().0.is_none()
            && let Some(count) = self.handle.count_quietly(|index| index.len())?
        {
            return Ok(count);
        }
        scan::count(self.member(), self.at.at())
    }

    /// Whether there is no entry.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let sessions = db.raw_hash_index("sessions")?;
    /// sessions.put(b"4f1c", b"17")?;
    /// assert!(!sessions.is_empty()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHashIndex::get_with`].
    #[track_caller]
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.iter().next().transpose()?.is_none())
    }
}

impl RawHashIndex<InTxn<'_>> {
    /// The value of `key`, which is locked as if it were written; see
    /// [`HashIndex::get_for_update`](crate::HashIndex::get_for_update).
    #[doc(hidden)]
    #[allow(clippy::missing_errors_doc, reason = "hidden")]
    pub fn get_for_update(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Inside::Txn(self.at.0).get_to_write(self.member(), &self.name_of(key))
    }
}

impl<'t, W: Where> IntoIterator for &'t RawHashIndex<W> {
    type Item = Result<RawEntry, Error>;
    type IntoIter = RawEntries<'t>;

    fn into_iter(self) -> RawEntries<'t> {
        self.iter()
    }
}
