//! A snapshot, as its handles share it: its byte-level calls.

use std::io::{self, Read, Seek, SeekFrom};
use std::panic::Location;
use std::sync::Arc;

use crate::api::place::range::{RawRange, bounds};
use crate::api::place::reader::Pieces;
use crate::api::strategy::*;
use crate::encoding::key_range::KeyRange;
use crate::page::Batch;
use crate::pool::PoolStrategy;
use crate::store::counted::GET;
use crate::store::error::Error;
use crate::store::member::{Member, address_of};
use crate::store::range::StoreRange;
use crate::store::store::Store;
use crate::txn::Snapshot;

/// A snapshot, and the store that it is of.
#[derive(Clone)]
pub(crate) struct SnapshotView {
    inner: Arc<Snapshot>,
    store: DbStore,
}

impl SnapshotView {
    /// Begins a snapshot of what is committed now.
    pub(crate) fn begin(
        store: &DbStore,
        caller: &'static Location<'static>,
    ) -> Result<SnapshotView, Error> {
        let inner = store.begin_snapshot(caller)?;
        Ok(SnapshotView { inner, store: store.clone() })
    }

    /// Fails if `tree` is another store's, or the store was closed, or is another process's.
    pub(crate) fn check(&self, tree: &DbTree) -> Result<(), Error> {
        fn is_same<M: PoolStrategy>(store: &Arc<Store<M>>, other: &Arc<Store<M>>) -> bool {
            Arc::ptr_eq(store, other)
        }
        self.store.may_read()?;
        let same = is_same(&self.store, tree.store());
        if same {
            return Ok(());
        }
        let name = tree.name().to_string();
        Err(Error::OtherStore { name })
    }

    /// Hands the value of `key` to `f`; returns whether there was such a key.
    pub(crate) fn get(
        &self,
        tree: &DbTree,
        key: &[u8],
        f: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        self.check(tree)?;
        let get = || self.inner.get(tree.btree(), key, f);
        Ok(self.store.counted(GET, get)?.is_some())
    }

    /// Fails if a hash index or a heap is another store's, or the store was closed.
    fn check_member(&self, member: &dyn Member) -> Result<(), Error> {
        self.store.may_read()?;
        if address_of(&self.store) == member.store_address() {
            return Ok(());
        }
        Err(Error::OtherStore { name: member.name().to_string() })
    }

    /// As [`SnapshotView::get`], of a hash index or a heap.
    pub(crate) fn look_in(
        &self,
        member: &dyn Member,
        key: &[u8],
        f: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        self.check_member(member)?;
        let look = || self.inner.look(member.as_structure(), key, f);
        Ok(self.store.counted(GET, look)?.is_some())
    }

    /// As [`Snapshot::batch`].
    pub(crate) fn batch(
        &self,
        member: &dyn Member,
        (from, forward): (u64, bool),
        batch: &mut Batch,
    ) -> Result<Option<u64>, Error> {
        self.check_member(member)?;
        Ok(self.inner.batch(member.as_structure(), from, forward, batch)?)
    }

    /// The entries of a range.
    pub(crate) fn key_range<'t>(&self, tree: &'t DbTree, range: &KeyRange) -> RawRange<'t> {
        if let Err(error) = self.check(tree) {
            return RawRange::failed(tree, error);
        }
        let entries = StoreRange::of_snapshot(&self.inner, tree, bounds(range));
        RawRange::new(tree, entries, range)
    }

    /// How many entries there were; `None` if that takes a walk over all keys.
    pub(crate) fn len(&self, tree: &DbTree) -> Result<Option<u64>, Error> {
        self.check(tree)?;
        Ok(self.inner.count(tree.btree())?)
    }

    fn is_changed(&self, tree: &DbTree, key: &[u8]) -> Result<bool, Error> {
        Ok(self.inner.is_changed(tree.btree(), key)?)
    }

    fn whole(&self, tree: &DbTree, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.check(tree)?;
        Ok(self.inner.get(tree.btree(), key, <[u8]>::to_vec)?)
    }

    /// The value of `key`, piece by piece.
    pub(crate) fn stream<'t>(
        &self,
        tree: &'t DbTree,
        key: &[u8],
    ) -> Result<Option<SnapshotReader<'t>>, Error> {
        self.check(tree)?;
        // The page first, the versions afterwards.
        let live = tree.btree().reader(key)?;
        let mut reader = SnapshotReader {
            view: self.clone(),
            tree,
            key: key.to_vec(),
            source: Source::Whole(Vec::new()),
            at: 0,
            len: 0,
        };
        if self.is_changed(tree, key)? {
            let Some(whole) = self.whole(tree, key)? else { return Ok(None) };
            (reader.len, reader.source) = (whole.len() as u64, Source::Whole(whole));
        } else {
            let Some(live) = live else { return Ok(None) };
            (reader.len, reader.source) = (live.value_len(), Source::Live(live));
        }
        Ok(Some(reader))
    }
}

enum Source<'t> {
    /// What the tree holds, which has not been changed since the snapshot began.
    Live(DbReader<'t>),
    /// It was changed: what there was.
    Whole(Vec<u8>),
}

/// A value of a snapshot. As long as nobody changes the entry, it is read from its pages; then from
/// the version that was kept for the snapshot, which is in memory as a whole.
pub(crate) struct SnapshotReader<'t> {
    view: SnapshotView,
    tree: &'t DbTree,
    key: Vec<u8>,
    source: Source<'t>,
    at: u64,
    len: u64,
}

impl SnapshotReader<'_> {
    /// Reads from the pages; `None` if what is there is not what was there.
    fn read_live(&mut self, out: &mut [u8]) -> io::Result<Option<usize>> {
        let Source::Live(live) = &mut self.source else { return Ok(None) };
        let read = live.seek(SeekFrom::Start(self.at)).and_then(|_| live.read(out));
        let is_changed = self.view.is_changed(self.tree, &self.key).map_err(io::Error::other)?;
        if is_changed { Ok(None) } else { read.map(Some) }
    }
}

impl Read for SnapshotReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut read = self.read_live(out)?;
        if read.is_none() && matches!(self.source, Source::Live(_)) {
            let whole = self.view.whole(self.tree, &self.key).map_err(io::Error::other)?;
            self.source = Source::Whole(whole.unwrap_or_default());
        }
        if let (None, Source::Whole(whole)) = (read, &self.source) {
            let from = usize::try_from(self.at).unwrap_or(usize::MAX).min(whole.len());
            read = Some((&whole[from..]).read(out)?);
        }
        let read = read.unwrap_or(0);
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for SnapshotReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(offset) => self.len.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        self.at = place.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "a place before the value's beginning")
        })?;
        Ok(self.at)
    }
}

impl Pieces for SnapshotReader<'_> {
    fn value_len(&self) -> u64 {
        self.len
    }
}
