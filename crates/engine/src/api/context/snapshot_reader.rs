//! A large value of a snapshot, piece by piece.

use std::io::{self, Read, Seek, SeekFrom};

use crate::api::snapshot::Snapshot;
use crate::api::strategy::*;
use crate::api::tree::reader::Pieces;
use crate::store::error::Error;

enum Source<'t> {
    /// The value in the tree, which has not changed since the snapshot began.
    Live(DbReader<'t>),
    /// The value at the start of the snapshot, which has changed since.
    Whole(Vec<u8>),
}

/// A value of a snapshot. While the entry is unchanged, the value is read from its pages. After a
/// change, it is read from the version that was kept for the snapshot, which is in memory as a
/// whole.
pub(crate) struct SnapshotReader<'t> {
    snapshot: Snapshot,
    tree: &'t DbTree,
    key: Vec<u8>,
    source: Source<'t>,
    at: u64,
    len: u64,
}

impl<'t> SnapshotReader<'t> {
    /// Opens the value of `key`.
    pub(crate) fn open(
        snapshot: &Snapshot,
        tree: &'t DbTree,
        key: &[u8],
    ) -> Result<Option<SnapshotReader<'t>>, Error> {
        snapshot.check(tree)?;
        // Open the page first and look at the versions afterwards.
        let live = tree.btree().reader(key)?;
        let mut reader = SnapshotReader {
            snapshot: snapshot.clone(),
            tree,
            key: key.to_vec(),
            source: Source::Whole(Vec::new()),
            at: 0,
            len: 0,
        };
        if reader.is_changed()? {
            let Some(whole) = reader.whole()? else { return Ok(None) };
            (reader.len, reader.source) = (whole.len() as u64, Source::Whole(whole));
        } else {
            let Some(live) = live else { return Ok(None) };
            (reader.len, reader.source) = (live.len(), Source::Live(live));
        }
        Ok(Some(reader))
    }

    /// Returns `true` if the entry has changed since the snapshot began.
    fn is_changed(&self) -> Result<bool, Error> {
        Ok(self.snapshot.engine().is_changed(self.tree.btree(), &self.key)?)
    }

    /// Returns the value as a whole.
    fn whole(&self) -> Result<Option<Vec<u8>>, Error> {
        self.snapshot.check(self.tree)?;
        Ok(self.snapshot.engine().get(self.tree.btree(), &self.key, <[u8]>::to_vec)?)
    }

    /// Reads from the pages; returns `None` if the value there has changed.
    fn read_live(&mut self, out: &mut [u8]) -> io::Result<Option<usize>> {
        let Source::Live(live) = &mut self.source else { return Ok(None) };
        let read = live.seek(SeekFrom::Start(self.at)).and_then(|_| live.read(out));
        let is_changed = self.is_changed().map_err(io::Error::other)?;
        if is_changed { Ok(None) } else { read.map(Some) }
    }
}

impl Read for SnapshotReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut read = self.read_live(out)?;
        if read.is_none() && matches!(self.source, Source::Live(_)) {
            let whole = self.whole().map_err(io::Error::other)?;
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
