//! Effects of hints, and the counters.

use std::sync::Arc;

use millpond_base::Reason;
use millpond_object_store::{CachedStore, Class, Freshness, Hint, ReadPlan, WritePlan};
use object_store::path::Path;
use object_store::{Extensions, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutOptions};

use crate::support::{Far, cached, content, options};

struct Rig {
    far: Arc<Far>,
    store: CachedStore,
}

impl Rig {
    fn new() -> Rig {
        let far = Far::new();
        let store = cached(far.clone(), options("t2-lru", 100, Freshness::Immutable));
        Rig { far, store }
    }

    async fn put(&self, name: &str, class: Class, write: WritePlan) {
        let mut extensions = Extensions::new();
        extensions.insert(Hint { class, write, ..Hint::default() });
        let options = PutOptions { extensions, ..PutOptions::default() };
        let bytes = content(1, 0..20_000);
        self.store.put_opts(&Path::from(name), bytes.into(), options).await.unwrap();
    }

    /// Bytes that came from the object store.
    async fn read(&self, name: &str, class: Class, read: ReadPlan) -> u64 {
        let before = self.far.bytes();
        let mut extensions = Extensions::new();
        extensions.insert(Hint { class, read, ..Hint::default() });
        let range = Some(GetRange::Bounded(0..20_000));
        let options = GetOptions { range, extensions, ..GetOptions::default() };
        let found = self.store.get_opts(&Path::from(name), options).await.unwrap();
        assert_eq!(found.bytes().await.unwrap(), content(1, 0..20_000));
        self.far.bytes() - before
    }
}

#[tokio::test]
async fn reads_do_what_their_plan_says() {
    let rig = Rig::new();
    let keep = WritePlan::Keep(Reason::Replace);
    rig.put("kept", Class::Flush, keep).await;
    rig.put("passed", Class::Flush, WritePlan::Pass).await;
    assert_eq!(rig.read("kept", Class::Data, ReadPlan::Keep).await, 0);
    assert_eq!(rig.read("kept", Class::Data, ReadPlan::Pass).await, 20_000);
    assert_eq!(rig.read("passed", Class::Compaction, ReadPlan::Peek).await, 20_000);
    assert_eq!(rig.read("passed", Class::Compaction, ReadPlan::Last).await, 20_000);
    assert_eq!(rig.read("passed", Class::Data, ReadPlan::Keep).await, 20_000, "nothing was kept");
    assert_eq!(rig.read("passed", Class::Data, ReadPlan::Keep).await, 0);
    assert_eq!(rig.read("kept", Class::Compaction, ReadPlan::Peek).await, 0);
    assert_eq!(rig.read("kept", Class::Data, ReadPlan::Again).await, 20_000, "it was doubted");
    assert_eq!(rig.read("kept", Class::Compaction, ReadPlan::Last).await, 0);
    assert_eq!(
        rig.read("kept", Class::Compaction, ReadPlan::Peek).await,
        20_000,
        "it was the last"
    );
    rig.store.check().unwrap();
}

#[tokio::test]
async fn counters_are_kept_by_class() {
    let rig = Rig::new();
    rig.put("a", Class::Flush, WritePlan::Keep(Reason::Replace)).await;
    rig.put("w", Class::Wal, WritePlan::Pass).await;
    rig.read("a", Class::Data, ReadPlan::Keep).await;
    rig.read("w", Class::Wal, ReadPlan::Pass).await;
    rig.read("w", Class::Data, ReadPlan::Keep).await;
    let stats = rig.store.stats();
    assert_eq!((stats[Class::Flush].puts, stats[Class::Flush].bytes_put), (1, 20_000));
    assert_eq!((stats[Class::Wal].puts, stats[Class::Wal].passed), (1, 1));
    assert_eq!(stats[Class::Wal].bytes_fetched, 20_000);
    let data = stats[Class::Data];
    assert_eq!((data.gets, data.hits, data.misses), (2, 5, 5));
    assert_eq!((data.bytes_served, data.bytes_fetched), (20_000, 20_000));
    // The head of the object that was put; two windows of the other object, which was unknown.
    assert_eq!(data.requests, 3);
    assert_eq!(data.hit_ratio(), Some(0.5));
    assert_eq!(stats.total().bytes_fetched, rig.far.bytes());
    assert_eq!((stats.objects, stats.tier.resident), (2, 10));
}

#[tokio::test]
async fn deleted_objects_leave_room() {
    let rig = Rig::new();
    for name in ["a", "b", "c", "d"] {
        rig.put(name, Class::Flush, WritePlan::Keep(Reason::None)).await;
    }
    assert_eq!(rig.store.stats().tier.resident, 20);
    rig.store.delete(&Path::from("a")).await.unwrap();
    rig.put("b", Class::Flush, WritePlan::Pass).await;
    rig.store.rename(&Path::from("c"), &Path::from("d")).await.unwrap();
    assert_eq!(rig.store.stats().tier.resident, 0);
    rig.store.check().unwrap();
}
