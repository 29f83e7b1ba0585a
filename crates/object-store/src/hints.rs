//! Why a request is made, and what follows for the cache.

use millpond_base::Reason;
use object_store::path::Path;
use object_store::{Extensions, GetOptions};

/// Kind of a request: statistics are kept for each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// A foreground read of data.
    Data,
    /// What leaves a memory table, or another first tier.
    Flush,
    /// A compaction's input or output.
    Compaction,
    /// The write-ahead log.
    Wal,
    /// Manifests and other coordination.
    Manifest,
    /// Anything else.
    Other,
}

impl Class {
    /// All classes, as statistics list them.
    pub const ALL: [Class; 6] =
        [Class::Data, Class::Flush, Class::Compaction, Class::Wal, Class::Manifest, Class::Other];

    /// Returns the name of the class in tables.
    pub fn name(self) -> &'static str {
        match self {
            Class::Data => "data",
            Class::Flush => "flush",
            Class::Compaction => "compaction",
            Class::Wal => "wal",
            Class::Manifest => "manifest",
            Class::Other => "other",
        }
    }
}

/// Treatment of a read by the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadPlan {
    /// Nothing: the object store is asked.
    Pass,
    /// The policy is told, and may keep what is read.
    Keep,
    /// What is there is served, the policy is not told, and nothing is kept.
    Peek,
    /// As [`ReadPlan::Peek`], and what was read whole is dropped: nobody will ask for it again.
    Last,
    /// The caller got these bytes and they were wrong: they are dropped, and read again from the
    /// object store as [`ReadPlan::Keep`] does.
    Again,
}

/// Treatment of a write by the cache, beside handing it on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WritePlan {
    /// Nothing; older copies are dropped.
    Pass,
    /// The policy is notified of the write and its reason, and may keep it.
    Keep(Reason),
}

/// Tells why requests are made.
pub trait Hints: std::fmt::Debug + Send + Sync {
    /// Of a read, a head included.
    fn read(&self, location: &Path, options: &GetOptions) -> (Class, ReadPlan);

    /// Of a put or an upload.
    fn write(&self, location: &Path, extensions: &Extensions) -> (Class, WritePlan);
}

/// A hint that a caller puts into the `extensions` of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hint {
    /// The kind of request.
    pub class: Class,
    /// Treatment of reads.
    pub read: ReadPlan,
    /// Treatment of writes.
    pub write: WritePlan,
}

impl Default for Hint {
    /// Everything may be kept, and nothing is known.
    fn default() -> Hint {
        Hint { class: Class::Data, read: ReadPlan::Keep, write: WritePlan::Keep(Reason::None) }
    }
}

/// The hint that the caller gives, or else a fixed one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FromCaller {
    /// For requests without a [`Hint`].
    pub otherwise: Hint,
}

impl FromCaller {
    fn of(&self, extensions: &Extensions) -> Hint {
        extensions.get::<Hint>().copied().unwrap_or(self.otherwise)
    }
}

impl Hints for FromCaller {
    fn read(&self, _location: &Path, options: &GetOptions) -> (Class, ReadPlan) {
        let hint = self.of(&options.extensions);
        (hint.class, hint.read)
    }

    fn write(&self, _location: &Path, extensions: &Extensions) -> (Class, WritePlan) {
        let hint = self.of(extensions);
        (hint.class, hint.write)
    }
}
