//! The records of a heap.

use std::marker::PhantomData;

use crate::api::scan::Scan;
use crate::api::tree::range::{BadEntry, decoded};
use crate::encoding::value::{DecodeValue, Value};
use crate::heap::RecordId;
use crate::store::error::Error;

/// Iterator over the records of a heap, from both ends. It ends after an error.
pub struct Records<'t, V> {
    scan: Scan<'t>,
    types: PhantomData<fn() -> V>,
}

impl<'t, V: Value> Records<'t, V> {
    pub(super) fn new(scan: Scan<'t>) -> Records<'t, V> {
        Records { scan, types: PhantomData }
    }

    fn step(&mut self, forward: bool) -> Option<Result<(RecordId, V), Error>> {
        let record = self.scan.next(forward)?.and_then(|entry| {
            let value = <V as DecodeValue<'_>>::decode(&entry.value);
            let value = value.map_err(|error| BadEntry::new(None, error));
            Ok((RecordId(entry.position), decoded(self.scan.name(), value)?))
        });
        if record.is_err() {
            self.scan.end();
        }
        Some(record)
    }
}

impl<V: Value> Iterator for Records<'_, V> {
    type Item = Result<(RecordId, V), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(true)
    }
}

impl<V: Value> DoubleEndedIterator for Records<'_, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(false)
    }
}
