//! A socket that clients connect to.

use std::fs::Metadata;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use super::address::Address;
use super::error::ServeError;
use crate::wire::Socket;

/// Maximum bytes of a Unix socket's path: an address has 108, including a zero at the end.
const PATH_MAX: usize = 107;

/// A listening socket.
#[derive(Debug)]
pub(super) enum Listener {
    /// A Unix socket, with device and inode of its file.
    Unix(UnixListener, Option<(u64, u64)>),
    Tcp(TcpListener),
}

fn place(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

impl Listener {
    /// Listens at `address`. The file of a Unix socket is replaced if nobody listens at it.
    pub fn bind(address: &Address) -> Result<Listener, ServeError> {
        let fail = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => ServeError::InUse { address: address.clone() },
            _ => ServeError::Listen { address: address.clone(), error },
        };
        let listener = match address {
            Address::Tcp(tcp) => Listener::Tcp(TcpListener::bind(tcp).map_err(fail)?),
            Address::Unix(path) if path.as_os_str().len() > PATH_MAX => {
                return Err(ServeError::LongPath { path: path.clone(), most: PATH_MAX });
            }
            Address::Unix(path) => {
                let listener = match UnixListener::bind(path) {
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                        remove_stale(path, address)?;
                        UnixListener::bind(path)
                    }
                    bound => bound,
                };
                let listener = listener.map_err(fail)?;
                let file = std::fs::symlink_metadata(path).ok();
                Listener::Unix(listener, file.map(|file| place(&file)))
            }
        };
        let nonblocking = match &listener {
            Listener::Unix(listener, _) => listener.set_nonblocking(true),
            Listener::Tcp(listener) => listener.set_nonblocking(true),
        };
        nonblocking.map_err(fail)?;
        Ok(listener)
    }

    /// Returns the address, with the port that was chosen.
    pub fn address(&self, asked: &Address) -> Address {
        match self {
            Listener::Unix(..) => asked.clone(),
            Listener::Tcp(listener) => {
                listener.local_addr().map_or_else(|_| asked.clone(), Address::Tcp)
            }
        }
    }

    /// Accepts the next client. Returns its address if it came over TCP. Without a client the error
    /// has the kind `WouldBlock`.
    pub fn accept(&self) -> io::Result<(Socket, Option<IpAddr>)> {
        match self {
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                Ok((Socket::Unix(stream), None))
            }
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                stream.set_nonblocking(false)?;
                Ok((Socket::Tcp(stream), Some(peer.ip())))
            }
        }
    }

    /// Removes the socket's file, unless another server has replaced it.
    pub fn remove(&self, address: &Address) {
        let (Listener::Unix(_, Some(own)), Address::Unix(path)) = (self, address) else { return };
        if std::fs::symlink_metadata(path).is_ok_and(|file| place(&file) == *own) {
            // The next server there replaces it anyway.
            let _ = std::fs::remove_file(path);
        }
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(listener, _) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// Removes the file of a socket that nobody listens at.
fn remove_stale(path: &Path, address: &Address) -> Result<(), ServeError> {
    let fail = |error| ServeError::Listen { address: address.clone(), error };
    let found = std::fs::symlink_metadata(path).map_err(fail)?;
    if !found.file_type().is_socket() {
        return Err(ServeError::NotASocket { path: path.to_path_buf() });
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(fail)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        _ => Err(ServeError::InUse { address: address.clone() }),
    }
}
