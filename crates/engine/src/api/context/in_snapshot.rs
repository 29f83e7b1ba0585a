//! A structure in a snapshot, as it was when the snapshot began.

use crate::api::context::calls::{Inside, ReadCalls};
use crate::api::context::snapshot_reader::SnapshotReader;
use crate::api::snapshot::Snapshot;
use crate::api::strategy::*;
use crate::api::tree::byte_range::{ByteRange, bounds};
use crate::api::tree::reader::ValueReader;
use crate::encoding::key_range::KeyRange;
use crate::stats::counters::Counter;
use crate::store::counted::GET;
use crate::store::error::Error;
use crate::store::range::StoreRange;

impl<'x> ReadCalls for &'x Snapshot {
    type Holds<S: 'static> = &'x S;

    fn show(self, tree: &DbTree, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        self.check(tree)?;
        let get = || self.engine().get(tree.btree(), key, f);
        self.store().counted(GET, get)?;
        Ok(())
    }

    #[track_caller]
    fn range<'t>(self, tree: &'t DbTree, range: &KeyRange) -> ByteRange<'t>
    where
        Self: 't,
    {
        if let Err(error) = self.check(tree) {
            return ByteRange::failed(tree, error);
        }
        let entries = StoreRange::of_snapshot(self.engine(), tree, bounds(range));
        ByteRange::outside(tree, entries, range)
    }

    fn count_all(self, tree: &DbTree) -> Result<Option<u64>, Error> {
        self.check(tree)?;
        Ok(self.engine().count(tree.btree())?)
    }

    fn reader<'t>(self, tree: &'t DbTree, key: &[u8]) -> Result<Option<ValueReader<'t>>, Error>
    where
        Self: 't,
    {
        tree.store().pool().counters().count(Counter::Gets);
        Ok(SnapshotReader::open(self, tree, key)?.map(ValueReader::new))
    }

    fn inside<'t>(self) -> Option<Inside<'t>>
    where
        Self: 't,
    {
        Some(Inside::Snapshot(self))
    }
}
