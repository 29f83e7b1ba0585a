//! Errors of a server.

use std::path::PathBuf;

use super::address::Address;
use crate::protocol::ProtocolError;

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Others than this machine would reach it, and nothing is encrypted.
    #[error(
        "{address} is reached from other machines, and without TLS anybody could read and write \
         the volume: name a certificate, or listen at 127.0.0.1 or a Unix socket"
    )]
    NotLocal {
        /// The address.
        address: Address,
    },
    /// Somebody listens there.
    #[error("somebody listens at {address} already: stop that server, or choose another address")]
    InUse {
        /// The address.
        address: Address,
    },
    /// A Unix socket's path cannot be so long.
    #[error(
        "{} is too long for a Unix socket: {most} bytes are the most; a relative path may be \
         shorter",
        path.display()
    )]
    LongPath {
        /// The path.
        path: PathBuf,
        /// Bytes at most.
        most: usize,
    },
    /// There is a file that is no socket.
    #[error("{} is there and no socket: it is left alone, choose another path", path.display())]
    NotASocket {
        /// The file.
        path: PathBuf,
    },
    /// The name cannot be one of an export.
    #[error("an export cannot be called '{name}': 1 to {most} bytes, none of them '/'")]
    Name {
        /// The name.
        name: String,
        /// Bytes of a name at most.
        most: usize,
    },
    /// The operating system refuses.
    #[error("listening at {address} failed: {error}")]
    Listen {
        /// The address.
        address: Address,
        /// Its reason.
        error: std::io::Error,
    },
    /// A thread cannot be made.
    #[error("a thread of the server cannot be made: {error}")]
    Thread {
        /// The operating system's reason.
        error: std::io::Error,
    },
}

/// Why a connection ended before its client said so.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionError {
    /// The socket failed, or the peer went away.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The peer sent bytes that are no message.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The client asks for something that can only be answered by leaving.
    #[error("{0}")]
    Refused(&'static str),
}
