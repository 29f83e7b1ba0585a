//! The handle of a heap, and its verbs.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use crate::api::context::{Autocommit, Inside, Reads, Writes, update_once};
use crate::api::heap::calls;
use crate::api::heap::records::Records;
use crate::api::scan::{self, Scan};
use crate::api::strategy::*;
use crate::api::tree::range::{BadEntry, decoded};
use crate::api::txn::Txn;
use crate::encoding::value::{DecodeValue, Value, ValueLike};
use crate::heap::{HeapStats, Limits, RecordId};
use crate::page::Scratch;
use crate::store::error::Error;
use crate::store::member::Member;

/// A named heap: records of type `V`, each with an id that it keeps as long as it exists.
///
/// A handle: clones are cheap, and any thread may use them. Each call is atomic.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let people = db.heap::<String>("people")?;
/// let by_name = db.tree::<String, u64>("people by name")?;
/// let ada = people.append("Ada Lovelace, mathematician")?;
/// by_name.insert("Ada", &ada.0)?;
/// people.update(ada, "Ada Lovelace, who wrote the first program")?;
/// assert!(people.get(ada)?.is_some_and(|record| record.ends_with("program")));
/// # Ok(()) }
/// ```
pub struct Heap<V, At: Reads = Autocommit> {
    handle: At::Holds<DbHeap>,
    context: At,
    types: PhantomData<fn() -> V>,
}

impl<V, At: Reads> Clone for Heap<V, At>
where
    At::Holds<DbHeap>: Clone,
{
    fn clone(&self) -> Self {
        Heap { handle: self.handle.clone(), context: self.context, types: PhantomData }
    }
}

impl<V, At: Reads> Copy for Heap<V, At> where At::Holds<DbHeap>: Copy {}

impl<V, At: Reads> fmt::Debug for Heap<V, At> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl<V: Value> Heap<V> {
    /// Walks the whole heap and returns statistics of its structure.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// println!("{:?}", notes.stats()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Heap::get`].
    pub fn stats(&self) -> Result<HeapStats, Error> {
        self.handle().look(|heap| heap.stats())
    }
}

impl<V, At: Reads> Heap<V, At> {
    pub(crate) fn new(handle: At::Holds<DbHeap>, context: At) -> Heap<V, At> {
        Heap { handle, context, types: PhantomData }
    }

    /// Returns the store's handle.
    #[inline(always)]
    pub(crate) fn handle(&self) -> &DbHeap {
        self.handle.borrow()
    }

    /// Returns the name of the heap.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert_eq!(notes.name(), "notes");
    /// # Ok(()) }
    /// ```
    pub fn name(&self) -> &str {
        self.handle().name()
    }

    /// Returns the size limit of a record.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert!(notes.limits().record_max > 100);
    /// # Ok(()) }
    /// ```
    pub fn limits(&self) -> Limits {
        self.handle().structure().limits()
    }

    /// Returns the same heap, read and written with another type, which must have the same
    /// encoding.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert!(notes.raw().typed::<String>().contains(id)?);
    /// # Ok(()) }
    /// ```
    pub fn typed<W: Value>(self) -> Heap<W, At> {
        Heap::new(self.handle, self.context)
    }

    /// Returns the same heap with records in encoded form.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert!(notes.raw().contains(id)?);
    /// # Ok(()) }
    /// ```
    pub fn raw(&self) -> Heap<Vec<u8>, At>
    where
        At::Holds<DbHeap>: Clone,
    {
        Heap::new(self.handle.clone(), self.context)
    }
}

impl<V: Value, At: Reads> Heap<V, At> {
    fn decode_value(&self, bytes: &[u8]) -> Result<V, Error> {
        let value = <V as DecodeValue<'_>>::decode(bytes);
        decoded(self.name(), value.map_err(|error| BadEntry::new(None, error)))
    }

    fn decode_optional(&self, bytes: Option<Vec<u8>>) -> Result<Option<V>, Error> {
        bytes.map(|bytes| self.decode_value(&bytes)).transpose()
    }

    /// Returns the record with this id.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert_eq!(notes.get(id)?.map(|note| note.len()), Some(5));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Decode`] if the record is not a `V`, or the store failed. All reading methods
    /// return these errors.
    #[inline]
    pub fn get(&self, id: RecordId) -> Result<Option<V>, Error> {
        self.get_with(id, |bytes| self.decode_value(bytes))?.transpose()
    }

    /// Hands the bytes of a record to `f`; `None` if there is no such record.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert_eq!(notes.get_with(id, |note| note.len())?, Some(5));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Heap::get`].
    #[inline]
    pub fn get_with<R>(
        &self,
        id: RecordId,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let mut scratch = Scratch::default();
        let found = calls::find(self.context.inside(), self.handle(), id, &mut scratch)?;
        Ok(found.map(&scratch, f))
    }

    /// Returns `true` if the record exists.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert!(notes.contains(id)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Heap::get`].
    pub fn contains(&self, id: RecordId) -> Result<bool, Error> {
        calls::contains(self.context.inside(), self.handle(), id)
    }

    /// Returns an iterator over all records in the order of their ids, from both ends.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert_eq!(notes.records()?.count(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Heap::get`].
    #[track_caller]
    pub fn records(&self) -> Result<Records<'_, V>, Error> {
        self.records_from(RecordId(0))
    }

    /// Returns an iterator over the records with ids from `from` on.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert_eq!(notes.records_from(id)?.count(), 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Heap::get`].
    #[track_caller]
    pub fn records_from(&self, from: RecordId) -> Result<Records<'_, V>, Error> {
        self.handle().may_read()?;
        Ok(Records::new(Scan::begin(self.handle(), self.context.inside(), from.0)))
    }

    /// Counts the records, by a walk over all pages if the store has not counted them.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert_eq!(notes.len()?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Heap::get`].
    #[track_caller]
    pub fn len(&self) -> Result<u64, Error> {
        let inside = self.context.inside();
        if inside.is_none()
            && let Some(count) = calls::count(self.handle())?
        {
            return Ok(count);
        }
        scan::count(self.handle(), inside)
    }

    /// Returns `true` if the heap has no record.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert!(!notes.is_empty()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Heap::get`].
    #[track_caller]
    pub fn is_empty(&self) -> Result<bool, Error> {
        let mut records = Scan::begin(self.handle(), self.context.inside(), 0);
        Ok(records.next(true).transpose()?.is_none())
    }
}

impl<V: Value> Heap<V, &Txn> {
    /// Returns a record and locks it as a write does: for a record that is read to be changed. Two
    /// transactions that only read at first, and then both write, end in a deadlock.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// let tx = db.begin()?;
    /// let inside = tx.heap(&notes);
    /// let note = inside.get_for_update(id)?.unwrap_or_default();
    /// inside.update(id, &format!("{note}, and deep"))?;
    /// tx.commit()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Heap::get`].
    pub fn get_for_update(&self, id: RecordId) -> Result<Option<V>, Error> {
        let inside = Inside::Txn(self.context);
        self.decode_optional(inside.get_to_write(self.handle(), &id.to_key())?)
    }
}

impl<V: Value, At: Writes> Heap<V, At> {
    /// Appends a record, or reuses the slot of a removed one; returns its id.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert!(notes.contains(id)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::ReadOnly`], a record that is too long, or the store failed. All writing methods
    /// return these errors.
    #[inline]
    pub fn append<W: ValueLike<V> + ?Sized>(&self, record: &W) -> Result<RecordId, Error> {
        record.with_encoded(|record| calls::append(self.context.inside(), self.handle(), record))
    }

    /// Replaces a record. Returns `false`, and changes nothing, if the record does not exist.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert!(notes.update(id, "loud")?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Heap::append`].
    #[inline]
    pub fn update<W: ValueLike<V> + ?Sized>(
        &self,
        id: RecordId,
        record: &W,
    ) -> Result<bool, Error> {
        let inside = self.context.inside();
        record.with_encoded(|record| calls::update(inside, self.handle(), id, record))
    }

    /// Removes a record and returns it. A new record may get its id.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert_eq!(notes.remove(id)?.map(|note| note.len()), Some(5));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Heap::append`].
    pub fn remove(&self, id: RecordId) -> Result<Option<V>, Error> {
        self.decode_optional(calls::remove(self.context.inside(), self.handle(), id)?)
    }

    /// Removes a record; returns `true` if it existed.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// assert!(notes.delete(id)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Heap::append`].
    pub fn delete(&self, id: RecordId) -> Result<bool, Error> {
        Ok(calls::remove(self.context.inside(), self.handle(), id)?.is_some())
    }

    /// Removes all records. Outside a transaction, the call waits until no transaction has a record
    /// locked, frees the pages, and ids start at 0 again. In a transaction, records are removed one
    /// by one, and only as many as it can undo.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<String>("notes")?;
    /// let id = notes.append("quiet")?;
    /// notes.clear()?;
    /// assert!(notes.is_empty()?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Heap::append`].
    pub fn clear(&self) -> Result<(), Error> {
        let Some(inside) = self.context.inside() else { return calls::clear(self.handle()) };
        inside.lock_all(self.handle())?;
        let (mut records, mut ids) = (Scan::begin(self.handle(), Some(inside), 0), Vec::new());
        while let Some(record) = records.next(true) {
            ids.push(RecordId(record?.position));
        }
        for id in ids {
            calls::remove(Some(inside), self.handle(), id)?;
        }
        Ok(())
    }

    /// Lets `f` change the bytes of a record, but not their number; returns `None` if there is no
    /// such record. `f` runs under the page's latch: it must be short and must not use the store.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let notes = db.heap::<Vec<u8>>("notes")?;
    /// let id = notes.append(b"quiet")?;
    /// assert_eq!(notes.update_in_place(id, |note| note.len())?, Some(5));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Heap::append`].
    pub fn update_in_place<R>(
        &self,
        id: RecordId,
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let inside = self.context.inside();
        update_once(f, |once| calls::update_in_place(inside, self.handle(), id, once))
    }
}
