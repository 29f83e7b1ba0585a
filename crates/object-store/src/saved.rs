//! The saved list of objects with cached parts, read after a restart.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use millpond_base::PastPoison;
use millpond_tier::Identity as TierIdentity;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::object::{Identity, Object};

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct List {
    version: u32,
    part: u64,
    objects: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
struct Row {
    path: String,
    base: u64,
    size: u64,
    e_tag: Option<String>,
    object_version: Option<String>,
    modified: Option<i64>,
}

/// The list of objects, in a file beside the cache's. The tier stores the list's checksum, which
/// rejects a list of another session.
pub(crate) struct Saved {
    path: PathBuf,
    part: u64,
    identity: Mutex<Option<TierIdentity>>,
}

fn identity_of(bytes: &[u8]) -> TierIdentity {
    let mut identity = TierIdentity::default();
    let length = bytes.len() as u64;
    let words = [xxh3_128(bytes).to_le_bytes(), u128::from(length).to_le_bytes()];
    for (place, word) in identity.chunks_exact_mut(16).zip(words) {
        place.copy_from_slice(&word);
    }
    identity
}

impl Saved {
    pub fn of(cache: &Path, part: u64) -> Saved {
        let mut path = OsString::from(cache);
        path.push(".objects");
        Saved { path: path.into(), part, identity: Mutex::default() }
    }

    /// Returns the identity of the current list.
    pub fn identity(&self) -> Option<TierIdentity> {
        *self.identity.lock().past_poison()
    }

    fn set(&self, identity: Option<TierIdentity>) {
        *self.identity.lock().past_poison() = identity;
    }

    /// Loads the objects of the last session; none if the list is missing or unreadable.
    pub fn load(&self) -> Vec<Object> {
        let Ok(bytes) = std::fs::read(&self.path) else { return Vec::new() };
        let list = match serde_json::from_slice::<List>(&bytes) {
            Ok(list) if list.version == VERSION && list.part == self.part => list,
            _ => return Vec::new(),
        };
        self.set(Some(identity_of(&bytes)));
        let object = |row: Row| {
            let Row { path, base, size, e_tag, object_version, modified } = row;
            let path = object_store::path::Path::parse(path).ok()?;
            let identity = Identity { size, e_tag, version: object_version, modified };
            Some(Object { path, identity, base, head: OnceLock::new() })
        };
        list.objects.into_iter().filter_map(object).collect()
    }

    /// Notes that the tier is open: from now on the list on disk does not match it.
    pub fn opened(&self) {
        self.set(None);
    }

    /// Writes the list.
    pub fn save(&self, objects: &[std::sync::Arc<Object>]) {
        let row = |object: &std::sync::Arc<Object>| Row {
            path: object.path.to_string(),
            base: object.base,
            size: object.identity.size,
            e_tag: object.identity.e_tag.clone(),
            object_version: object.identity.version.clone(),
            modified: object.identity.modified,
        };
        let objects = objects.iter().map(row).collect();
        let list = List { version: VERSION, part: self.part, objects };
        let written = serde_json::to_vec(&list).map_err(std::io::Error::other).and_then(|bytes| {
            // Readable by its owner only, like the cache's file.
            let mut how = OpenOptions::new();
            let file = how.write(true).create(true).truncate(true).mode(0o600).open(&self.path);
            file?.write_all(&bytes)?;
            Ok(identity_of(&bytes))
        });
        match written {
            Ok(identity) => self.set(Some(identity)),
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%path, %error, "the list of objects cannot be written: the cache \
                     will start empty");
                self.set(None);
            }
        }
    }
}
