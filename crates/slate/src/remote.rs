//! A directory as an object store that is far away: each request takes a stated time, and is
//! counted by what it is for.

use std::fmt;
use std::path::Path as Folder;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Extensions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use slatedb::object_store_tag::{ObjectStoreCallTag, TableStoreKind};

/// Latency and bandwidth of a remote store.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Distance {
    /// Least time of each request.
    pub latency: Duration,
    /// Bytes a second of each request.
    pub bandwidth: f64,
}

/// Purpose of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A table, not for a compaction.
    Table,
    /// A table, for a compaction.
    Compaction,
    /// The log.
    Wal,
    /// Anything else.
    Other,
}

#[derive(Debug, Default)]
struct Counters {
    gets: AtomicU64,
    bytes: AtomicU64,
}

/// Reads of one purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reads {
    /// Requests, heads included.
    pub gets: u64,
    /// Bytes that they gave.
    pub bytes: u64,
}

/// A directory that is far away.
#[derive(Debug)]
pub struct Remote {
    inner: LocalFileSystem,
    distance: Distance,
    counters: [Counters; 4],
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({})", self.inner)
    }
}

fn purpose(path: &Path, extensions: &Extensions) -> Purpose {
    let tag = ObjectStoreCallTag::from_extensions(extensions);
    // A cache may drop the tag of what it fetches; compactions never lose theirs.
    match tag.map(|tag| tag.kind) {
        Some(TableStoreKind::Compactor) => Purpose::Compaction,
        _ if path.parts().any(|part| part.as_ref() == "wal") => Purpose::Wal,
        _ if path.parts().any(|part| part.as_ref() == "compacted") => Purpose::Table,
        _ => Purpose::Other,
    }
}

impl Remote {
    /// The directory `folder` at a distance.
    ///
    /// # Errors
    /// There is none.
    pub fn new(folder: &Folder, distance: Distance) -> Result<Remote> {
        let inner = LocalFileSystem::new_with_prefix(folder)?;
        Ok(Remote { inner, distance, counters: Default::default() })
    }

    /// Returns the reads so far.
    pub fn reads(&self, purpose: Purpose) -> Reads {
        let Counters { gets, bytes } = &self.counters[purpose as usize];
        Reads { gets: gets.load(Ordering::Relaxed), bytes: bytes.load(Ordering::Relaxed) }
    }

    async fn travel(&self, bytes: u64) {
        let time = Duration::from_secs_f64(bytes as f64 / self.distance.bandwidth);
        tokio::time::sleep(self.distance.latency + time).await;
    }
}

#[async_trait]
impl ObjectStore for Remote {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> object_store::Result<PutResult> {
        self.travel(payload.content_length() as u64).await;
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.travel(0).await;
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        let (is_head, purpose) = (options.head, purpose(location, &options.extensions));
        let result = self.inner.get_opts(location, options).await;
        let bytes = match &result {
            Ok(found) if !is_head => found.range.end - found.range.start,
            _ => 0,
        };
        let counters = &self.counters[purpose as usize];
        counters.gets.fetch_add(1, Ordering::Relaxed);
        counters.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.travel(bytes).await;
        result
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.travel(0).await;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.travel(0).await;
        self.inner.copy_opts(from, to, options).await
    }
}
