//! Hints of a request: its kind, and its treatment by the cache.

use millpond_base::Reason;
use object_store::path::Path;
use object_store::{Extensions, GetOptions};

/// Kind of a request; statistics are kept for each kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// A foreground read of data.
    Data,
    /// Data that leaves a memory table, or another first tier.
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
    /// All classes, in the order of the statistics.
    pub const ALL: [Class; 6] =
        [Class::Data, Class::Flush, Class::Compaction, Class::Wal, Class::Manifest, Class::Other];

    /// Returns the class's name, for tables.
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
    /// Goes to the object store, past the cache.
    Pass,
    /// Notifies the policy, which may keep the bytes read.
    Keep,
    /// Serves copies that exist; the policy is not notified, and nothing is kept.
    Peek,
    /// Like [`ReadPlan::Peek`], and drops the parts that were read whole: nobody will ask for them
    /// again.
    Last,
    /// The caller got these bytes before, and they were wrong. The copies are dropped, and the
    /// bytes are read again from the object store, like a [`ReadPlan::Keep`].
    Again,
}

/// Treatment of a write by the cache; the object store always gets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WritePlan {
    /// Keeps nothing; older copies are dropped.
    Pass,
    /// Notifies the policy of the write and its reason; the policy may keep it.
    Keep(Reason),
}

/// Assigns hints to requests.
pub trait Hints: std::fmt::Debug + Send + Sync {
    /// Returns the hints of a read; a head request is a read, too.
    fn read(&self, location: &Path, options: &GetOptions) -> (Class, ReadPlan);

    /// Returns the hints of a put or an upload.
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
    /// Returns a hint that lets the cache keep everything.
    fn default() -> Hint {
        Hint { class: Class::Data, read: ReadPlan::Keep, write: WritePlan::Keep(Reason::None) }
    }
}

/// Takes the hint that the caller gives, or else a fixed one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FromCaller {
    /// The hint of requests without a [`Hint`].
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
