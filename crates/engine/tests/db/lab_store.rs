//! Stores that only `Store<M>` opens, as [`any_store`](super::any_store) shows them. They have no
//! locks and no log, so an operation of a tree is one of its `BTree`.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use millpond::internals::btree::{Range, Report, TreeStats};
use millpond::internals::pool::recording::recorder::Recorder;
use millpond::internals::pool::{Pool, PoolStrategy};
use millpond::internals::store::combinations::Visit;
use millpond::internals::store::{Builder, Combination, Store, StoreTree};
use millpond::{Db, Error, KeyRange, Options, Stats, report::Shrunk};

use super::any_store::{Row, Rows, StoreLocation, TestStore, TestTree};

/// Walks that a check repeats at most, while each of them finds something else.
const WALKS_MAX: u32 = 10;

struct LabStore<M: PoolStrategy> {
    store: Arc<Store<M>>,
    combination: Combination,
}

pub(super) fn open(
    combination: Combination,
    place: StoreLocation<'_>,
    options: &Options,
) -> Result<Box<dyn TestStore>, Error> {
    combination.visit(Opening { combination, place, options })
}

struct Opening<'p> {
    combination: Combination,
    place: StoreLocation<'p>,
    options: &'p Options,
}

impl Visit for Opening<'_> {
    type Output = Result<Box<dyn TestStore>, Error>;

    fn visit<M: PoolStrategy>(self) -> Self::Output {
        let store = match self.place {
            StoreLocation::File(path) => Builder::file(path, self.options).open::<M>()?,
            StoreLocation::Device(device) => Builder::device(device, self.options).open::<M>()?,
        };
        Ok(Box::new(LabStore { store, combination: self.combination }))
    }
}

impl<M: PoolStrategy> TestStore for LabStore<M> {
    fn combination(&self) -> Combination {
        self.combination
    }

    fn db(&self) -> &Db {
        panic!("{:?} is the laboratory's: no `Db` is compiled for it", self.combination)
    }

    fn tree(&self, name: &str) -> Result<Box<dyn TestTree>, Error> {
        Ok(Box::new(self.store.tree(name)?))
    }

    fn page_size(&self) -> usize {
        self.store.pages().page_size().bytes()
    }

    fn stats(&self) -> Stats {
        self.store.stats()
    }

    fn recorder(&self) -> &Recorder {
        self.store.pool().recorder()
    }

    fn flush(&self) -> Result<(), Error> {
        self.store.flush()
    }

    fn shrink(&self) -> Result<Shrunk, Error> {
        self.store.shrink(&mut |_| ControlFlow::Continue(()))
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        self.store.close()
    }
}

fn bounds(range: &KeyRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (range.start.as_ref().map(Vec::as_slice), range.end.as_ref().map(Vec::as_slice))
}

impl<M: PoolStrategy> TestTree for StoreTree<M> {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.btree().upsert_returning(key, value)?)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Ok(self.btree().upsert(key, value)?)
    }

    fn insert_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Ok(self.btree().insert(key, value)?)
    }

    fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error> {
        Ok(self.btree().compare_and_swap(key, expected, new)?)
    }

    fn remove(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.btree().remove_returning(key)?)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.btree().remove(key)?)
    }

    fn remove_range(&self, range: &KeyRange) -> Result<u64, Error> {
        let (start, end) = bounds(range);
        Ok(self.btree().delete_range(start, end)?)
    }

    fn clear(&self) -> Result<u64, Error> {
        Ok(self.btree().clear()?)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.btree().get_owned(key)?)
    }

    fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.btree().contains(key)?)
    }

    fn read_bytes(&self, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        Ok(self.btree().read(key, f)?.is_some())
    }

    fn update_bytes(&self, key: &[u8], f: &mut dyn FnMut(&mut [u8])) -> Result<bool, Error> {
        Ok(self.btree().update_in_place(key, f)?.is_some())
    }

    fn key_range(&self, range: &KeyRange) -> Rows<'_> {
        let (start, end) = bounds(range);
        let is_over = range.is_empty();
        Box::new(LabRows { range: self.btree().range(start, end), is_over })
    }

    fn len(&self) -> Result<u64, Error> {
        Ok(self.btree().count()?)
    }

    fn stats(&self) -> Result<TreeStats, Error> {
        Ok(self.btree().stats()?)
    }

    /// Only `Db` makes the background merge wait during the walk. Here a violation may be a leaf
    /// that was merged meanwhile, until a second walk finds the same.
    fn check(&self) -> Result<Report, Error> {
        let mut report = self.btree().check()?;
        for _ in 0..WALKS_MAX {
            let before = std::mem::take(&mut report.violations);
            if before.is_empty() {
                break;
            }
            report = self.btree().check()?;
            if report.violations == before {
                break;
            }
        }
        Ok(report)
    }

    fn compact(&self, leaves: u32) -> Result<bool, Error> {
        Ok(self.btree().compact(leaves)?)
    }
}

struct LabRows<'t, M: PoolStrategy> {
    range: Range<'t, Pool<M>>,
    is_over: bool,
}

impl<M: PoolStrategy> LabRows<'_, M> {
    fn take(&mut self, forward: bool) -> Option<Result<Row, Error>> {
        if self.is_over {
            return None;
        }
        let next = if forward { self.range.next() } else { self.range.next_back() };
        let next = next.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())));
        self.is_over = !matches!(next, Ok(Some(_)));
        next.map_err(Error::from).transpose()
    }
}

impl<M: PoolStrategy> Iterator for LabRows<'_, M> {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.take(true)
    }
}

impl<M: PoolStrategy> DoubleEndedIterator for LabRows<'_, M> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.take(false)
    }
}
