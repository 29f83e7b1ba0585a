//! One interface for a store in any compiled combination: [`Db`] for those of users, `Store<M>` for
//! those of the laboratory, which `Db` refuses. The options choose, as they do in [`Db::open`].

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use millpond::internals::btree::{Report, TreeStats};
use millpond::internals::pool::recording::recorder::Recorder;
use millpond::internals::store::options::policy_choice::PolicyChoice;
use millpond::internals::store::{Combination, LabError};
use millpond::{Db, Error, KeyRange, Options, RawTree, Stats, report::Shrunk};
use millpond_device::{Device, MemoryDevice};

/// An owned entry.
pub(super) type Row = (Vec<u8>, Vec<u8>);
/// Entries from both ends. After an error there are no more.
pub(super) type Rows<'t> = Box<dyn DoubleEndedIterator<Item = Result<Row, Error>> + 't>;

/// Operations of a store that the tests use.
pub(super) trait TestStore: Send + Sync {
    fn combination(&self) -> Combination;
    /// The `Db`; panics for a store of the laboratory.
    fn db(&self) -> &Db;
    fn tree(&self, name: &str) -> Result<Box<dyn TestTree>, Error>;
    fn page_size(&self) -> usize;
    fn stats(&self) -> Stats;
    fn recorder(&self) -> &Recorder;
    fn flush(&self) -> Result<(), Error>;
    fn shrink(&self) -> Result<Shrunk, Error>;
    fn close(self: Box<Self>) -> Result<(), Error>;
}

/// Operations of a tree that the tests use: each does what that of [`RawTree`] does.
pub(super) trait TestTree: Send + Sync {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, Error>;
    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error>;
    fn insert_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool, Error>;
    fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error>;
    fn remove(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;
    fn delete(&self, key: &[u8]) -> Result<bool, Error>;
    fn remove_range(&self, range: &KeyRange) -> Result<u64, Error>;
    fn clear(&self) -> Result<u64, Error>;
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;
    fn contains(&self, key: &[u8]) -> Result<bool, Error>;
    /// Returns `false`, and does not call `f`, if there is no such key.
    fn read_bytes(&self, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<bool, Error>;
    /// Returns `false`, and does not call `f`, if there is no such key.
    fn update_bytes(&self, key: &[u8], f: &mut dyn FnMut(&mut [u8])) -> Result<bool, Error>;
    fn key_range(&self, range: &KeyRange) -> Rows<'_>;
    fn len(&self) -> Result<u64, Error>;
    fn stats(&self) -> Result<TreeStats, Error>;
    fn check(&self) -> Result<Report, Error>;
    fn compact(&self, leaves: u32) -> Result<bool, Error>;
}

impl dyn TestTree + '_ {
    pub(super) fn read<R>(
        &self,
        key: &[u8],
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let (mut f, mut result) = (Some(f), None);
        let found = self.read_bytes(key, &mut |bytes| {
            let f = f.take().expect("the closure is called once");
            result = Some(f(bytes));
        })?;
        assert_eq!(found, result.is_some());
        Ok(result)
    }

    pub(super) fn update_in_place<R>(
        &self,
        key: &[u8],
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, Error> {
        let (mut f, mut result) = (Some(f), None);
        let found = self.update_bytes(key, &mut |bytes| {
            let f = f.take().expect("the closure is called once");
            result = Some(f(bytes));
        })?;
        assert_eq!(found, result.is_some());
        Ok(result)
    }

    pub(super) fn iter(&self) -> Rows<'_> {
        self.key_range(&KeyRange::ALL)
    }

    /// The entries from `key` on.
    pub(super) fn rows_from(&self, key: &[u8]) -> Rows<'_> {
        self.key_range(&KeyRange::of::<Vec<u8>, &[u8]>(key..))
    }

    pub(super) fn prefix(&self, prefix: &[u8]) -> Rows<'_> {
        self.key_range(&KeyRange::of_prefix::<Vec<u8>>(prefix))
    }

    pub(super) fn first(&self) -> Result<Option<Row>, Error> {
        self.iter().next().transpose()
    }

    pub(super) fn last(&self) -> Result<Option<Row>, Error> {
        self.iter().next_back().transpose()
    }
}

impl TestStore for Db {
    fn combination(&self) -> Combination {
        Combination::SwizzledAny
    }

    fn db(&self) -> &Db {
        self
    }

    fn tree(&self, name: &str) -> Result<Box<dyn TestTree>, Error> {
        Ok(Box::new(self.raw_tree(name)?))
    }

    fn page_size(&self) -> usize {
        Db::page_size(self)
    }

    fn stats(&self) -> Stats {
        Db::stats(self)
    }

    fn recorder(&self) -> &Recorder {
        Db::recorder(self)
    }

    fn flush(&self) -> Result<(), Error> {
        Db::flush(self)
    }

    fn shrink(&self) -> Result<Shrunk, Error> {
        self.shrink_with(&mut |_| ControlFlow::Continue(()))
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        Db::close(*self)
    }
}

impl TestTree for RawTree {
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        RawTree::insert(self, key, value)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        RawTree::put(self, key, value)
    }

    fn insert_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        RawTree::insert_if_absent(self, key, value)
    }

    fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error> {
        RawTree::compare_and_swap(self, key, expected, new)
    }

    fn remove(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        RawTree::remove(self, key)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Error> {
        RawTree::delete(self, key)
    }

    fn remove_range(&self, range: &KeyRange) -> Result<u64, Error> {
        RawTree::remove_range(self, range)
    }

    fn clear(&self) -> Result<u64, Error> {
        RawTree::clear(self)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        RawTree::get(self, key)
    }

    fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        RawTree::contains(self, key)
    }

    fn read_bytes(&self, key: &[u8], f: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        Ok(RawTree::read(self, key, f)?.is_some())
    }

    fn update_bytes(&self, key: &[u8], f: &mut dyn FnMut(&mut [u8])) -> Result<bool, Error> {
        Ok(RawTree::update_in_place(self, key, f)?.is_some())
    }

    fn key_range(&self, range: &KeyRange) -> Rows<'_> {
        Box::new(RawTree::range(self, range))
    }

    fn len(&self) -> Result<u64, Error> {
        RawTree::len(self)
    }

    fn stats(&self) -> Result<TreeStats, Error> {
        RawTree::stats(self)
    }

    fn check(&self) -> Result<Report, Error> {
        RawTree::check(self)
    }

    fn compact(&self, leaves: u32) -> Result<bool, Error> {
        RawTree::compact(self, leaves)
    }
}

/// Place of a store.
pub(super) enum StoreLocation<'p> {
    File(&'p Path),
    Device(Arc<dyn Device>),
}

/// Opens or creates the store in the file at `path`.
pub(super) fn open(path: &Path, options: Options) -> Result<Box<dyn TestStore>, Error> {
    open_at(StoreLocation::File(path), options)
}

/// A new store in memory.
pub(super) fn in_memory(options: Options) -> Result<Box<dyn TestStore>, Error> {
    open_at(StoreLocation::Device(Arc::new(MemoryDevice::new())), options)
}

fn open_at(place: StoreLocation<'_>, options: Options) -> Result<Box<dyn TestStore>, Error> {
    let (lab, policy) = (&options.lab, PolicyChoice::parse(&options.policy).unwrap());
    let chosen = Combination::choose(lab.translation, lab.latching, &policy, lab.records);
    let chosen = chosen.map_err(LabError::from)?;
    if chosen == Combination::SwizzledAny {
        return Ok(match place {
            StoreLocation::File(path) => Box::new(Db::open(path, options)?),
            StoreLocation::Device(device) => Box::new(Db::open_on(device, options)?),
        });
    }
    #[cfg(feature = "lab")]
    return super::lab_store::open(chosen, place, &options);
    #[cfg(not(feature = "lab"))]
    unreachable!("{chosen} is compiled without the feature `lab`");
}

/// The options that lead to `combination`, with that policy.
pub(super) fn with_strategies(options: Options, combination: Combination, policy: &str) -> Options {
    options.policy(policy).lab(|lab| {
        lab.translation = combination.translation();
        lab.latching = combination.latching();
        lab.records = combination.records();
    })
}

/// A policy that runs with `combination`: LRU, if it does.
pub(super) fn policy_of(combination: Combination) -> &'static str {
    match combination.policies() {
        list if list.contains(&"lru") => "lru",
        list => list[0],
    }
}
