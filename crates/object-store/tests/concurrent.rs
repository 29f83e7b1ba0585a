//! Concurrent tasks: no answer mixes versions, or is older than the last write before its request.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use millpond_device::{Device, Faults, FaultyDevice, MemoryDevice};
use millpond_object_store::{CachedStore, Freshness};
use object_store::path::Path;
use object_store::{Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, Result};

use crate::support::{Far, POLICIES, cached, content, options, size_of, whole};

const PATHS: u64 = 4;

/// Versions of a path: the last one certainly written, and the last one begun.
#[derive(Default)]
struct Versions {
    floor: AtomicU64,
    begun: AtomicU64,
    writer: tokio::sync::Mutex<()>,
}

/// Returns `true` for every fifth version, which is a deleted object.
fn is_absence(version: u64) -> bool {
    version.is_multiple_of(5)
}

struct World {
    store: CachedStore,
    paths: Vec<Versions>,
}

impl World {
    fn new(store: CachedStore) -> World {
        World { store, paths: (0..PATHS).map(|_| Versions::default()).collect() }
    }

    fn path(number: u64) -> Path {
        Path::from(format!("p/{number}"))
    }

    /// Returns the content's version number, which no other path has: its lowest digits are the
    /// path's.
    fn content_of(number: u64, version: u64) -> u64 {
        version * PATHS + number
    }

    async fn write(&self, number: u64, random: &mut fastrand::Rng) {
        let versions = &self.paths[number as usize];
        let _writer = versions.writer.lock().await;
        let version = versions.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let path = World::path(number);
        let bytes = whole(World::content_of(number, version));
        let done: Result<()> = match (is_absence(version), random.u8(0..3)) {
            (true, _) => self.store.delete(&path).await,
            (false, 0) => self.upload(&path, &bytes).await,
            (false, 1) => {
                let from = Path::from(format!("q/{number}"));
                match self.store.put(&from, bytes.into()).await {
                    Ok(_) => self.store.copy(&from, &path).await,
                    Err(error) => Err(error),
                }
            }
            (false, _) => self.store.put(&path, bytes.into()).await.map(|_| ()),
        };
        if done.is_ok() {
            versions.floor.store(version, Ordering::SeqCst);
        }
    }

    async fn upload(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut upload = self.store.put_multipart(path).await?;
        let mut sent = Vec::new();
        for piece in bytes.chunks(9_000) {
            sent.push(upload.put_part(piece.to_vec().into()));
        }
        for part in sent {
            part.await?;
        }
        upload.complete().await.map(|_| ())
    }

    /// Returns `true` if there was an answer; it panics if the answer is wrong.
    async fn read(&self, number: u64, random: &mut fastrand::Rng) -> bool {
        let versions = &self.paths[number as usize];
        let floor = versions.floor.load(Ordering::SeqCst);
        let start = random.u64(0..30_000);
        let range = start..start + random.u64(8..20_000);
        let asked = Some(GetRange::Bounded(range.clone()));
        let options = GetOptions { range: asked, ..GetOptions::default() };
        let path = World::path(number);
        let read = async {
            let found = self.store.get_opts(&path, options).await?;
            let (size, range) = (found.meta.size, found.range.clone());
            Ok((size, range, found.bytes().await?))
        };
        let found: Result<(u64, Range<u64>, Bytes)> = read.await;
        let begun = versions.begun.load(Ordering::SeqCst);
        let contents =
            || (floor..=begun).map(|version| (version, World::content_of(number, version)));
        match found {
            Ok((size, range, bytes)) => {
                let is_it = |(version, content_of): (u64, u64)| {
                    !is_absence(version)
                        && size == size_of(content_of)
                        && bytes == content(content_of, range.clone())
                };
                assert!(contents().any(is_it), "{path} {range:?}: none of {floor} to {begun}");
                true
            }
            Err(Error::NotFound { .. }) => {
                let is_gone = |(version, _)| version == 0 || is_absence(version);
                assert!(contents().any(is_gone), "{path} is there since {floor}");
                true
            }
            Err(_) => false,
        }
    }
}

async fn run(world: &Arc<World>, seed: u64, tasks: u64, steps: u64) -> (u64, u64) {
    let tasks: Vec<_> = (0..tasks)
        .map(|task| {
            let world = world.clone();
            tokio::spawn(async move {
                let mut random = fastrand::Rng::with_seed(seed * 100 + task);
                let (mut right, mut failed) = (0, 0);
                for _ in 0..steps {
                    let number = random.u64(0..PATHS);
                    if random.u8(0..6) == 0 {
                        world.write(number, &mut random).await;
                    } else if world.read(number, &mut random).await {
                        right += 1;
                    } else {
                        failed += 1;
                    }
                }
                (right, failed)
            })
        })
        .collect();
    let (mut right, mut failed) = (0, 0);
    for task in tasks {
        let (some, others) = task.await.unwrap();
        right += some;
        failed += others;
    }
    (right, failed)
}

/// Checks, once all writes have ended, that reads return the content of the store behind.
async fn compare(store: &CachedStore, far: &Far) {
    for number in 0..PATHS {
        let path = World::path(number);
        for _ in 0..2 {
            let one = store.get(&path).await.map(|found| found.bytes());
            let other = far.inner.get(&path).await.map(|found| found.bytes());
            match (one, other) {
                (Ok(one), Ok(other)) => assert_eq!(one.await.unwrap(), other.await.unwrap()),
                (one, other) => assert_eq!(one.is_ok(), other.is_ok()),
            }
        }
    }
    store.check().unwrap();
}

fn freshness_of(seed: u64) -> Freshness {
    if seed.is_multiple_of(2) { Freshness::Immutable } else { Freshness::Checked }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_read_what_was_written_and_never_a_mixture() {
    let (mut right, mut failed) = (0, 0);
    for seed in 0..60 {
        let far = Far::new();
        let policy = POLICIES[seed as usize % POLICIES.len()];
        let store = cached(far.clone(), options(policy, 8 + seed % 40, freshness_of(seed)));
        let world = Arc::new(World::new(store));
        let (some, others) = run(&world, seed, 6, 60).await;
        right += some;
        failed += others;
        compare(&world.store, &far).await;
    }
    // A range may begin behind the end, and one of two windows may be of another version.
    assert!(right > 8_000 && failed < right, "{right} answers, {failed} errors");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn where_devices_and_stores_fail_answers_are_right_or_errors() {
    let mut right = 0;
    for seed in 0..60 {
        let far = Far::failing(0.05, seed);
        let faults = Faults {
            read_error: 0.05,
            write_error: 0.05,
            torn_write: 0.02,
            lost_write: 0.02,
            bit_flip: 0.05,
            ..Faults::default()
        };
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let faulty = FaultyDevice::new(device, seed);
        let faulty = Arc::new(faulty);
        let policy = POLICIES[seed as usize % POLICIES.len()];
        let options = options(policy, 8 + seed % 40, freshness_of(seed));
        let store = CachedStore::over(far.clone(), faulty.clone(), options).unwrap();
        faulty.set_faults(faults);
        let world = Arc::new(World::new(store));
        right += run(&world, seed, 6, 60).await.0;
        far.heal();
        compare(&world.store, &far).await;
    }
    assert!(right > 4_000, "{right} answers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn equal_misses_are_one_request() {
    let far = Far::new();
    let store = cached(far.clone(), options("t2-lru", 60, Freshness::Immutable));
    let path = Path::from("x");
    far.put(&path, content(7, 0..16_000).into()).await.unwrap();
    let reads = (0..20).map(|_| {
        let (store, path) = (store.clone(), path.clone());
        tokio::spawn(async move { store.get_range(&path, 0..16_000).await.unwrap() })
    });
    for read in reads.collect::<Vec<_>>() {
        assert_eq!(read.await.unwrap(), content(7, 0..16_000));
    }
    // One of them asks for it. Late tasks find it known, and its copy not there yet.
    let asked = far.bytes();
    assert!(asked < 10 * 16_000, "{asked} bytes were fetched for 20 reads");
    // Known, and not in the cache: all tasks miss before the first answer is back.
    let head = Path::from("y");
    far.put(&head, content(8, 0..16_000).into()).await.unwrap();
    store.head(&head).await.unwrap();
    let (before, missed) = (far.bytes(), store.stats().total().misses);
    let gate = Arc::new(tokio::sync::Notify::new());
    *far.gate.lock().unwrap() = Some(gate.clone());
    let reads = (0..20).map(|_| {
        let (store, path) = (store.clone(), head.clone());
        tokio::spawn(async move { store.get_range(&path, 0..16_000).await.unwrap() })
    });
    let reads: Vec<_> = reads.collect();
    let parts = 16_000_u64.div_ceil(4096);
    // Unless two of them fetch a half each, and one that comes late finds a copy.
    for _ in 0..10_000 {
        if store.stats().total().misses - missed == 20 * parts {
            break;
        }
        tokio::task::yield_now().await;
    }
    gate.notify_one();
    for read in reads {
        assert_eq!(read.await.unwrap(), content(8, 0..16_000));
    }
    let asked = far.bytes() - before;
    assert!(asked < 10 * 16_000, "{asked} bytes were fetched for 20 reads");
}

#[tokio::test]
async fn a_read_that_is_given_up_leaves_nothing_behind() {
    let far = Far::new();
    let store = cached(far.clone(), options("tq", 30, Freshness::Immutable));
    let path = Path::from("x");
    far.put(&path, content(7, 0..40_000).into()).await.unwrap();
    for polls in 0..60 {
        let mut read = Box::pin(store.get_range(&path, 0..40_000));
        for _ in 0..polls {
            if futures::poll!(&mut read).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(store.get_range(&path, 0..40_000).await.unwrap(), content(7, 0..40_000));
    store.check().unwrap();
}

#[tokio::test]
async fn a_write_that_is_given_up_is_never_served_from_the_cache() {
    let far = Far::new();
    let store = cached(far.clone(), options("tq", 30, Freshness::Immutable));
    let path = Path::from("x");
    store.put(&path, vec![1; 5000].into()).await.unwrap();
    {
        let put = store.put(&path, vec![2; 5000].into());
        let mut put = Box::pin(put);
        let _ = futures::poll!(&mut put);
    }
    store.get(&path).await.unwrap().bytes().await.unwrap();
    // A write that was given up may land at any time.
    far.put(&path, vec![2; 5000].into()).await.unwrap();
    assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), vec![2; 5000]);
}

#[tokio::test]
async fn what_a_read_has_learnt_of_a_version_that_is_gone_does_not_count() {
    for is_head in [false, true] {
        let far = Far::new();
        let store = cached(far.clone(), options("tq", 30, Freshness::Immutable));
        let path = Path::from("x");
        far.put(&path, content(1, 0..5000).into()).await.unwrap();
        let gate = Arc::new(tokio::sync::Notify::new());
        *far.gate.lock().unwrap() = Some(gate.clone());
        let (reader, from) = (store.clone(), path.clone());
        let read = tokio::spawn(async move {
            let options = GetOptions { head: is_head, ..GetOptions::default() };
            reader.get_opts(&from, options).await.unwrap().meta.e_tag
        });
        while far.gate.lock().unwrap().is_some() {
            tokio::task::yield_now().await;
        }
        store.put(&path, content(2, 0..5000).into()).await.unwrap();
        gate.notify_one();
        read.await.unwrap();
        for _ in 0..2 {
            let found = store.get(&path).await.unwrap().bytes().await.unwrap();
            assert_eq!(found, content(2, 0..5000));
        }
    }
}

#[tokio::test]
async fn an_upload_whose_parts_failed_is_not_taken_from_what_was_sent() {
    let far = Far::failing(1.0, 1);
    let store = cached(far.clone(), options("tq", 30, Freshness::Immutable));
    let path = Path::from("x");
    let mut upload = store.put_multipart(&path).await.unwrap();
    assert!(upload.put_part(content(1, 0..9000).into()).await.is_err());
    far.heal();
    upload.complete().await.unwrap();
    assert_eq!(store.stats().objects, 0);
    drop(upload);
    assert_eq!(store.stats().tier.resident, 0);
    let other = far.inner.get(&path).await.unwrap().bytes().await.unwrap();
    assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), other);
}
