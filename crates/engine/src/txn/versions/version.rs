//! A version of an entry: its before image, and the commit stamp of the writer that changed it.

use std::sync::Arc;

use crate::txn::before_image::BeforeImage;
use crate::txn::commit_stamp::CommitStamp;

/// The stamp of a version. Once the writer has ended, only the timestamp is kept.
#[derive(Clone)]
pub(super) enum Stamp {
    Ended(u64),
    Active(Arc<CommitStamp>),
}

impl Stamp {
    /// Returns the commit timestamp; that of an active writer is larger than all others.
    pub(super) fn timestamp(&self) -> u64 {
        match self {
            Stamp::Ended(timestamp) => *timestamp,
            Stamp::Active(stamp) => stamp.timestamp(),
        }
    }

    /// Like [`Stamp::timestamp`]; keeps the timestamp if the writer has ended.
    #[inline]
    pub(super) fn resolve(&mut self) -> u64 {
        match self {
            Stamp::Ended(timestamp) => *timestamp,
            Stamp::Active(stamp) => {
                let ended = stamp.ended();
                ended.inspect(|ended| *self = Stamp::Ended(*ended)).unwrap_or(u64::MAX)
            }
        }
    }

    /// Returns the stamp, as a timestamp if the writer has ended.
    pub(super) fn ended(mut self) -> Stamp {
        self.resolve();
        self
    }

    /// Returns `true` if this is the stamp of the active writer with `stamp`.
    pub(super) fn is_of(&self, stamp: &Arc<CommitStamp>) -> bool {
        matches!(self, Stamp::Active(own) if Arc::ptr_eq(own, stamp))
    }
}

/// Before image of an entry in a run: `None` if there was no entry.
pub(super) struct Version {
    pub(super) before: Option<BeforeImage>,
    pub(super) stamp: Stamp,
}

/// A borrowed before image.
#[derive(Clone, Copy)]
pub(in crate::txn) enum Image<'a> {
    /// The value.
    Bytes(&'a [u8]),
    /// A value stored apart from its version.
    Apart(&'a BeforeImage),
}
