//! Typed heaps.

use std::fmt;
use std::marker::PhantomData;

use crate::api::place::at::{Alone, InTxn, Where, Writes};
use crate::api::raw::heap::{RawHeap, RawRecord, RawRecords};
use crate::api::typed::range::decoded;
use crate::encoding::value::{DecodeValue, Value, ValueLike};
use crate::heap::{HeapStats, RecordId};
use crate::store::error::Error;

/// A named heap: records of type `V`, each known by an id that it keeps as long as it exists.
///
/// A handle: clones are cheap, and any thread may use them. Each call takes effect as a whole.
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
pub struct Heap<V, P = Alone> {
    raw: RawHeap<P>,
    types: PhantomData<fn() -> V>,
}

impl<V, P: Clone> Clone for Heap<V, P> {
    fn clone(&self) -> Self {
        Heap { raw: self.raw.clone(), types: PhantomData }
    }
}

impl<V, P: Where> fmt::Debug for Heap<V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heap").field("name", &self.raw.name()).finish_non_exhaustive()
    }
}

impl RawHeap {
    /// The same heap, read and written with this type.
    pub fn typed<V: Value>(self) -> Heap<V> {
        Heap::new(self)
    }
}

impl<V: Value> Heap<V> {
    /// Walks the whole heap and says what it is made of.
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
    /// As [`Heap::get`].
    pub fn stats(&self) -> Result<HeapStats, Error> {
        self.raw.stats()
    }
}

impl<V: Value, P: Where> Heap<V, P> {
    pub(crate) fn new(raw: RawHeap<P>) -> Heap<V, P> {
        Heap { raw, types: PhantomData }
    }

    /// The heap of bytes below.
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
    pub fn raw(&self) -> &RawHeap<P> {
        &self.raw
    }

    /// Its name.
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
        self.raw.name()
    }

    /// A record.
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
    /// [`Error::Decode`] if the record is not a `V`, or the store failed; the same for all that
    /// reads.
    #[inline]
    pub fn get(&self, id: RecordId) -> Result<Option<V>, Error> {
        let found = self.raw.get_with(id, |bytes| <V as DecodeValue<'_>>::decode(bytes))?;
        found.map(|value| decoded(self.name(), value)).transpose()
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
    /// As [`Heap::get`].
    #[inline]
    pub fn get_with<R>(
        &self,
        id: RecordId,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        self.raw.get_with(id, f)
    }

    /// Whether there is such a record.
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
    /// As [`Heap::get`].
    pub fn contains(&self, id: RecordId) -> Result<bool, Error> {
        self.raw.contains(id)
    }

    /// All records in the order of their ids, from both ends.
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
    /// As [`Heap::get`].
    #[track_caller]
    pub fn records(&self) -> Result<Records<'_, V>, Error> {
        Ok(Records { raw: self.raw.records()?, types: PhantomData })
    }

    /// The records with ids from `from` on.
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
    /// As [`Heap::get`].
    #[track_caller]
    pub fn records_from(&self, from: RecordId) -> Result<Records<'_, V>, Error> {
        Ok(Records { raw: self.raw.records_from(from)?, types: PhantomData })
    }

    /// Counts the records: a walk over all pages.
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
    /// As [`Heap::get`].
    #[track_caller]
    pub fn len(&self) -> Result<u64, Error> {
        self.raw.len()
    }

    /// Whether there is no record.
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
    /// As [`Heap::get`].
    #[track_caller]
    pub fn is_empty(&self) -> Result<bool, Error> {
        self.raw.is_empty()
    }
}

impl<V: Value> Heap<V, InTxn<'_>> {
    /// A record, which is locked as if it were written: for what is read to be changed. Two
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
    /// As [`Heap::get`].
    pub fn get_for_update(&self, id: RecordId) -> Result<Option<V>, Error> {
        let found = self.raw.get_for_update(id)?;
        let value = |bytes: Vec<u8>| decoded(self.name(), <V as DecodeValue<'_>>::decode(&bytes));
        found.map(value).transpose()
    }
}

impl<V: Value, P: Writes> Heap<V, P> {
    /// Appends a record, or puts it where one was removed; returns its id.
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
    /// [`Error::ReadOnly`], a record that is too long, or the store failed; the same for all that
    /// writes.
    #[inline]
    pub fn append<W: ValueLike<V> + ?Sized>(&self, record: &W) -> Result<RecordId, Error> {
        record.with_encoded(|record| self.raw.append(record))
    }

    /// Replaces a record; `false`, and nothing changed, if there is none.
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
    /// As [`Heap::append`].
    #[inline]
    pub fn update<W: ValueLike<V> + ?Sized>(
        &self,
        id: RecordId,
        record: &W,
    ) -> Result<bool, Error> {
        record.with_encoded(|record| self.raw.update(id, record))
    }

    /// Removes a record; returns it. A new record may get its id.
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
    /// As [`Heap::append`].
    pub fn remove(&self, id: RecordId) -> Result<Option<V>, Error> {
        let old = self.raw.remove(id)?;
        let value = |bytes: Vec<u8>| decoded(self.name(), <V as DecodeValue<'_>>::decode(&bytes));
        old.map(value).transpose()
    }

    /// Removes a record; returns whether there was one.
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
    /// As [`Heap::append`].
    pub fn delete(&self, id: RecordId) -> Result<bool, Error> {
        self.raw.delete(id)
    }

    /// Removes all records. By itself, it waits until no transaction has a record locked, gives the
    /// pages back, and ids begin at 0 again. In a transaction, records are removed one by one, as
    /// many as it can undo.
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
    /// As [`Heap::append`].
    pub fn clear(&self) -> Result<(), Error> {
        self.raw.clear()
    }
}

/// The records of a typed heap, from both ends. After an error it ends.
pub struct Records<'t, V> {
    raw: RawRecords<'t>,
    types: PhantomData<fn() -> V>,
}

impl<V: Value> Records<'_, V> {
    fn typed(&mut self, next: Result<RawRecord, Error>) -> Result<(RecordId, V), Error> {
        let record = next.and_then(|(id, bytes)| {
            let value = <V as DecodeValue<'_>>::decode(&bytes);
            Ok((id, decoded(self.raw.name(), value)?))
        });
        if record.is_err() {
            self.raw.end();
        }
        record
    }
}

impl<V: Value> Iterator for Records<'_, V> {
    type Item = Result<(RecordId, V), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.raw.next()?;
        Some(self.typed(next))
    }
}

impl<V: Value> DoubleEndedIterator for Records<'_, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let next = self.raw.next_back()?;
        Some(self.typed(next))
    }
}
