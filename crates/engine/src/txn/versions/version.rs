//! A version of an entry: its before image, and the commit stamp of the writer that changed it.

use std::sync::Arc;

use crate::txn::before_image::BeforeImage;
use crate::txn::commit_stamp::CommitStamp;

/// Bytes charged for a version besides key and value.
const VERSION_BYTES: usize = 160;

/// The before image of an entry; `None` if there was no entry.
pub(in crate::txn) type Before = Option<BeforeImage>;

/// What an entry was before a writer changed it.
pub(in crate::txn) struct Version {
    pub(in crate::txn) before: Before,
    pub(in crate::txn) stamp: Arc<CommitStamp>,
}

impl Version {
    /// Bytes that are charged for it as a version of `key`.
    pub(in crate::txn) fn bytes(&self, key: &[u8]) -> usize {
        VERSION_BYTES + key.len() + self.before.as_ref().map_or(0, BeforeImage::bytes)
    }
}

/// A before image, and the commit timestamp of the writer that replaced it.
pub(in crate::txn) type Seen = (Before, u64);

/// VersionStore of a range of keys, in order.
pub(in crate::txn) type Window = Vec<(Arc<[u8]>, Seen)>;
