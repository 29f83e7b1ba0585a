//! Errors of a server.

use std::path::PathBuf;

use super::address::Address;
use crate::protocol::ProtocolError;

/// Reason that a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Other machines could reach the address, and without TLS nothing is encrypted.
    #[error(
        "{address} is reached from other machines, and without TLS anybody could read and write \
         the volume: name a certificate, or listen at 127.0.0.1 or a Unix socket"
    )]
    NotLocal {
        /// The address.
        address: Address,
    },
    /// Another process listens there.
    #[error("somebody listens at {address} already: stop that server, or choose another address")]
    InUse {
        /// The address.
        address: Address,
    },
    /// The path is too long for a Unix socket.
    #[error(
        "{} is too long for a Unix socket: {most} bytes are the most; a relative path may be \
         shorter",
        path.display()
    )]
    LongPath {
        /// The path.
        path: PathBuf,
        /// Maximum bytes of a path.
        most: usize,
    },
    /// A file exists there that is not a socket.
    #[error("{} is there and no socket: it is left alone, choose another path", path.display())]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// The name is not allowed for an export.
    #[error("an export cannot be called '{name}': 1 to {most} bytes, none of them '/'")]
    Name {
        /// The name.
        name: String,
        /// Maximum bytes of a name.
        most: usize,
    },
    /// The operating system refuses to listen at the address.
    #[error("listening at {address} failed: {error}")]
    Listen {
        /// The address.
        address: Address,
        /// The operating system's reason.
        error: std::io::Error,
    },
    /// A thread cannot be created.
    #[error("a thread of the server cannot be made: {error}")]
    Thread {
        /// The operating system's reason.
        error: std::io::Error,
    },
}

/// Reason that a connection ended before its client ended it.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    /// The socket failed, or the peer went away.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The peer sent bytes that are not a message.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The client sent a request that has no reply but the end of the connection.
    #[error("{0}")]
    Refused(&'static str),
}
