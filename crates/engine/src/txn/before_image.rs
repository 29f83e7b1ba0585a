//! Before images of entries: in memory, or, if the value is large, piece by piece in the spill
//! file.
//!
//! A large value is spilled while it is read, so that it never takes its length in memory. If that
//! fails, because there is no file or it is full, it is kept in memory like any other. If the pages
//! of a value cannot be read, the error is kept: reading that entry returns it.

use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

use crate::btree::{BTree, Lookup};
use crate::io::{Blocks, SpillError, SpillFile};
use crate::page::Scratch;
use crate::pool::{Pages, PoolError};

/// Length from which on a value is spilled while it is read.
const LARGE_MIN: u64 = 256 << 10;
/// Bytes of a piece.
const PIECE: usize = 256 << 10;
/// Bytes of memory charged for a large value, besides its pieces.
const LARGE_BYTES: usize = 96;

/// An entry that is about to be changed.
pub enum Found<'t> {
    /// The whole value.
    Whole(Vec<u8>),
    /// A large value: its length and its reader.
    Large(u64, Box<dyn Read + 't>),
}

/// Returns the entry of `key`, or `None` if there is none. A large value is not read yet, unless
/// `is_whole` is set. The caller has locked the entry.
///
/// # Errors
/// The memory behind the tree failed.
pub fn find<'t, P: Pages>(
    tree: &'t BTree<P>,
    key: &[u8],
    is_whole: bool,
) -> Result<Option<Found<'t>>, PoolError> {
    let mut scratch = Scratch::default();
    match tree.look(key, &mut scratch)? {
        Lookup::Missing => return Ok(None),
        Lookup::Inline => return Ok(Some(Found::Whole(scratch.bytes().to_vec()))),
        Lookup::Overflow(_) => {}
    }
    if !is_whole
        && let Some(reader) = tree.reader(key)?
        && reader.len() >= LARGE_MIN
    {
        return Ok(Some(Found::Large(reader.len(), Box::new(reader))));
    }
    Ok(tree.get_owned(key)?.map(Found::Whole))
}

/// A value in the file, or one that could not be read for spilling.
pub(super) struct Pieces {
    len: u64,
    all: Option<Blocks>,
    unreadable: Option<Arc<PoolError>>,
}

/// Reason that a before image is unreadable.
pub(super) enum Unread {
    /// The spill file could not be read.
    Spill(SpillError),
    /// The value's pages could not be read.
    Pages(Arc<PoolError>),
}

impl Pieces {
    fn read_from(len: u64, source: &mut dyn Read, file: &Arc<SpillFile>) -> Option<Pieces> {
        let (mut left, mut all, mut piece) = (len, Blocks::new(file), Vec::new());
        while left > 0 {
            piece.clear();
            let most = left.min(PIECE as u64);
            let read = (&mut *source).take(most).read_to_end(&mut piece);
            if !read.is_ok_and(|bytes| bytes as u64 == most) {
                return None;
            }
            all.push(&piece).ok()?;
            left -= most;
        }
        all.end();
        Some(Pieces { len, all: Some(all), unreadable: None })
    }

    /// Returns the bytes that it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        LARGE_BYTES + self.all.as_ref().map_or(0, |all| all.len() * Blocks::EACH)
    }

    fn read(&self) -> Result<Vec<u8>, Unread> {
        if let Some(error) = &self.unreadable {
            return Err(Unread::Pages(error.clone()));
        }
        let mut value = Vec::with_capacity(usize::try_from(self.len).unwrap_or(0));
        let mut piece = Vec::new();
        if let Some(all) = &self.all {
            for number in 0..all.len() {
                all.read(number, &mut piece).map_err(Unread::Spill)?;
                value.extend_from_slice(&piece);
            }
        }
        Ok(value)
    }
}

/// The value of an entry before a change.
#[derive(Clone)]
pub(crate) enum BeforeImage {
    Here(Arc<[u8]>),
    Spilled(Arc<Pieces>),
}

impl BeforeImage {
    /// Returns an image whose reading fails with `error`.
    pub(super) fn unreadable(error: Arc<PoolError>) -> BeforeImage {
        BeforeImage::Spilled(Arc::new(Pieces { len: 0, all: None, unreadable: Some(error) }))
    }

    /// Spills the `len` bytes of `source`; `None` if they could not be read or written.
    pub(super) fn spilled(
        file: &Arc<SpillFile>,
        len: u64,
        source: &mut dyn Read,
    ) -> Option<BeforeImage> {
        Some(BeforeImage::Spilled(Arc::new(Pieces::read_from(len, source, file)?)))
    }

    /// Returns the bytes that it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        match self {
            BeforeImage::Here(value) => value.len(),
            BeforeImage::Spilled(pieces) => pieces.bytes(),
        }
    }

    /// Returns the whole value, and reads it from the file if necessary.
    pub(super) fn whole(&self) -> Result<Cow<'_, [u8]>, Unread> {
        match self {
            BeforeImage::Here(value) => Ok(Cow::Borrowed(value)),
            BeforeImage::Spilled(pieces) => Ok(Cow::Owned(pieces.read()?)),
        }
    }
}
