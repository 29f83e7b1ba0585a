//! Heaps of byte strings.
//!
//! As with [trees](crate::api::raw::tree), what is compiled for each combination is compiled in
//! this crate.

use crate::api::place::at::{Alone, InTxn, Inside, Where, Writes};
use crate::api::place::scan::{self, Scan};
use crate::api::place::update_once;
use crate::api::strategy::*;
use crate::btree::WriteCondition;
use crate::heap::{HeapStats, Limits, RecordId};
use crate::page::Scratch;
use crate::store::counted::{DELETE, GET, PUT};
use crate::store::error::Error;
use crate::store::member::Member;

/// A record and its id.
pub type RawRecord = (RecordId, Vec<u8>);

/// A named heap: records of bytes that keep their ids.
///
/// A handle: clones are cheap, and any thread may use them. Each call takes effect as a whole, at
/// some moment between its beginning and its end. Records have at most
/// [`record_max`](RawHeap::limits) bytes.
#[derive(Clone)]
pub struct RawHeap<W = Alone> {
    handle: DbHeap,
    at: W,
}

impl<W: Where> std::fmt::Debug for RawHeap<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawHeap").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl RawHeap {
    pub(crate) fn new(handle: DbHeap) -> RawHeap {
        RawHeap { handle, at: Alone }
    }

    pub(crate) fn handle(&self) -> &DbHeap {
        &self.handle
    }

    /// The same heap, read and written in another place.
    pub(crate) fn at<W: Where>(&self, at: W) -> RawHeap<W> {
        RawHeap { handle: self.handle.clone(), at }
    }

    /// Walks the whole heap and says what it is made of.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// println!("{:?}", notes.stats()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHeap::get_with`].
    pub fn stats(&self) -> Result<HeapStats, Error> {
        self.handle.look(|heap| heap.stats())
    }
}

impl<W: Where> RawHeap<W> {
    fn member(&self) -> &dyn Member {
        &self.handle
    }

    /// Its name.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert_eq!(notes.name(), "notes");
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
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert!(notes.limits().record_max > 100);
    /// # Ok(()) }
    /// ```
    pub fn limits(&self) -> Limits {
        self.handle.structure().limits()
    }

    /// Hands a record to `f`, and returns its result; `None` if there is no such record.
    /// Nothing is allocated for.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert_eq!(notes.get_with(id, |note| note.len())?, Some(5));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The store failed; the same for all that reads.
    pub fn get_with<R>(
        &self,
        id: RecordId,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        if let Some(inside) = self.at.at().0 {
            let (mut f, mut result) = (Some(f), None);
            inside.look(self.member(), &id.to_key(), &mut |record| {
                if let Some(f) = f.take() {
                    result = Some(f(record));
                }
            })?;
            return Ok(result);
        }
        let mut scratch = Scratch::default();
        Ok(self.find(id, &mut scratch)?.then(|| f(scratch.bytes())))
    }

    fn find(&self, id: RecordId, scratch: &mut Scratch) -> Result<bool, Error> {
        self.handle.read_record(GET, id, |heap| heap.get_scratch(id, scratch))
    }

    /// A record.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert_eq!(notes.get(id)?.map(|note| note.len()), Some(5));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHeap::get_with`].
    pub fn get(&self, id: RecordId) -> Result<Option<Vec<u8>>, Error> {
        self.get_with(id, <[u8]>::to_vec)
    }

    /// Whether there is such a record.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert!(notes.contains(id)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHeap::get_with`].
    pub fn contains(&self, id: RecordId) -> Result<bool, Error> {
        match self.at.at().0 {
            Some(inside) => inside.look(self.member(), &id.to_key(), &mut |_| ()),
            None => self.handle.read_record(GET, id, |heap| heap.contains(id)),
        }
    }

    /// All records in the order of their ids, from both ends.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert_eq!(notes.records()?.count(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHeap::get_with`].
    #[track_caller]
    pub fn records(&self) -> Result<RawRecords<'_>, Error> {
        self.records_from(RecordId(0))
    }

    /// The records with ids from `from` on.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert_eq!(notes.records_from(id)?.count(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHeap::get_with`].
    #[track_caller]
    pub fn records_from(&self, from: RecordId) -> Result<RawRecords<'_>, Error> {
        self.member().may_read()?;
        Ok(RawRecords { scan: Scan::begin(self.member(), self.at.at(), from.0) })
    }

    /// Counts the records: a walk over all pages.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert_eq!(notes.len()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHeap::get_with`].
    #[track_caller]
    pub fn len(&self) -> Result<u64, Error> {
        if self.at.at().0.is_none()
            && let Some(count) = self.handle.count_quietly(|heap| heap.len())?
        {
            return Ok(count);
        }
        scan::count(self.member(), self.at.at())
    }

    /// Whether there is no record.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert!(!notes.is_empty()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHeap::get_with`].
    #[track_caller]
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.records()?.next().transpose()?.is_none())
    }
}

impl RawHeap<InTxn<'_>> {
    /// A record, which is locked as if it were written; see
    /// [`Heap::get_for_update`](crate::Heap::get_for_update).
    #[doc(hidden)]
    #[allow(clippy::missing_errors_doc, reason = "hidden")]
    pub fn get_for_update(&self, id: RecordId) -> Result<Option<Vec<u8>>, Error> {
        Inside::Txn(self.at.0).get_to_write(self.member(), &id.to_key())
    }
}

impl<W: Writes> RawHeap<W> {
    /// Appends a record, or puts it where one was removed; returns its id.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert!(notes.contains(id)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::ReadOnly`], a record that is too long, or the store failed; so for everything that
    /// writes.
    pub fn append(&self, record: &[u8]) -> Result<RecordId, Error> {
        match self.at.at().0 {
            Some(inside) => inside.append(self.member(), record),
            None => self.handle.append(PUT, record),
        }
    }

    /// Replaces a record; `false`, and nothing changed, if there is none. It keeps its id, however
    /// long it gets.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert!(notes.update(id, b"loud")?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHeap::append`].
    pub fn update(&self, id: RecordId, record: &[u8]) -> Result<bool, Error> {
        let Some(inside) = self.at.at().0 else {
            return self.handle.write_record(PUT, id, |heap| heap.update(id, record));
        };
        let present = WriteCondition::Present;
        Ok(inside.write(self.member(), &id.to_key(), Some(record), present)?.applied)
    }

    /// Lets `f` change the bytes of a record, but not how many they are; `None` if there is no such
    /// record. `f` runs under the page's latch: it must be short and not use the store.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert_eq!(notes.update_in_place(id, |note| note.len())?, Some(5));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHeap::append`].
    pub fn update_in_place<R>(
        &self,
        id: RecordId,
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, Error> {
        update_once(f, |once| self.update_bytes(id, once))
    }

    fn update_bytes(&self, id: RecordId, f: &mut dyn FnMut(&mut [u8])) -> Result<bool, Error> {
        if let Some(inside) = self.at.at().0 {
            return inside.update(self.member(), &id.to_key(), f);
        }
        self.handle
            .write_record(PUT, id, |heap| heap.update_in_place(id, f).map(|done| done.is_some()))
    }

    /// Removes a record; returns it. A new record may get its id.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert_eq!(notes.remove(id)?.map(|note| note.len()), Some(5));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHeap::append`].
    pub fn remove(&self, id: RecordId) -> Result<Option<Vec<u8>>, Error> {
        let Some(inside) = self.at.at().0 else {
            return self.handle.write_record(DELETE, id, |heap| heap.remove_returning(id));
        };
        let old = inside.peek_to_write(self.member(), &id.to_key())?;
        if old.is_some() {
            inside.write(self.member(), &id.to_key(), None, WriteCondition::Present)?;
        }
        Ok(old)
    }

    /// Removes a record; returns whether there was one.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert!(notes.delete(id)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHeap::append`].
    pub fn delete(&self, id: RecordId) -> Result<bool, Error> {
        Ok(self.remove(id)?.is_some())
    }

    /// Removes all records. By itself, it waits until no transaction has a record locked, gives the
    /// pages back, and ids begin at 0 again. In a transaction, records are removed one by one, as
    /// many as it can undo.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.raw_heap("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// notes.clear()?;
    /// assert!(notes.is_empty()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`RawHeap::append`].
    pub fn clear(&self) -> Result<(), Error> {
        let Some(inside) = self.at.at().0 else {
            return self.handle.clear_with(DELETE, |heap| heap.clear());
        };
        inside.lock_all(self.member())?;
        for record in self.records()?.collect::<Result<Vec<_>, _>>()? {
            self.delete(record.0)?;
        }
        Ok(())
    }
}

/// The records of a heap, from both ends. After an error it ends.
pub struct RawRecords<'t> {
    scan: Scan<'t>,
}

impl RawRecords<'_> {
    /// The name of the heap.
    pub(crate) fn name(&self) -> &str {
        self.scan.name()
    }

    pub(crate) fn end(&mut self) {
        self.scan.end();
    }

    fn step(&mut self, forward: bool) -> Option<Result<RawRecord, Error>> {
        Some(self.scan.next(forward)?.map(|entry| (RecordId(entry.position), entry.value)))
    }
}

impl Iterator for RawRecords<'_> {
    type Item = Result<RawRecord, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(true)
    }
}

impl DoubleEndedIterator for RawRecords<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(false)
    }
}
