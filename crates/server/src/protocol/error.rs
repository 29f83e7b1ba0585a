//! Errors of unreadable messages.

/// Why bytes are no message of the protocol.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A word that begins each message of its kind is another one: the other side speaks something
    /// else, or the stream is out of step. There is no way to go on.
    #[error("{what} begins with {found:#x}: the peer does not speak NBD, or is out of step")]
    Magic {
        /// Name of the message.
        what: &'static str,
        /// The value found.
        found: u64,
    },
    /// A message ends before what it announces.
    #[error("{what} is too short")]
    TooShort {
        /// Name of the message.
        what: &'static str,
    },
    /// A message goes on after its end.
    #[error("{what} has {bytes} bytes too many")]
    TooLong {
        /// Name of the message.
        what: &'static str,
        /// Number of bytes.
        bytes: usize,
    },
    /// A length, or a number of things, is beyond what is taken.
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
        /// What it names.
        what: &'static str,
    },
}
