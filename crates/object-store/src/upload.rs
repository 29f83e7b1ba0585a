//! Multipart uploads: their bytes go to the cache as they arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use millpond_base::Reason;
use object_store::path::Path;
use object_store::{
    MultipartUpload, PutMultipartOptions, PutPayload, PutResult, Result, UploadPart,
};

use crate::hints::{Class, WritePlan};
use crate::object::Object;
use crate::reservation::Reservation;
use crate::store::Core;

/// Bytes that are collected before they go to the cache.
const COLLECTED: usize = 1 << 20;

/// Copying of an upload into the cache.
struct Copying {
    reason: Reason,
    reserved: Arc<Reservation>,
    /// End of the numbers reserved for its parts.
    end: u64,
    /// Bytes that wait for a whole part, or for more parts.
    collected: Vec<Bytes>,
    bytes: usize,
}

struct Upload {
    core: Arc<Core>,
    path: Path,
    class: Class,
    inner: Box<dyn MultipartUpload>,
    copying: Option<Copying>,
    size: u64,
    begun: u64,
    arrived: Arc<AtomicU64>,
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Core {
    pub async fn upload(
        self: &Arc<Self>,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let (class, plan) = self.hints.write(path, &options.extensions);
        let inner = self.inner.put_multipart_opts(path, options).await?;
        let copying = match plan {
            WritePlan::Pass => None,
            WritePlan::Keep(reason) => self.registry.reserve_many().map(|numbers| Copying {
                reason,
                reserved: Reservation::new(&self.front, numbers.start),
                end: numbers.end,
                collected: Vec::new(),
                bytes: 0,
            }),
        };
        Ok(Box::new(Upload {
            core: self.clone(),
            path: path.clone(),
            class,
            inner,
            copying,
            size: 0,
            begun: 0,
            arrived: Arc::default(),
        }))
    }
}

impl Copying {
    /// Takes the whole parts once there are enough of them, or everything at the end. Returns them
    /// with the number of the first.
    fn take(&mut self, part: usize, is_end: bool) -> Option<(u64, PutPayload)> {
        let most = if is_end { self.bytes } else { self.bytes - self.bytes % part };
        if most == 0 || (!is_end && self.bytes < COLLECTED.max(part)) {
            return None;
        }
        let (mut taken, mut left) = (Vec::new(), most);
        for bytes in &mut self.collected {
            let piece = bytes.split_to(bytes.len().min(left));
            left -= piece.len();
            taken.push(piece);
        }
        self.collected.retain(|bytes| !bytes.is_empty());
        self.bytes -= most;
        Some((self.reserved.take(most as u64), PutPayload::from_iter(taken)))
    }
}

impl Upload {
    /// Gives up copying the upload; nothing of it is kept.
    fn give_up(&self, copying: Copying) {
        self.core.registry.give_back(copying.reserved.end()..copying.end);
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // A successful upload has already taken this.
        if let Some(copying) = self.copying.take() {
            self.give_up(copying);
        }
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.size += data.content_length() as u64;
        self.begun += 1;
        let mut offer = None;
        let part = self.core.front.part;
        let has_numbers =
            |copying: &Copying| self.size.div_ceil(part) <= copying.end - copying.reserved.first();
        if !self.copying.as_ref().is_none_or(has_numbers)
            && let Some(copying) = self.copying.take()
        {
            self.give_up(copying);
        }
        if let Some(copying) = &mut self.copying {
            copying.collected.extend(data.iter().cloned());
            copying.bytes += data.content_length();
            let taken = copying.take(part as usize, false);
            offer = taken.map(|taken| (copying.reserved.clone(), taken, copying.reason));
        }
        let sent = self.inner.put_part(data);
        let arrived = self.arrived.clone();
        Box::pin(async move {
            let copy = async {
                if let Some((reserved, (first, payload), reason)) = offer {
                    reserved.offer(first, payload, reason).await;
                }
            };
            let (sent, ()) = futures::future::join(sent, copy).await;
            arrived.fetch_add(u64::from(sent.is_ok()), Ordering::AcqRel);
            sent
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.core.counters.put(self.class, self.size);
        let write = self.core.begin_write(&self.path);
        let result = self.inner.complete().await;
        let done = match &result {
            Err(_) => {
                write.judge(&result);
                return result;
            }
            Ok(done) => done,
        };
        // A part that failed may have been sent again, in another order.
        let is_in_order = self.arrived.load(Ordering::Acquire) == self.begun;
        let Some(mut copying) = self.copying.take_if(|_| is_in_order) else {
            write.done(None);
            return result;
        };
        let base = copying.reserved.first();
        let Some(object) = self.core.written(&self.path, self.size, base, done) else {
            self.give_up(copying);
            write.done(None);
            return result;
        };
        let count = Object::parts_of(self.size, self.core.front.part);
        self.core.registry.give_back(base + count..copying.end);
        if let Some((first, payload)) = copying.take(self.core.front.part as usize, true) {
            copying.reserved.clone().offer(first, payload, copying.reason).await;
        }
        write.done(Some(object));
        copying.reserved.keep();
        result
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}
