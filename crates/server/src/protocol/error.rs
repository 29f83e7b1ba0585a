//! Errors of unreadable messages.

/// Reason that bytes are not a message of the protocol.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The magic word of a message is wrong: the peer speaks another protocol, or the stream is out
    /// of step. The connection cannot continue.
    #[error("{what} begins with {found:#x}: the peer does not speak NBD, or is out of step")]
    Magic {
        /// Name of the message.
        what: &'static str,
        /// The value found.
        found: u64,
    },
    /// The message is shorter than it should be.
    #[error("{what} is too short")]
    TooShort {
        /// Name of the message.
        what: &'static str,
    },
    /// The message has bytes after its end.
    #[error("{what} has {bytes} bytes too many")]
    TooLong {
        /// Name of the message.
        what: &'static str,
        /// Number of bytes.
        bytes: usize,
    },
    /// A length or a count exceeds its limit.
    #[error("{what} of {found}, and at most {most} are taken")]
    Limit {
        /// The limited quantity, with its unit.
        what: &'static str,
        /// The value found.
        found: u64,
        /// The limit.
        most: u64,
    },
    /// A name is not UTF-8.
    #[error("{what} is not UTF-8")]
    NotText {
        /// Kind of the name.
        what: &'static str,
    },
}
