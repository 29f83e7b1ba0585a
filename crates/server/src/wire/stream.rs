//! Byte streams of a connection, with a time limit during the handshake.

use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::socket::Socket;
use super::tls::Tls;

/// Maximum bytes that are encrypted at once.
const TOGETHER: usize = 64 << 10;

/// The two streams of a connection. Clones share it: one thread reads, and one writes.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    raw: Raw,
    tls: Option<Arc<Tls>>,
}

/// The unencrypted streams on the socket.
#[derive(Clone, Debug)]
struct Raw {
    socket: Arc<Socket>,
    /// Time by which all reads must end.
    deadline: Option<Instant>,
}

impl Wire {
    pub fn new(socket: Arc<Socket>) -> Wire {
        Wire { raw: Raw { socket, deadline: None }, tls: None }
    }

    /// Limits the time of all further reads together, and of each write; `None` removes the limit.
    pub fn limit(&mut self, limit: Option<Duration>) -> io::Result<()> {
        self.raw.deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        if limit.is_none() {
            self.raw.socket.set_read_timeout(None)?;
        }
        self.raw.socket.set_write_timeout(limit)
    }

    /// Continues under TLS, after its handshake.
    pub fn begin_tls(&mut self, tls: Tls) -> io::Result<()> {
        tls.complete(&mut self.raw)?;
        self.tls = Some(Arc::new(tls));
        Ok(())
    }

    /// Ends reads, writes or both, of all clones.
    pub fn shut_down(&self, how: Shutdown) {
        self.raw.socket.shut_down(how);
    }

    /// Returns `true` if bytes are sent unencrypted.
    pub fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// Sends some of the bytes. On a plain stream that does not wait, sends as much as the socket
    /// accepts at once.
    pub fn send(&self, parts: &[IoSlice<'_>], waits: bool) -> io::Result<usize> {
        let Some(tls) = &self.tls else { return self.raw.socket.send(parts, waits) };
        let mut together = Vec::new();
        for part in parts {
            let rest = TOGETHER.saturating_sub(together.len()).min(part.len());
            together.extend_from_slice(part.get(..rest).unwrap_or(&[]));
        }
        tls.write(&mut self.raw.clone(), &together)?;
        Ok(together.len())
    }

    /// Ends writes; the peer still gets everything written before.
    pub fn finish(&self) {
        if let Some(tls) = &self.tls {
            // The peer may be gone already.
            let _ = tls.finish(&mut self.raw.clone());
        }
        self.shut_down(Shutdown::Write);
    }

    /// Reads `N` bytes; `None` if the stream ends before the first one.
    pub fn read_array<const N: usize>(reader: &mut impl Read) -> io::Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        let mut done = 0;
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match reader.read(rest) {
                Ok(0) if done == 0 => return Ok(None),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(bytes))
    }

    /// Reads and discards `count` bytes.
    pub fn skip(reader: &mut impl Read, count: u64) -> io::Result<()> {
        match io::copy(&mut reader.take(count), &mut io::sink())? {
            skipped if skipped == count => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Read for Wire {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match &self.tls {
            Some(tls) => tls.read(&mut self.raw, bytes),
            None => self.raw.read(bytes),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.tls {
            Some(tls) => tls.write(&mut self.raw, bytes).map(|()| bytes.len()),
            None => self.raw.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Raw {
    fn too_late() -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, "the peer took too long")
    }
}

impl Read for Raw {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Raw::too_late());
            }
            self.socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        }
        match self.socket.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Raw::too_late()),
            other => other,
        }
    }
}

impl Write for Raw {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.socket.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(Raw::too_late()),
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
