//! One version of an object, and the numbers of its parts.

use std::ops::Range;
use std::sync::OnceLock;

use object_store::path::Path;
use object_store::{Attributes, ObjectMeta};

/// Marks that distinguish one version of an object from another. The object store sets the time, so
/// that it is not known yet for an object that was just put.
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

    /// Returns `true` if the object store gave the version a tag or a version id.
    pub fn is_marked(&self) -> bool {
        self.e_tag.is_some() || self.version.is_some()
    }

    /// Returns `true` if both may be one version. They are, unless the object store gives two
    /// versions the same marks.
    pub fn is(&self, other: &Identity) -> bool {
        let same_time = match (self.modified, other.modified) {
            (Some(one), Some(other)) => one == other,
            // A put does not return the time.
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

/// One version of an object. Its parts have numbers that no other version ever gets, so that a copy
/// cannot be mistaken for another version's.
#[derive(Debug)]
pub(crate) struct Object {
    pub path: Path,
    pub identity: Identity,
    /// Number of its first part.
    pub base: u64,
    /// Metadata from a get or a head of this session. Without it, the version may be outdated.
    pub head: OnceLock<Head>,
}

impl Object {
    /// Returns the number of parts of an object of `size` bytes.
    pub fn parts_of(size: u64, part: u64) -> u64 {
        size.div_ceil(part).max(1)
    }

    /// Numbers of the object's parts.
    pub fn numbers(&self, part: u64) -> Range<u64> {
        self.base..self.base + Object::parts_of(self.identity.size, part)
    }
}
