//! The content of a cache after a close, after a crash, and after changes to its object store in
//! between.

use std::sync::Arc;

use millpond_object_store::{CacheOptions, CachedStore, Freshness};
use object_store::ObjectStoreExt;
use object_store::path::Path;

use crate::support::{Far, content};

struct CacheFixture {
    folder: tempfile::TempDir,
    far: Arc<Far>,
}

impl CacheFixture {
    fn new() -> CacheFixture {
        CacheFixture { folder: tempfile::tempdir().unwrap(), far: Far::new() }
    }

    fn open(&self) -> CachedStore {
        let path = self.folder.path().join("cache");
        let options = CacheOptions::new(path, 2 << 20, "t2-lru", Freshness::Immutable);
        let options = CacheOptions { part_bytes: 4096, ..options };
        CachedStore::open(self.far.clone(), options).unwrap()
    }

    async fn read(&self, store: &CachedStore, name: &str) -> (u64, bytes::Bytes) {
        let before = self.far.bytes();
        let bytes = store.get_range(&Path::from(name), 0..20_000).await.unwrap();
        (self.far.bytes() - before, bytes)
    }
}

#[tokio::test]
async fn the_files_of_a_cache_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = CacheFixture::new();
    let store = place.open();
    store.put(&Path::from("a"), content(1, 0..20_000).into()).await.unwrap();
    store.close();
    for name in ["cache", "cache.objects"] {
        let found = std::fs::metadata(place.folder.path().join(name)).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_restart_is_warm_for_what_is_as_it_was() {
    let place = CacheFixture::new();
    let store = place.open();
    for (name, version) in [("a", 1), ("b", 2), ("c", 3)] {
        store.put(&Path::from(name), content(version, 0..20_000).into()).await.unwrap();
    }
    place.far.put(&Path::from("d"), content(4, 0..20_000).into()).await.unwrap();
    assert_eq!(place.read(&store, "d").await, (20_000, content(4, 0..20_000).into()));
    store.close();
    drop(store);
    // Another program changes objects while the cache is closed:
    place.far.put(&Path::from("b"), content(9, 0..20_000).into()).await.unwrap();
    place.far.delete(&Path::from("c")).await.unwrap();
    let store = place.open();
    let heads = place.far.heads();
    assert_eq!(place.read(&store, "a").await, (0, content(1, 0..20_000).into()));
    assert_eq!(place.read(&store, "d").await, (0, content(4, 0..20_000).into()));
    assert_eq!(place.read(&store, "d").await, (0, content(4, 0..20_000).into()));
    assert_eq!(place.far.heads() - heads, 2, "each is asked for once");
    assert_eq!(place.read(&store, "b").await, (20_000, content(9, 0..20_000).into()));
    assert!(store.get(&Path::from("c")).await.is_err());
    store.check().unwrap();
}

#[tokio::test]
async fn after_a_crash_it_is_empty_and_so_it_is_above_another_list() {
    for crash in [true, false] {
        let place = CacheFixture::new();
        let store = place.open();
        store.put(&Path::from("a"), content(1, 0..20_000).into()).await.unwrap();
        store.close();
        drop(store);
        let (cache, list) =
            (place.folder.path().join("cache"), place.folder.path().join("cache.objects"));
        if crash {
            // Opened and never closed: the file as a crash would leave it.
            let store = place.open();
            let bytes = std::fs::read(&cache).unwrap();
            drop(store);
            std::fs::write(&cache, bytes).unwrap();
        } else {
            let mut text = std::fs::read(&list).unwrap();
            text.push(b' ');
            std::fs::write(&list, text).unwrap();
        }
        let store = place.open();
        assert_eq!(store.stats().tier.resident, 0);
        assert_eq!(place.read(&store, "a").await, (20_000, content(1, 0..20_000).into()));
        assert_eq!(place.read(&store, "a").await.0, 0);
    }
}
