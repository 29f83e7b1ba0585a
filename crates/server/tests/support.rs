//! Volumes that are served, in a folder of their own.

use std::path::PathBuf;
use std::sync::Arc;

use millpond_server::client::{NbdDevice, NbdOptions, NbdUri};
use millpond_server::serve::{Address, ServeOptions, Server};
use millpond_server::volume::{CacheSpec, Volume, VolumeSpec};

/// A folder with a backing file, whose volume is served at a Unix socket.
pub struct Served {
    pub volume: Arc<Volume>,
    pub server: Server,
    pub folder: tempfile::TempDir,
}

/// A new folder with a backing file that holds `bytes`.
pub fn folder(bytes: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("backing"), bytes).unwrap();
    folder
}

/// The volume in a folder, with a cache of `cache` bytes unless that is 0.
pub fn spec(folder: &tempfile::TempDir, cache: u64, block: u32) -> VolumeSpec {
    let cache = CacheSpec {
        path: folder.path().join("cache"),
        bytes: cache,
        policy: "tq".to_string(),
        seed: 1,
    };
    let cache = Some(cache).filter(|cache| cache.bytes > 0);
    VolumeSpec { cache, block, ..VolumeSpec::new(&folder.path().join("backing")) }
}

impl Served {
    pub fn new(bytes: &[u8], cache: u64, block: u32) -> Served {
        Served::with(bytes, cache, block, ServeOptions::default())
    }

    pub fn with(bytes: &[u8], cache: u64, block: u32, options: ServeOptions) -> Served {
        Served::of(folder(bytes), cache, block, options)
    }

    pub fn of(folder: tempfile::TempDir, cache: u64, block: u32, options: ServeOptions) -> Served {
        let volume = Arc::new(Volume::open(&spec(&folder, cache, block)).unwrap());
        let address = Address::Unix(folder.path().join("socket"));
        let server = Server::start(volume.clone(), &address, options).unwrap();
        Served { volume, server, folder }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub fn backing(&self) -> PathBuf {
        self.folder.path().join("backing")
    }

    /// The export, as clients write it.
    pub fn uri(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.socket().display())
    }

    pub fn client(&self, export: &str) -> NbdDevice {
        let uri: NbdUri = self.uri(export).parse().unwrap();
        NbdDevice::open(&uri, &NbdOptions::default()).unwrap()
    }

    /// Stops the server and closes the volume.
    pub fn close(self) -> tempfile::TempDir {
        self.server.stop();
        self.volume.close().unwrap();
        self.folder
    }
}
