//! Bodies of the fuzz targets of the storage server and of its client.
//!
//! The same functions are run by `crates/server/tests/hostile.rs` over bytes drawn by seed.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use millpond_device::{Device, MemoryDevice};
use millpond_server::client::NbdDevice;
use millpond_server::serve::{Address, ServeOptions, Server};
use millpond_server::volume::Volume;

/// Bytes of the volume that is served.
pub const SIZE: u64 = 64 << 10;
/// Longer than anything takes that does not hang.
const LIMIT: Duration = Duration::from_secs(60);

/// A server of a volume in memory.
pub fn server() -> Server {
    let device = Arc::new(MemoryDevice::from_bytes(&[1; SIZE as usize]));
    let volume = Arc::new(Volume::over(device, 4096, false));
    let address: Address = "127.0.0.1:0".parse().unwrap();
    Server::start(volume, &address, ServeOptions::default()).unwrap()
}

/// Sends all of it to a server, and reads until the server ends the connection.
pub fn to_server(server: &Server, bytes: &[u8]) {
    let (mut client, other) = UnixStream::pair().unwrap();
    server.attach(other);
    client.set_read_timeout(Some(LIMIT)).unwrap();
    client.set_write_timeout(Some(LIMIT)).unwrap();
    let mut reading = client.try_clone().unwrap();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut all = Vec::new();
            reading.read_to_end(&mut all).map(|_| ())
        });
        // The server may have enough of it.
        let _ = client.write_all(bytes);
        let _ = client.shutdown(Shutdown::Write);
        if let Err(error) = reader.join().unwrap() {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
        }
    });
}

/// A client reads bytes 8192 to 12288 and flushes, while its server says `bytes`. Returns what it
/// read, if nothing failed.
pub fn to_client(bytes: Vec<u8>) -> Option<Vec<u8>> {
    let (client, mut other) = UnixStream::pair().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = other.write_all(&bytes);
            let _ = other.shutdown(Shutdown::Write);
            // Takes what the client says, so that it does not wait.
            let _ = std::io::copy(&mut other, &mut std::io::sink());
        });
        let device = NbdDevice::over(client, "disk").ok()?;
        let mut room = vec![0xaa; 4096];
        let read = device.read(8192, &mut room);
        let flushed = device.sync();
        // An error of the request alone leaves the connection in step, and says what it is.
        if let Err(error) = read {
            assert!(!error.to_string().is_empty());
            return None;
        }
        flushed.ok().map(|()| room)
    })
}
