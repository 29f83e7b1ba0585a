//! Puts, and the effect of each write on the cache.

use std::sync::{Arc, OnceLock};

use object_store::path::Path;
use object_store::{Error, PutOptions, PutPayload, PutResult, Result};

use crate::hints::WritePlan;
use crate::object::{Identity, Object};
use crate::reservation::Reservation;
use crate::store::Core;

/// A write in progress. If it is dropped without a result, its outcome is unknown.
pub(crate) struct Write {
    core: Arc<Core>,
    path: Path,
    is_ended: bool,
}

impl Drop for Write {
    fn drop(&mut self) {
        self.end(false, None);
    }
}

impl Write {
    fn end(&mut self, is_settled: bool, object: Option<Object>) {
        if !std::mem::replace(&mut self.is_ended, true) {
            let gone = self.core.registry.end_write(&self.path, is_settled, object);
            self.core.front.forget(gone);
        }
    }

    /// Ends a write that was done. The object is known now if `object` is given.
    pub fn done(mut self, object: Option<Object>) {
        self.end(true, object);
    }

    /// Ends a write with its result.
    pub fn judge<T>(mut self, result: &Result<T>) {
        let is_settled = match result {
            Ok(_) => true,
            Err(error) => is_definite(error),
        };
        self.end(is_settled, None);
    }
}

/// Returns `true` if a write with this error changed nothing, and never will.
fn is_definite(error: &Error) -> bool {
    matches!(
        error,
        Error::NotFound { .. }
            | Error::InvalidPath { .. }
            | Error::NotSupported { .. }
            | Error::AlreadyExists { .. }
            | Error::Precondition { .. }
            | Error::NotModified { .. }
            | Error::NotImplemented { .. }
            | Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
    )
}

impl Core {
    /// Begins a write: everything known of the path is outdated from now on.
    pub fn begin_write(self: &Arc<Self>, path: &Path) -> Write {
        self.front.forget(self.registry.begin_write(path));
        Write { core: self.clone(), path: path.clone(), is_ended: false }
    }

    /// Returns the object that a write created, if the object store returned a tag or a version id
    /// for it.
    pub fn written(&self, path: &Path, size: u64, base: u64, result: &PutResult) -> Option<Object> {
        let (e_tag, version) = (result.e_tag.clone(), result.version.clone());
        let identity = Identity { size, e_tag, version, modified: None };
        let path = path.clone();
        identity.is_marked().then(|| Object { path, identity, base, head: OnceLock::new() })
    }

    pub async fn put(
        self: &Arc<Self>,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let (class, plan) = self.hints.write(path, &options.extensions);
        let size = payload.content_length() as u64;
        self.counters.put(class, size);
        let write = self.begin_write(path);
        let result = self.inner.put_opts(path, payload.clone(), options).await;
        let done = match &result {
            Err(_) => {
                write.judge(&result);
                return result;
            }
            Ok(done) => done,
        };
        let WritePlan::Keep(reason) = plan else {
            write.done(None);
            return result;
        };
        let base = self.registry.reserve(Object::parts_of(size, self.front.part));
        let object = base.and_then(|base| self.written(path, size, base, done));
        let Some(object) = object else {
            write.done(None);
            return result;
        };
        let reserved = Reservation::new(&self.front, object.base);
        let first = reserved.take(size);
        reserved.clone().offer(first, payload, reason).await;
        write.done(Some(object));
        reserved.keep();
        result
    }
}
