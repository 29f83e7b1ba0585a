//! A connected socket: TCP or Unix.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

/// A connected socket; any number of threads may use it.
#[derive(Debug)]
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    /// Sets options of the connection: replies are sent without delay, and a dead peer is noticed
    /// in time.
    pub fn tune(&self) {
        if let Socket::Tcp(stream) = self {
            // Optional: everything works without it.
            let _ = stream.set_nodelay(true);
            let _ = rustix::net::sockopt::set_socket_keepalive(stream, true);
        }
    }

    pub fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Unix(stream) => stream.set_read_timeout(limit),
            Socket::Tcp(stream) => stream.set_read_timeout(limit),
        }
    }

    pub fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Unix(stream) => stream.set_write_timeout(limit),
            Socket::Tcp(stream) => stream.set_write_timeout(limit),
        }
    }

    /// Ends reads, writes or both, including those that are waiting.
    pub fn shut_down(&self, how: Shutdown) {
        // The socket is closed already, or will be.
        let _ = match self {
            Socket::Unix(stream) => stream.shutdown(how),
            Socket::Tcp(stream) => stream.shutdown(how),
        };
    }

    pub fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&*stream).read(bytes),
            Socket::Tcp(stream) => (&*stream).read(bytes),
        }
    }

    /// Sends some of the bytes. Unless it `waits`, sends only as much as the socket accepts at
    /// once.
    pub fn send(&self, parts: &[IoSlice<'_>], waits: bool) -> io::Result<usize> {
        let flags = if waits { SendFlags::empty() } else { SendFlags::DONTWAIT };
        let (flags, mut none) = (flags | SendFlags::NOSIGNAL, SendAncillaryBuffer::default());
        let sent = match self {
            Socket::Unix(stream) => sendmsg(stream, parts, &mut none, flags),
            Socket::Tcp(stream) => sendmsg(stream, parts, &mut none, flags),
        };
        sent.map_err(io::Error::from)
    }

    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&*stream).write(bytes),
            Socket::Tcp(stream) => (&*stream).write(bytes),
        }
    }
}
