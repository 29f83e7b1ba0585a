//! Abandoned writes: the copies that they leave in the cache, now and after a restart.

use std::future::Future;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use futures::FutureExt;
use millpond_object_store::{CacheOptions, CachedStore, Freshness};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStoreExt};

const OLD: u8 = 0xAA;
const NEW: u8 = 0x55;
/// Ten parts.
const SIZE: usize = 40_000;

/// Runs `test` with one blocking thread: its jobs run in turn.
fn with_one_waiting_thread<T>(test: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.max_blocking_threads(1).build().unwrap().block_on(test)
}

/// Blocks the blocking thread until the result is dropped: copies queue behind it.
fn copies_wait() -> Sender<()> {
    let (sender, receiver) = channel();
    tokio::task::spawn_blocking(move || receiver.recv());
    sender
}

/// Waits until all queued copies are written.
async fn copies_are_written() {
    tokio::task::spawn_blocking(|| ()).await.unwrap();
}

fn open(far: &Arc<InMemory>, folder: &FilePath, policy: &str, freshness: Freshness) -> CachedStore {
    let options = CacheOptions::new(folder.join("cache"), 8 << 20, policy, freshness);
    CachedStore::open(far.clone(), CacheOptions { part_bytes: 4096, ..options }).unwrap()
}

/// A write that ends before it is done.
type Unfinished = fn(&CachedStore) -> Option<Box<dyn MultipartUpload>>;

fn put(store: &CachedStore) -> Option<Box<dyn MultipartUpload>> {
    let path = Path::from("x");
    let put = store.put(&path, vec![OLD; SIZE].into());
    // The object store has it at once, and the put waits for its copies.
    assert!(put.now_or_never().is_none());
    None
}

fn upload(store: &CachedStore) -> Box<dyn MultipartUpload> {
    store.put_multipart(&Path::from("x")).now_or_never().unwrap().unwrap()
}

fn part(store: &CachedStore) -> Option<Box<dyn MultipartUpload>> {
    assert!(upload(store).put_part(vec![OLD; 1 << 20].into()).now_or_never().is_none());
    None
}

fn end(store: &CachedStore) -> Option<Box<dyn MultipartUpload>> {
    let mut upload = upload(store);
    upload.put_part(vec![OLD; SIZE].into()).now_or_never().unwrap().unwrap();
    assert!(upload.complete().now_or_never().is_none());
    None
}

fn open_upload(store: &CachedStore) -> Option<Box<dyn MultipartUpload>> {
    let mut upload = upload(store);
    assert!(upload.put_part(vec![OLD; 1 << 20].into()).now_or_never().is_none());
    Some(upload)
}

#[test]
fn a_write_that_is_dropped_leaves_no_copies() {
    let writes: [(&str, Unfinished); 3] = [("put", put), ("put_part", part), ("complete", end)];
    with_one_waiting_thread(async {
        for (name, write) in writes {
            let folder = tempfile::tempdir().unwrap();
            let far = Arc::new(InMemory::new());
            let store = open(&far, folder.path(), "t2-lru", Freshness::Immutable);
            store.put(&Path::from("a"), vec![1; 1000].into()).await.unwrap();
            let gate = copies_wait();
            write(&store);
            drop(gate);
            copies_are_written().await;
            assert_eq!(store.stats().tier.resident, 1, "{name}");
            store.check().unwrap();
        }
    });
}

/// Returns the bytes of `b` that are wrong after a restart, if `write` is in progress at the end.
async fn wrong_after(write: Unfinished, waits: bool, policy: &str, freshness: Freshness) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let far = Arc::new(InMemory::new());
    let store = open(&far, folder.path(), policy, freshness);
    // The list of objects has one.
    store.put(&Path::from("a"), vec![1; 1000].into()).await.unwrap();
    let gate = copies_wait();
    let upload = write(&store);
    drop(gate);
    if waits {
        copies_are_written().await;
    }
    store.close();
    drop((upload, store));
    copies_are_written().await;
    // Another program writes.
    far.put(&Path::from("b"), vec![NEW; SIZE].into()).await.unwrap();
    let store = open(&far, folder.path(), policy, freshness);
    assert_eq!(store.stats().tier.resident, 1, "{policy}: copies of no object are left");
    let mut wrong = 0;
    for _ in 0..3 {
        let bytes = store.get(&Path::from("b")).await.unwrap().bytes().await.unwrap();
        assert_eq!(bytes.len(), SIZE);
        wrong += bytes.iter().filter(|byte| **byte != NEW).count();
    }
    store.check().unwrap();
    wrong
}

#[test]
fn after_a_restart_no_object_gets_the_copies_of_a_write_that_was_not_done() {
    let writes: [(&str, Unfinished); 4] =
        [("put", put), ("put_part", part), ("complete", end), ("an open upload", open_upload)];
    with_one_waiting_thread(async {
        let mut found = Vec::new();
        for policy in ["t2-lru", "t2-arc", "tq", "lru"] {
            for freshness in [Freshness::Immutable, Freshness::Checked] {
                for (name, write) in writes {
                    for waits in [false, true] {
                        let wrong = wrong_after(write, waits, policy, freshness).await;
                        if wrong > 0 {
                            found.push(format!("{policy} {freshness:?} {name} {waits}: {wrong}"));
                        }
                    }
                }
            }
        }
        assert!(found.is_empty(), "bytes of another object:\n{}", found.join("\n"));
    });
}
