//! One version of an object, and the numbers of its parts.

use std::ops::Range;
use std::sync::OnceLock;

use object_store::path::Path;
use object_store::{Attributes, ObjectMeta};

/// What tells one version of an object from another. Times are those of the object store; of an
/// object that was put, they are not known yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub size: u64,
    pub e_tag: Option<String>,
    pub version: Option<String>,
    /// Nanoseconds since 1970.
    pub modified: Option<i64>,
}

impl Identity {
    pub fn of(meta: &ObjectMeta) -> Identity {
        Identity {
            size: meta.size,
            e_tag: meta.e_tag.clone(),
            version: meta.version.clone(),
            modified: meta.last_modified.timestamp_nanos_opt(),
        }
    }

    /// Whether the object store says by more than size and time which version it is.
    pub fn is_marked(&self) -> bool {
        self.e_tag.is_some() || self.version.is_some()
    }

    /// Whether both may be the same version, which they are unless the object store gives two of
    /// them the same marks.
    pub fn is(&self, other: &Identity) -> bool {
        let same_time = match (self.modified, other.modified) {
            (Some(one), Some(other)) => one == other,
            // A put does not tell.
            _ => self.is_marked(),
        };
        self.size == other.size
            && self.e_tag == other.e_tag
            && (self.version == other.version)
            && same_time
    }
}

/// Metadata of an object, from the object store.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub meta: ObjectMeta,
    pub attributes: Attributes,
}

/// One version of an object. Its parts have numbers of their own, which no other version ever gets:
/// a copy cannot be mistaken for another version's.
#[derive(Debug)]
pub(crate) struct Object {
    pub path: Path,
    pub identity: Identity,
    /// The number of its first part.
    pub base: u64,
    /// From a get or a head of this session: without it, it is not known whether it is still so.
    pub head: OnceLock<Head>,
}

impl Object {
    /// Parts of an object of `size` bytes.
    pub fn parts_of(size: u64, part: u64) -> u64 {
        size.div_ceil(part).max(1)
    }

    /// The numbers of its parts.
    pub fn numbers(&self, part: u64) -> Range<u64> {
        self.base..self.base + Object::parts_of(self.identity.size, part)
    }
}
