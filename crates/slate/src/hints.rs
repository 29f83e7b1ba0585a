//! Hints from SlateDB's descriptions of its requests.

use millpond_base::Reason;
use millpond_object_store::{Class, Hints, ReadPlan, WritePlan};
use object_store::path::Path;
use object_store::{Extensions, GetOptions};
use slatedb::object_store_tag::{ObjectStoreCallTag, SstType, TableStoreKind};

/// The hints of SlateDB's call tags. What has no tag, manifests and other coordination, and the
/// write-ahead log pass by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlateHints {
    /// Treatment of a table that a memory table is flushed into.
    pub flush: WritePlan,
    /// Treatment of a compaction's output.
    pub output: WritePlan,
    /// Treatment of a compaction's input.
    pub input: ReadPlan,
}

impl Default for SlateHints {
    /// Flushes and outputs leave a first tier, which is why they are written; inputs are served if
    /// they are there, and the policy does not get to know.
    fn default() -> SlateHints {
        SlateHints {
            flush: WritePlan::Keep(Reason::Replace),
            output: WritePlan::Keep(Reason::Replace),
            input: ReadPlan::Peek,
        }
    }
}

impl Hints for SlateHints {
    fn read(&self, _location: &Path, options: &GetOptions) -> (Class, ReadPlan) {
        let Some(tag) = ObjectStoreCallTag::from_extensions(&options.extensions) else {
            return (Class::Manifest, ReadPlan::Pass);
        };
        match (tag.sst_type, tag.kind) {
            (SstType::Wal, _) => (Class::Wal, ReadPlan::Pass),
            (_, TableStoreKind::GC) => (Class::Other, ReadPlan::Pass),
            (_, TableStoreKind::Compactor) if tag.retry.is_some() => {
                (Class::Compaction, ReadPlan::Pass)
            }
            (_, TableStoreKind::Compactor) => (Class::Compaction, self.input),
            _ if tag.retry.is_some() => (Class::Data, ReadPlan::Again),
            _ => (Class::Data, ReadPlan::Keep),
        }
    }

    fn write(&self, _location: &Path, extensions: &Extensions) -> (Class, WritePlan) {
        let Some(tag) = ObjectStoreCallTag::from_extensions(extensions) else {
            return (Class::Manifest, WritePlan::Pass);
        };
        match (tag.sst_type, tag.kind) {
            (SstType::Wal, _) => (Class::Wal, WritePlan::Pass),
            (_, TableStoreKind::Compactor) => (Class::Compaction, self.output),
            (_, TableStoreKind::Main) => (Class::Flush, self.flush),
            _ => (Class::Other, WritePlan::Pass),
        }
    }
}

/// Hears nothing: every read and write of a table is one like any other, and may be kept; and so
/// are the log's. What has no tag passes by, since others may overwrite it. Classes are those of
/// [`SlateHints`], for statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Deaf;

impl Hints for Deaf {
    fn read(&self, location: &Path, options: &GetOptions) -> (Class, ReadPlan) {
        match SlateHints::default().read(location, options) {
            (Class::Manifest, plan) => (Class::Manifest, plan),
            (class, ReadPlan::Again) => (class, ReadPlan::Again),
            (class, _) => (class, ReadPlan::Keep),
        }
    }

    fn write(&self, location: &Path, extensions: &Extensions) -> (Class, WritePlan) {
        match SlateHints::default().write(location, extensions) {
            (Class::Manifest, plan) => (Class::Manifest, plan),
            (class, _) => (class, WritePlan::Keep(Reason::None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use slatedb::object_store_tag::RetryReason;

    use super::*;

    fn extensions(kind: TableStoreKind, sst: SstType, is_retry: bool) -> Extensions {
        let mut tag = ObjectStoreCallTag::new(kind, sst);
        tag.retry = is_retry.then_some(RetryReason::CrcMismatch);
        tag.into()
    }

    fn read(hints: &dyn Hints, extensions: Extensions) -> (Class, ReadPlan) {
        hints.read(&Path::from("x"), &GetOptions { extensions, ..GetOptions::default() })
    }

    fn write(hints: &dyn Hints, extensions: Extensions) -> (Class, WritePlan) {
        hints.write(&Path::from("x"), &extensions)
    }

    #[test]
    fn each_tag_has_its_hint() {
        use SstType::{Compacted, Wal};
        use TableStoreKind::{Compactor, GC, Main, Reader};
        let hints = SlateHints::default();
        let keep = WritePlan::Keep(Reason::Replace);
        for (kind, sst, is_retry, class, plan) in [
            (Main, Compacted, false, Class::Data, ReadPlan::Keep),
            (Reader, Compacted, false, Class::Data, ReadPlan::Keep),
            (Main, Compacted, true, Class::Data, ReadPlan::Again),
            (Compactor, Compacted, false, Class::Compaction, ReadPlan::Peek),
            (Compactor, Compacted, true, Class::Compaction, ReadPlan::Pass),
            (GC, Compacted, false, Class::Other, ReadPlan::Pass),
            (Main, Wal, false, Class::Wal, ReadPlan::Pass),
        ] {
            assert_eq!(read(&hints, extensions(kind, sst, is_retry)), (class, plan));
        }
        for (kind, sst, class, plan) in [
            (Main, Compacted, Class::Flush, keep),
            (Compactor, Compacted, Class::Compaction, keep),
            (Main, Wal, Class::Wal, WritePlan::Pass),
            (GC, Compacted, Class::Other, WritePlan::Pass),
        ] {
            assert_eq!(write(&hints, extensions(kind, sst, false)), (class, plan));
        }
        assert_eq!(read(&hints, Extensions::new()), (Class::Manifest, ReadPlan::Pass));
        assert_eq!(write(&hints, Extensions::new()), (Class::Manifest, WritePlan::Pass));
    }

    #[test]
    fn the_deaf_hear_only_what_must_not_be_cached_or_was_wrong() {
        use SstType::{Compacted, Wal};
        use TableStoreKind::{Compactor, Main};
        let reads = |kind, sst, is_retry| read(&Deaf, extensions(kind, sst, is_retry)).1;
        assert_eq!(reads(Main, Wal, false), ReadPlan::Keep);
        assert_eq!(reads(Compactor, Compacted, false), ReadPlan::Keep);
        assert_eq!(reads(Main, Compacted, true), ReadPlan::Again);
        let plan = write(&Deaf, extensions(Compactor, Compacted, false)).1;
        assert_eq!(plan, WritePlan::Keep(Reason::None));
        assert_eq!(read(&Deaf, Extensions::new()).1, ReadPlan::Pass);
        assert_eq!(write(&Deaf, Extensions::new()).1, WritePlan::Pass);
    }
}
