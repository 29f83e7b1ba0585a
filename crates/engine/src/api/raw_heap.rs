//! Heaps of byte strings.
//!
//! As with [trees](crate::api::raw_tree), what is compiled for each combination is compiled in this
//! crate.

use crate::api::any::*;
use crate::api::heap::Heap;
use crate::api::raw_tree::{DELETE, GET, PUT};
use crate::api::scan_count::ScanCount;
use crate::encoding::value::Value;
use crate::heap::{HeapStats, Limits, RecordId};
use crate::page::Scratch;
use crate::pool::borrowed::BorrowedPage;
use crate::store::error::Error;

/// A record and its id.
pub type RawRecord = (RecordId, Vec<u8>);

/// A named heap: records of bytes that keep their ids.
///
/// A handle: clones are cheap, and any thread may use them. Each call takes effect as a whole, at
/// some moment between its beginning and its end. Records have at most [`Limits::record_max`]
/// bytes.
#[derive(Clone)]
pub struct RawHeap {
    any: AnyHeap,
}

impl std::fmt::Debug for RawHeap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawHeap").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl RawHeap {
    pub(crate) fn new(any: AnyHeap) -> RawHeap {
        RawHeap { any }
    }

    /// The same heap, read and written with this type.
    pub fn typed<V: Value>(self) -> Heap<V> {
        Heap::new(self)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        each!(AnyHeap, &self.any, heap => heap.name())
    }

    /// What fits.
    pub fn limits(&self) -> Limits {
        each!(AnyHeap, &self.any, heap => heap.structure().limits())
    }

    /// Hands a record to `f`, and answers with what comes out; `None` if there is no such record.
    /// Nothing is allocated for.
    ///
    /// # Errors
    /// The store failed; so for everything that reads.
    pub fn get_with<R>(
        &self,
        id: RecordId,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let mut scratch = Scratch::default();
        Ok(self.find(id, &mut scratch)?.then(|| f(scratch.bytes())))
    }

    fn find(&self, id: RecordId, scratch: &mut Scratch) -> Result<bool, Error> {
        each!(AnyHeap, &self.any, heap => heap.read(GET, |heap| heap.get_scratch(id, scratch)))
    }

    /// A record.
    ///
    /// # Errors
    /// As [`RawHeap::get_with`].
    pub fn get(&self, id: RecordId) -> Result<Option<Vec<u8>>, Error> {
        self.get_with(id, <[u8]>::to_vec)
    }

    /// Whether there is such a record.
    ///
    /// # Errors
    /// As [`RawHeap::get_with`].
    pub fn contains(&self, id: RecordId) -> Result<bool, Error> {
        each!(AnyHeap, &self.any, heap => heap.read(GET, |heap| heap.contains(id)))
    }

    /// Appends a record, or puts it where one was removed; answers with its id.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], a record that is too long, or the store failed; so for everything that
    /// writes.
    pub fn append(&self, record: &[u8]) -> Result<RecordId, Error> {
        each!(AnyHeap, &self.any, heap => heap.write(PUT, |heap| heap.append(record)))
    }

    /// Replaces a record; `false`, and nothing changed, if there is none. It keeps its id, however
    /// long it gets.
    ///
    /// # Errors
    /// As [`RawHeap::append`].
    pub fn update(&self, id: RecordId, record: &[u8]) -> Result<bool, Error> {
        each!(AnyHeap, &self.any, heap => heap.write(PUT, |heap| heap.update(id, record)))
    }

    /// Lets `f` change the bytes of a record, but not how many they are; `None` if there is no such
    /// record. `f` runs under the page's latch: it must be short and not use the store.
    ///
    /// # Errors
    /// As [`RawHeap::append`].
    pub fn update_in_place<R>(
        &self,
        id: RecordId,
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let (mut f, mut result) = (Some(f), None);
        let mut once = |record: &mut [u8]| {
            let _lent = BorrowedPage::begin();
            if let Some(f) = f.take() {
                result = Some(f(record));
            }
        };
        self.update_bytes(id, &mut once)?;
        Ok(result)
    }

    fn update_bytes(&self, id: RecordId, f: &mut dyn FnMut(&mut [u8])) -> Result<bool, Error> {
        each!(AnyHeap, &self.any, heap => {
            heap.write(PUT, |heap| heap.update_in_place(id, f).map(|done| done.is_some()))
        })
    }

    /// Removes a record; answers with it. A new record may get its id.
    ///
    /// # Errors
    /// As [`RawHeap::append`].
    pub fn remove(&self, id: RecordId) -> Result<Option<Vec<u8>>, Error> {
        each!(AnyHeap, &self.any, heap => heap.write(DELETE, |heap| heap.remove_returning(id)))
    }

    /// Removes a record; answers whether there was one.
    ///
    /// # Errors
    /// As [`RawHeap::append`].
    pub fn delete(&self, id: RecordId) -> Result<bool, Error> {
        Ok(self.remove(id)?.is_some())
    }

    /// Removes all records, and gives their pages back. Nobody else may write meanwhile. Ids begin
    /// at 0 again.
    ///
    /// # Errors
    /// As [`RawHeap::append`].
    pub fn clear(&self) -> Result<(), Error> {
        each!(AnyHeap, &self.any, heap => heap.write(DELETE, |heap| heap.clear()))
    }

    /// All records in the order of their ids, from both ends.
    ///
    /// # Errors
    /// As [`RawHeap::get_with`].
    pub fn records(&self) -> Result<RawRecords<'_>, Error> {
        self.records_from(RecordId(0))
    }

    /// The records with ids from `from` on.
    ///
    /// # Errors
    /// As [`RawHeap::get_with`].
    pub fn records_from(&self, from: RecordId) -> Result<RawRecords<'_>, Error> {
        self.may_read()?;
        let any = turn!(AnyHeap => AnyRecords, &self.any, heap => {
            heap.structure().records_from(from)?
        });
        let count = each!(AnyHeap, &self.any, heap => {
            ScanCount::begin(heap.store().pool().counters(), heap.store().pool().latencies())
        });
        Ok(RawRecords { heap: self, any, count, is_over: false })
    }

    /// Counts the records: a walk over all pages.
    ///
    /// # Errors
    /// As [`RawHeap::get_with`].
    pub fn len(&self) -> Result<u64, Error> {
        Ok(self.stats()?.records)
    }

    /// Whether there is no record.
    ///
    /// # Errors
    /// As [`RawHeap::get_with`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.records()?.next().transpose()?.is_none())
    }

    /// Walks the whole heap and says what it is made of.
    ///
    /// # Errors
    /// As [`RawHeap::get_with`].
    pub fn stats(&self) -> Result<HeapStats, Error> {
        each!(AnyHeap, &self.any, heap => heap.look(|heap| heap.stats()))
    }

    fn may_read(&self) -> Result<(), Error> {
        each!(AnyHeap, &self.any, heap => heap.store().may_read())
    }
}

/// The records of a heap, from both ends. After an error it ends.
pub struct RawRecords<'t> {
    heap: &'t RawHeap,
    any: AnyRecords<'t>,
    count: ScanCount<'t>,
    is_over: bool,
}

impl RawRecords<'_> {
    /// The name of the heap.
    pub(crate) fn name(&self) -> &str {
        self.heap.name()
    }

    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    fn step(&mut self, forward: bool) -> Result<Option<RawRecord>, Error> {
        self.heap.may_read()?;
        let next = each!(AnyRecords, &mut self.any, records => {
            if forward { records.next() } else { records.next_back() }
        });
        Ok(next.transpose()?)
    }

    fn counted(&mut self, forward: bool) -> Option<Result<RawRecord, Error>> {
        if self.is_over {
            return None;
        }
        let next = self.step(forward);
        match &next {
            Ok(Some(_)) => self.count.rows += 1,
            Ok(None) | Err(_) => self.is_over = true,
        }
        next.transpose()
    }
}

impl Iterator for RawRecords<'_> {
    type Item = Result<RawRecord, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.counted(true)
    }
}

impl DoubleEndedIterator for RawRecords<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.counted(false)
    }
}
