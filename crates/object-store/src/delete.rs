//! Deletions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::stream::{BoxStream, StreamExt};
use millpond_base::PastPoison;
use object_store::Result;
use object_store::path::Path;

use crate::store::Core;
use crate::write::Write;

type Writes = Arc<Mutex<HashMap<Path, Vec<Write>>>>;

fn lock(writes: &Writes) -> MutexGuard<'_, HashMap<Path, Vec<Write>>> {
    writes.lock().past_poison()
}

impl Core {
    /// Deletes objects. An object whose deletion the object store does not confirm by name is left
    /// in doubt.
    pub fn delete(
        self: &Arc<Self>,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let writes = Writes::default();
        let (core, begun) = (self.clone(), writes.clone());
        let locations = locations.inspect(move |location| {
            if let Ok(path) = location {
                let write = core.begin_write(path);
                lock(&begun).entry(path.clone()).or_default().push(write);
            }
        });
        let deleted = self.inner.delete_stream(locations.boxed());
        let settle = move |result: &Result<Path>| {
            if let Ok(path) = result {
                let write = lock(&writes).get_mut(path).and_then(Vec::pop);
                write.into_iter().for_each(|write| write.done(None));
            }
        };
        deleted.inspect(settle).boxed()
    }
}
