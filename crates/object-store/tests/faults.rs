//! A failing cache is bypassed, and a cache that was tampered with is not trusted.

use std::sync::Arc;

use millpond_device::{Device, Faults, FaultyDevice, MemoryDevice};
use millpond_object_store::{CacheOptions, CachedStore, Freshness, OpenCacheError};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::support::{Far, content, options};

#[tokio::test]
async fn a_device_that_fails_is_put_out_of_use() {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let faulty = Arc::new(FaultyDevice::new(device, 1));
    let far = Far::new();
    let options = options("t2-lru", 40, Freshness::Immutable);
    let store = CachedStore::over(far, faulty.clone(), options).unwrap();
    let path = Path::from("x");
    store.put(&path, content(1, 0..30_000).into()).await.unwrap();
    faulty.set_faults(Faults { read_error: 1.0, write_error: 1.0, ..Faults::default() });
    for _ in 0..40 {
        assert_eq!(store.get_range(&path, 0..30_000).await.unwrap(), content(1, 0..30_000));
    }
    let tier = store.stats().tier;
    assert!(tier.is_off && tier.errors >= 16, "{tier:?}");
    assert_eq!(store.get_range(&path, 9..99).await.unwrap(), content(1, 9..99));
}

#[tokio::test]
async fn damaged_copies_are_fetched_again() {
    let device = Arc::new(MemoryDevice::new());
    let far = Far::new();
    let options = options("t2-lru", 40, Freshness::Immutable);
    let store = CachedStore::over(far.clone(), device.clone(), options).unwrap();
    let path = Path::from("x");
    store.put(&path, content(1, 0..30_000).into()).await.unwrap();
    store.get_range(&path, 0..30_000).await.unwrap();
    assert_eq!(far.bytes(), 0, "the put has left everything");
    for at in (8192..device.length()).step_by(1000) {
        device.write(at, &[0xa5]).unwrap();
    }
    assert_eq!(store.get_range(&path, 0..30_000).await.unwrap(), content(1, 0..30_000));
    assert_eq!(far.bytes(), 30_000);
    assert_eq!(store.stats().tier.mismatches, 8);
    assert_eq!(store.get_range(&path, 0..30_000).await.unwrap(), content(1, 0..30_000));
}

#[tokio::test]
async fn an_object_that_others_change_is_seen_where_that_is_asked_for() {
    for freshness in [Freshness::Immutable, Freshness::Checked] {
        let far = Far::new();
        let device = Arc::new(MemoryDevice::new());
        let store = CachedStore::over(far.clone(), device, options("tq", 40, freshness)).unwrap();
        let path = Path::from("x");
        far.put(&path, content(1, 0..30_000).into()).await.unwrap();
        assert_eq!(store.get_range(&path, 0..8192).await.unwrap(), content(1, 0..8192));
        far.put(&path, content(2, 0..30_000).into()).await.unwrap();
        let found = store.get_range(&path, 0..8192).await.unwrap();
        let seen = if freshness == Freshness::Checked { 2 } else { 1 };
        assert_eq!(found, content(seen, 0..8192));
        // The fetched part reveals the change, and no answer mixes two versions.
        assert_eq!(store.get_range(&path, 4096..20_000).await.unwrap(), content(2, 4096..20_000));
        assert_eq!(store.get_range(&path, 0..8192).await.unwrap(), content(2, 0..8192));
        store.check().unwrap();
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let open = |options: CacheOptions| {
        let inner: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        CachedStore::open(inner, options)
    };
    let sound = CacheOptions::new(&path, 1 << 20, "tq", Freshness::Immutable);
    for part_bytes in [0, 1000, 2048, 12288, 32 << 20] {
        let error = open(CacheOptions { part_bytes, ..sound.clone() }).unwrap_err();
        assert_eq!(error, OpenCacheError::Part { bytes: part_bytes });
    }
    for policy in ["no-such", "t2-opt", "tq(reads=x)"] {
        let options = CacheOptions { policy: policy.to_string(), ..sound.clone() };
        assert!(matches!(open(options), Err(OpenCacheError::Policy(_))), "{policy}");
    }
    let small = open(CacheOptions { bytes: 10_000, ..sound.clone() }).unwrap_err();
    assert!(matches!(small, OpenCacheError::Tier(_)), "{small}");
    std::fs::write(&path, "Dear Ada").unwrap();
    assert!(matches!(open(sound.clone()), Err(OpenCacheError::Tier(_))));
    assert_eq!(std::fs::read(&path).unwrap(), b"Dear Ada");
    std::fs::remove_file(&path).unwrap();
    let first = open(sound.clone()).unwrap();
    assert!(matches!(open(sound.clone()), Err(OpenCacheError::File(_))), "it is in use");
    drop(first);
    open(sound).unwrap();
}
