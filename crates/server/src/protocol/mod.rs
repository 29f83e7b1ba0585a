//! The messages of the NBD protocol (fixed newstyle, simple and structured replies), as functions
//! over bytes: no sockets, no state. This crate is both client and server, so both sides are here.
//!
//! ```text
//! client                                         server
//!   |                          NBDMAGIC IHAVEOPT flags | Greeting
//!   | client flags ----------------------------------> |
//!   |                                                  |
//!   | IHAVEOPT option length data ---------(option)--> |   any number of times
//!   | <--(option reply)-- magic option type length data|   one or several to each
//!   |                                                  |
//!   | option GO name -------------------------------->  |   or EXPORT_NAME
//!   | <------------- INFO EXPORT size flags … ACK       |
//!   |                                                  |
//!   | magic flags type cookie offset length [data] --> |   requests, many under way,
//!   | <------------- magic error cookie [data]         |   replies in any order:
//!   | <--- magic flags type cookie length data         |   simple, or chunks
//!   |                                                  |
//!   | DISC -----------------------------------------> |
//! ```
//!
//! All integers are big-endian. Every length is checked here before memory is allocated for it:
//! options by [`OPTION_BYTES_MAX`], payloads by [`PAYLOAD_BYTES_MAX`], names by [`NAME_BYTES_MAX`].
//! No input makes these functions panic; unreadable bytes are a [`ProtocolError`].
//!
//! Source: the specification of the NBD protocol (`doc/proto.md` of NetworkBlockDevice/nbd).

mod constants;
mod cursor;
mod error;
mod handshake;
mod hints;
mod option_reply;
mod reply;
mod request;

pub use constants::*;
pub use error::ProtocolError;
pub use handshake::{
    ClientOption, GREETING_BYTES, Greeting, InfoRequest, MetaRequest, OptionHeader,
};
pub use hints::{CLASSES, REASON_CONTEXT, REASON_SHIFT, number_of, reason_of};
pub use option_reply::{OptionReply, OptionReplyHeader};
pub use reply::{Chunk, ChunkHeader, Extent, ReplyHeader, SimpleHeader};
pub use request::{Command, REQUEST_BYTES, Request};
