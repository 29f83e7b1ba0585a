//! Errors of a client.

use crate::protocol::ProtocolError;
use crate::wire::TlsError;

/// Reason that an export cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NbdError {
    /// The text is not the address of an export.
    #[error(
        "'{text}' is no export: {why}; write nbd://HOST:PORT/EXPORT or \
         nbd+unix:///EXPORT?socket=/PATH"
    )]
    Uri {
        /// The rejected text.
        text: String,
        /// The fault.
        why: &'static str,
    },
    /// The connection failed.
    #[error("{uri}: {error}")]
    Connect {
        /// The export.
        uri: String,
        /// The operating system's reason.
        error: std::io::Error,
    },
    /// The certificates cannot be used.
    #[error("{uri}: {error}")]
    Tls {
        /// The export.
        uri: String,
        /// The fault.
        error: TlsError,
    },
    /// The server sent bytes that are not a message.
    #[error("{uri}: {error}")]
    Protocol {
        /// The export.
        uri: String,
        /// The fault.
        error: ProtocolError,
    },
    /// The server refuses a request of the client.
    #[error("{uri}: the server refuses {what}: {message} (error {kind:#x})")]
    Refused {
        /// The export.
        uri: String,
        /// The requested item.
        what: &'static str,
        /// The protocol's number of the error.
        kind: u32,
        /// The server's message.
        message: String,
    },
    /// The server lacks a required capability.
    #[error("{uri}: the server {what}")]
    Unable {
        /// The export.
        uri: String,
        /// The missing capability.
        what: &'static str,
    },
}

/// Failure of a connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A message is malformed.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// A reply is unexpected, or incomplete.
    #[error("the server's reply {0}")]
    Reply(&'static str),
    /// The server refuses.
    #[error("the server refuses {what}: {message}")]
    Refused { what: &'static str, kind: u32, message: String },
    /// The server lacks a capability.
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
