//! Served volumes, each in its own folder, and a client that can send any bytes.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use millpond_server::client::{NbdDevice, NbdOptions, NbdUri};
use millpond_server::protocol::{
    ClientOption, InfoRequest, MetaRequest, OptionReply, OptionReplyHeader, Request, options,
};
use millpond_server::serve::{Address, ServeOptions, Server};
use millpond_server::volume::{CacheSpec, Volume, VolumeSpec};

/// Longer than any operation takes that does not hang.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A folder with a backing file, whose volume is served at a Unix socket.
pub struct Served {
    pub volume: Arc<Volume>,
    pub server: Server,
    pub folder: tempfile::TempDir,
}

/// Creates a folder with a backing file that holds `bytes`.
pub fn folder(bytes: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("backing"), bytes).unwrap();
    folder
}

/// Returns the volume in a folder, with a cache of `cache` bytes unless that is 0.
pub fn spec(folder: impl AsRef<Path>, cache: u64, block: u32) -> VolumeSpec {
    let folder = folder.as_ref();
    let cache = CacheSpec {
        path: folder.join("cache"),
        bytes: cache,
        policy: "tq".to_string(),
        seed: 1,
        write_back: false,
    };
    let cache = Some(cache).filter(|cache| cache.bytes > 0);
    VolumeSpec { cache, block, ..VolumeSpec::new(&folder.join("backing")) }
}

/// Waits until `is_so` returns `true`, for `LIMIT` at most.
pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LIMIT, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Served {
    pub fn new(bytes: &[u8], cache: u64, block: u32) -> Served {
        let folder = folder(bytes);
        let volume = Volume::open(&spec(&folder, cache, block)).unwrap();
        Served::of(folder, volume, ServeOptions::default())
    }

    pub fn of(folder: tempfile::TempDir, volume: Volume, options: ServeOptions) -> Served {
        let volume = Arc::new(volume);
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

    /// Returns the export's URI.
    pub fn uri(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.socket().display())
    }

    pub fn client(&self, export: &str) -> NbdDevice {
        let uri: NbdUri = self.uri(export).parse().unwrap();
        NbdDevice::open(&uri, &NbdOptions::default()).unwrap()
    }

    pub fn raw(&self) -> Raw {
        Raw::over(UnixStream::connect(self.socket()).unwrap())
    }

    /// Stops the server and closes the volume.
    pub fn close(self) -> tempfile::TempDir {
        self.server.stop();
        self.volume.close().unwrap();
        self.folder
    }
}

/// A client that can send any bytes.
pub struct Raw {
    pub stream: UnixStream,
}

impl Raw {
    pub fn over(stream: UnixStream) -> Raw {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        Raw { stream }
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Reads the greeting, and sends flags.
    pub fn greet(mut self, flags: u32) -> Raw {
        assert_eq!(self.bytes(18), b"NBDMAGICIHAVEOPT\0\x03");
        self.send(&flags.to_be_bytes());
        self
    }

    /// Sends an option, and reads one reply.
    pub fn ask(&mut self, option: &ClientOption) -> OptionReply {
        self.send(&option.encode());
        self.option_reply(option.number())
    }

    pub fn option_reply(&mut self, to: u32) -> OptionReply {
        let header = OptionReplyHeader::decode(&self.bytes(OptionReplyHeader::BYTES)).unwrap();
        assert_eq!(header.option, to);
        OptionReply::decode(header.kind, &self.bytes(header.length as usize)).unwrap()
    }

    /// Chooses the export; replies are simple unless contexts are requested.
    pub fn go(self, export: &str, contexts: &[&str]) -> Raw {
        let mut raw = self.greet(3);
        if !contexts.is_empty() {
            assert_eq!(raw.ask(&ClientOption::StructuredReply), OptionReply::Ack);
            let queries = contexts.iter().map(|name| name.to_string()).collect();
            let meta = MetaRequest { export: export.to_string(), queries };
            raw.send(&ClientOption::SetMetaContext(meta).encode());
            for _ in contexts {
                let reply = raw.option_reply(options::SET_META_CONTEXT);
                assert!(matches!(reply, OptionReply::MetaContext { .. }), "{reply:?}");
            }
            assert_eq!(raw.option_reply(options::SET_META_CONTEXT), OptionReply::Ack);
        }
        let info = InfoRequest { name: export.to_string(), wants: vec![] };
        let reply = raw.ask(&ClientOption::Go(info));
        assert!(matches!(reply, OptionReply::Export { .. }), "{reply:?}");
        assert_eq!(raw.option_reply(options::GO), OptionReply::Ack);
        raw
    }

    /// Sends a request and its payload.
    pub fn request(&mut self, request: &Request, payload: &[u8]) {
        self.send(&request.encode());
        self.send(payload);
    }

    /// Sends a request, and reads a simple reply; returns its error.
    pub fn simple(&mut self, request: &Request, payload: &[u8]) -> u32 {
        self.request(request, payload);
        let reply = self.bytes(16);
        assert_eq!(reply[8..], request.cookie.to_be_bytes());
        u32::from_be_bytes(reply[4..8].try_into().unwrap())
    }

    /// Checks that the server ends the connection, possibly after some replies.
    pub fn expect_end(&mut self) {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
}
