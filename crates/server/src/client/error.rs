//! Errors of a client.

use crate::protocol::ProtocolError;
use crate::wire::TlsError;

/// Why an export cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NbdError {
    /// The text is no address of an export.
    #[error(
        "'{text}' is no export: {why}; write nbd://HOST:PORT/EXPORT or \
         nbd+unix:///EXPORT?socket=/PATH"
    )]
    Uri {
        /// The text as it was written.
        text: String,
        /// The fault.
        why: &'static str,
    },
    /// There is no connection.
    #[error("{uri}: {error}")]
    Connect {
        /// The export.
        uri: String,
        /// The operating system's reason.
        error: std::io::Error,
    },
    /// Certificates cannot be used.
    #[error("{uri}: {error}")]
    Tls {
        /// The export.
        uri: String,
        /// The fault.
        error: TlsError,
    },
    /// The server sent bytes that are no message.
    #[error("{uri}: {error}")]
    Protocol {
        /// The export.
        uri: String,
        /// The fault.
        error: ProtocolError,
    },
    /// The server refuses.
    #[error("{uri}: the server refuses {what}: {message} (error {kind:#x})")]
    Refused {
        /// The export.
        uri: String,
        /// The requested item.
        what: &'static str,
        /// The protocol's number of the error.
        kind: u32,
        /// Why, by the server.
        message: String,
    },
    /// The server is too old or too simple.
    #[error("{uri}: the server {what}")]
    Unable {
        /// The export.
        uri: String,
        /// What it cannot.
        what: &'static str,
    },
}

/// Failure of a connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    /// The socket.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The messages.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// An answer that was not asked for, or lacks a part.
    #[error("the server's reply {0}")]
    Reply(&'static str),
    /// The server says no.
    #[error("the server refuses {what}: {message}")]
    Refused { what: &'static str, kind: u32, message: String },
    /// The server cannot.
    #[error("the server {0}")]
    Unable(&'static str),
}

impl LinkError {
    /// Returns the error for the export at `uri`.
    pub fn of(self, uri: &str) -> NbdError {
        let uri = uri.to_string();
        match self {
            LinkError::Io(error) => NbdError::Connect { uri, error },
            LinkError::Tls(error) => NbdError::Tls { uri, error },
            LinkError::Protocol(error) => NbdError::Protocol { uri, error },
            LinkError::Reply(what) => {
                let error = std::io::Error::new(std::io::ErrorKind::InvalidData, what);
                NbdError::Connect { uri, error }
            }
            LinkError::Refused { what, kind, message } => {
                NbdError::Refused { uri, what, kind, message }
            }
            LinkError::Unable(what) => NbdError::Unable { uri, what },
        }
    }
}
