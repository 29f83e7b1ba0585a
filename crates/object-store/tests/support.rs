//! An object store that counts, waits and fails; caches in memory.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::stream::{BoxStream, StreamExt};
use millpond_device::MemoryDevice;
use millpond_object_store::{CacheOptions, CachedStore, Freshness};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
    UploadPart,
};
use tokio::sync::Notify;

/// Policies of a second tier, and two of the first.
pub const POLICIES: [&str; 12] = [
    "t2-lru",
    "t2-rand",
    "t2-mq",
    "t2-arc",
    "lru-hints",
    "mq-hints",
    "tq",
    "lru-io",
    "arc-io",
    "tq-io",
    "tide-io",
    "lru",
];

/// A store over another one. Its requests yield to each other, and fail by chance.
#[derive(Debug)]
pub struct Far {
    pub inner: Arc<dyn ObjectStore>,
    pub bytes: AtomicU64,
    pub heads: AtomicU64,
    /// Probability of failures, both before and after the request is done.
    chance: Mutex<(fastrand::Rng, f64)>,
    /// The next get waits here after the answer, before it returns.
    pub gate: Mutex<Option<Arc<Notify>>>,
}

impl fmt::Display for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Far({})", self.inner)
    }
}

fn lost() -> Error {
    Error::Generic { store: "Far", source: "the connection is lost".into() }
}

impl Far {
    pub fn new() -> Arc<Far> {
        Far::failing(0.0, 0)
    }

    pub fn failing(share: f64, seed: u64) -> Arc<Far> {
        Far::over(Arc::new(InMemory::new()), share, seed)
    }

    pub fn over(inner: Arc<dyn ObjectStore>, share: f64, seed: u64) -> Arc<Far> {
        Arc::new(Far {
            inner,
            bytes: AtomicU64::new(0),
            heads: AtomicU64::new(0),
            chance: Mutex::new((fastrand::Rng::with_seed(seed), share)),
            gate: Mutex::default(),
        })
    }

    pub fn heal(&self) {
        self.chance.lock().unwrap().1 = 0.0;
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn heads(&self) -> u64 {
        self.heads.load(Ordering::Relaxed)
    }

    /// Yields a few times; returns an error by chance.
    async fn trip(&self) -> Result<()> {
        let (count, fails) = {
            let (random, share) = &mut *self.chance.lock().unwrap();
            (random.u32(0..4), random.f64() < *share)
        };
        for _ in 0..count {
            tokio::task::yield_now().await;
        }
        if fails { Err(lost()) } else { Ok(()) }
    }
}

#[derive(Debug)]
struct FarUpload {
    far: Arc<Mutex<(fastrand::Rng, f64)>>,
    inner: Box<dyn MultipartUpload>,
}

#[async_trait]
impl MultipartUpload for FarUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let part = self.inner.put_part(data);
        let fails = {
            let (random, share) = &mut *self.far.lock().unwrap();
            random.f64() < *share
        };
        Box::pin(async move {
            tokio::task::yield_now().await;
            if fails { Err(lost()) } else { part.await }
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

#[async_trait]
impl ObjectStore for Far {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        self.trip().await?;
        let done = self.inner.put_opts(location, payload, opts).await;
        self.trip().await?;
        done
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let inner = self.inner.put_multipart_opts(location, opts).await?;
        let (mut random, share) = {
            let (random, share) = &mut *self.chance.lock().unwrap();
            (random.fork(), *share)
        };
        random.u8(..);
        Ok(Box::new(FarUpload { far: Arc::new(Mutex::new((random, share))), inner }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.trip().await?;
        let is_head = options.head;
        let result = self.inner.get_opts(location, options).await?;
        let gate = self.gate.lock().unwrap().take();
        if let Some(gate) = gate {
            gate.notified().await;
        }
        if is_head {
            self.heads.fetch_add(1, Ordering::Relaxed);
        } else {
            self.bytes.fetch_add(result.range.end - result.range.start, Ordering::Relaxed);
        }
        self.trip().await?;
        Ok(result)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let fails = {
            let (random, share) = &mut *self.chance.lock().unwrap();
            random.f64() < *share
        };
        let deleted = self.inner.delete_stream(locations);
        deleted.map(move |deleted| if fails { Err(lost()) } else { deleted }).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.trip().await?;
        self.inner.copy_opts(from, to, options).await?;
        self.trip().await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.trip().await?;
        self.inner.rename_opts(from, to, options).await?;
        self.trip().await
    }
}

/// Options of a cache with room for `parts` parts of 4 KiB, in windows of four.
pub fn options(policy: &str, parts: u64, freshness: Freshness) -> CacheOptions {
    let bytes = 8192 + parts * (4096 + 48);
    CacheOptions {
        part_bytes: 4096,
        window_bytes: 4 * 4096,
        ..CacheOptions::new("/nowhere/cache", bytes, policy, freshness)
    }
}

/// Returns a store with a cache in memory.
pub fn cached(inner: Arc<dyn ObjectStore>, options: CacheOptions) -> CachedStore {
    CachedStore::over(inner, Arc::new(MemoryDevice::new()), options).unwrap()
}

/// Returns byte `at` of version `version`; eight bytes identify the version.
fn byte(version: u64, at: u64) -> u8 {
    let mixed = (version.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (at / 8))
        .wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed ^ (mixed >> 29)).to_le_bytes()[(at % 8) as usize]
}

/// Bytes of a version within `range`.
pub fn content(version: u64, range: Range<u64>) -> Vec<u8> {
    range.map(|at| byte(version, at)).collect()
}

/// Bytes of a version, of a length that depends on it.
pub fn size_of(version: u64) -> u64 {
    (version.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) % 40_000
}

pub fn whole(version: u64) -> Vec<u8> {
    content(version, 0..size_of(version))
}
