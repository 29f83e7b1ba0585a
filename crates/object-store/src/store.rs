//! The cached store: an object store with a second tier in front.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use millpond_device::{Device, FileDevice, FileOptions, open_above_standard, real_path};
use millpond_policies::chosen::ChosenPolicy;
use millpond_policies::info::Tier;
use millpond_tier::{SecondTier, TierOptions};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

use crate::error::OpenCacheError;
use crate::flights::{Flights, Turns};
use crate::front::Front;
use crate::hints::Hints;
use crate::nowhere::Nowhere;
use crate::options::{CacheOptions, Freshness, PART_BYTES};
use crate::registry::Registry;
use crate::saved::Saved;
use crate::stats::{Counters, Stats};

/// Minimum number of known objects, however small the cache is.
const OBJECTS_MIN: usize = 1024;

/// State that requests in progress share.
pub(crate) struct Core {
    pub inner: Arc<dyn ObjectStore>,
    pub front: Front,
    pub registry: Registry,
    pub flights: Flights,
    pub turns: Turns,
    pub counters: Counters,
    pub hints: Arc<dyn Hints>,
    pub freshness: Freshness,
    /// Parts per window.
    pub window: u64,
    saved: Arc<Saved>,
    is_closed: AtomicBool,
}

/// An object store with a second tier in front; see the crate's documentation.
///
/// Dropping the last clone closes it.
#[derive(Clone)]
pub struct CachedStore {
    pub(crate) core: Arc<Core>,
}

impl std::fmt::Debug for CachedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedStore").field("inner", &self.core.inner).finish_non_exhaustive()
    }
}

impl std::fmt::Display for CachedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CachedStore({})", self.core.inner)
    }
}

impl CachedStore {
    /// Puts a cache in front of `inner`. The cache is warm if it was last closed in front of the
    /// same objects.
    ///
    /// # Errors
    /// An option is invalid, or the cache's file cannot be opened, is in use, or holds something
    /// else.
    pub fn open(
        inner: Arc<dyn ObjectStore>,
        options: CacheOptions,
    ) -> Result<CachedStore, OpenCacheError> {
        check_part(options.part_bytes)?;
        let fast = open_file(&options)?;
        fast.sync_directory().map_err(OpenCacheError::Device)?;
        CachedStore::over(inner, Arc::new(fast), options)
    }

    /// Like [`CachedStore::open`], over a device that takes the place of the cache's file.
    /// `options.path` still names the list beside it.
    ///
    /// # Errors
    /// Same as [`CachedStore::open`].
    #[doc(hidden)]
    pub fn over(
        inner: Arc<dyn ObjectStore>,
        fast: Arc<dyn Device>,
        options: CacheOptions,
    ) -> Result<CachedStore, OpenCacheError> {
        check_part(options.part_bytes)?;
        let policy = ChosenPolicy::parse(&options.policy, Tier::Second)
            .map_err(|error| OpenCacheError::Policy(error.to_string()))?;
        let tier_options = TierOptions {
            bytes: options.bytes,
            page_bytes: options.part_bytes,
            unit: options.part_bytes,
            seed: options.seed,
            writes_back: false,
        };
        let frames = tier_options.frames()?;
        let part = u64::from(options.part_bytes);
        let objects_max = (frames as usize).max(OBJECTS_MIN);
        let saved = Arc::new(Saved::of(&options.path, part));
        let registry = Registry::new(part, objects_max);
        let gone = registry.restore(saved.load());
        let below = Arc::new(Nowhere { path: options.path.clone() });
        let told = saved.clone();
        let identity = move |_: &dyn Device| told.identity();
        let host = |shape: &_| policy.erased_host(shape);
        let tier = SecondTier::open(below, fast, &tier_options, identity, host)?;
        saved.opened();
        let front = Front { tier: Arc::new(tier), part };
        front.forget(gone);
        let core = Core {
            inner,
            front,
            registry,
            flights: Flights::default(),
            turns: Turns::default(),
            counters: Counters::default(),
            hints: options.hints,
            freshness: options.freshness,
            window: (options.window_bytes / part).max(1),
            saved,
            is_closed: AtomicBool::new(false),
        };
        Ok(CachedStore { core: Arc::new(core) })
    }

    /// Returns the counters since the store was opened.
    pub fn stats(&self) -> Stats {
        let objects = self.core.registry.len() as u64;
        self.core.counters.snapshot(self.core.front.tier.counts(), objects)
    }

    /// Closes the cache, and keeps its content for the next open. Call it when no request is in
    /// progress: later requests are served, but the copies they leave in the cache are lost. It
    /// waits for the cache's device.
    pub fn close(&self) {
        self.core.close();
    }

    /// Verifies the tables. No request may be in progress.
    ///
    /// # Errors
    /// A description of the inconsistency.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), String> {
        self.core.front.tier.check()
    }
}

impl Core {
    fn close(&self) {
        if !self.is_closed.swap(true, Ordering::AcqRel) {
            self.saved.save(&self.registry.all());
            self.front.tier.release();
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.close();
    }
}

fn check_part(bytes: u32) -> Result<(), OpenCacheError> {
    if !PART_BYTES.contains(&bytes) || !bytes.is_power_of_two() {
        return Err(OpenCacheError::Part { bytes });
    }
    Ok(())
}

/// Opens the cache's file, and creates it if it does not exist. Only its owner may read it, since
/// the permissions of the objects are not known here.
fn open_file(options: &CacheOptions) -> Result<FileDevice, OpenCacheError> {
    let path = &real_path(&options.path);
    // If it cannot be created, opening it below reports the error.
    drop(open_above_standard(OpenOptions::new().write(true).create_new(true).mode(0o600), path));
    let open = |file: &FileOptions| {
        let length = std::fs::metadata(path).map_or(0, |found| found.len());
        let opened = match length {
            0 => FileDevice::create(path, file),
            _ => FileDevice::open(path, file),
        };
        opened.map_err(OpenCacheError::File)
    };
    let file = FileOptions { direct: options.direct, ..FileOptions::default() };
    let device = open(&file)?;
    if 4096u64.is_multiple_of(device.alignment().offset) {
        return Ok(device);
    }
    // Blocks are smaller than the drive's unit of I/O.
    drop(device);
    open(&FileOptions { direct: false, ..file })
}

#[async_trait]
impl ObjectStore for CachedStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        self.core.put(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.core.upload(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.core.get(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.core.delete(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.core.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.core.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.core.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let write = self.core.begin_write(to);
        let copied = self.core.inner.copy_opts(from, to, options).await;
        write.judge(&copied);
        copied
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let writes = [self.core.begin_write(from), self.core.begin_write(to)];
        let renamed = self.core.inner.rename_opts(from, to, options).await;
        for write in writes {
            write.judge(&renamed);
        }
        renamed
    }
}
