//! Replies to options.

use super::constants::{OPTION_BYTES_MAX, OPTION_REPLY_MAGIC, infos, option_replies};
use super::cursor::{Cursor, limit, put_text};
use super::error::ProtocolError;

/// Header before the data of a reply to an option.
///
/// ```text
/// offset size
///      0    8  magic
///      8    4  the option
///     12    4  type
///     16    4  bytes of data
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionReplyHeader {
    /// The option that is replied to.
    pub option: u32,
    /// [`option_replies`], or another number.
    pub kind: u32,
    /// Bytes of data that follow, at most [`OPTION_BYTES_MAX`].
    pub length: u32,
}

impl OptionReplyHeader {
    /// Bytes of a header.
    pub const BYTES: usize = 20;

    /// Returns the header as bytes.
    pub fn encode(self) -> [u8; OptionReplyHeader::BYTES] {
        let mut bytes = [0; OptionReplyHeader::BYTES];
        bytes[..8].copy_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.option.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.kind.to_be_bytes());
        bytes[16..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// The bytes are not a header, or its length is too large.
    pub fn decode(bytes: &[u8]) -> Result<OptionReplyHeader, ProtocolError> {
        let mut cursor = Cursor::new("a reply to an option", bytes);
        cursor.magic64(OPTION_REPLY_MAGIC)?;
        let (option, kind, length) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        cursor.end()?;
        limit("bytes of a reply to an option", length.into(), OPTION_BYTES_MAX.into())?;
        Ok(OptionReplyHeader { option, kind, length })
    }
}

/// A reply to an option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionReply {
    /// Success.
    Ack,
    /// The name of an export.
    Server(String),
    /// Size in bytes and [`transmission_flags`](super::transmission_flags) of an export.
    Export {
        /// Size in bytes.
        size: u64,
        /// Capabilities of the export.
        flags: u16,
    },
    /// The canonical name of an export.
    Name(String),
    /// Description of an export, for people.
    Description(String),
    /// Limits on requests, in bytes.
    BlockSize {
        /// Offsets and lengths must be multiples of this.
        least: u32,
        /// Offsets and lengths should be multiples of this.
        preferred: u32,
        /// Maximum bytes of a request.
        most: u32,
    },
    /// Other information about an export.
    OtherInfo(u16),
    /// A metadata context.
    MetaContext {
        /// Number of the metadata context in replies to BLOCK_STATUS.
        id: u32,
        /// Name of the metadata context.
        name: String,
    },
    /// The option was refused.
    Error {
        /// Number of the error, one of [`option_replies`].
        kind: u32,
        /// Message for people.
        message: String,
    },
    /// Another type.
    Other(u32),
}

impl OptionReply {
    /// Returns an error with a message.
    pub fn error(kind: u32, message: impl Into<String>) -> OptionReply {
        OptionReply::Error { kind, message: message.into() }
    }

    /// Returns the whole reply to `option`, with its header.
    pub fn encode(&self, option: u32) -> Vec<u8> {
        let mut data = Vec::new();
        let put_info = |data: &mut Vec<u8>, info: u16| data.extend_from_slice(&info.to_be_bytes());
        let kind = match self {
            OptionReply::Ack => option_replies::ACK,
            OptionReply::Server(name) => {
                put_text(&mut data, name);
                option_replies::SERVER
            }
            OptionReply::Export { size, flags } => {
                put_info(&mut data, infos::EXPORT);
                data.extend_from_slice(&size.to_be_bytes());
                data.extend_from_slice(&flags.to_be_bytes());
                option_replies::INFO
            }
            OptionReply::Name(text) => {
                put_info(&mut data, infos::NAME);
                data.extend_from_slice(text.as_bytes());
                option_replies::INFO
            }
            OptionReply::Description(text) => {
                put_info(&mut data, infos::DESCRIPTION);
                data.extend_from_slice(text.as_bytes());
                option_replies::INFO
            }
            OptionReply::BlockSize { least, preferred, most } => {
                put_info(&mut data, infos::BLOCK_SIZE);
                for bytes in [least, preferred, most] {
                    data.extend_from_slice(&bytes.to_be_bytes());
                }
                option_replies::INFO
            }
            OptionReply::OtherInfo(info) => {
                put_info(&mut data, *info);
                option_replies::INFO
            }
            OptionReply::MetaContext { id, name } => {
                data.extend_from_slice(&id.to_be_bytes());
                data.extend_from_slice(name.as_bytes());
                option_replies::META_CONTEXT
            }
            OptionReply::Error { kind, message } => {
                data.extend_from_slice(message.as_bytes());
                *kind
            }
            OptionReply::Other(kind) => *kind,
        };
        let header = OptionReplyHeader { option, kind, length: data.len() as u32 };
        [&header.encode()[..], &data].concat()
    }

    /// Reads the `data` of a reply of type `kind`.
    ///
    /// # Errors
    /// The data does not fit the type.
    pub fn decode(kind: u32, data: &[u8]) -> Result<OptionReply, ProtocolError> {
        let mut cursor = Cursor::new("a reply to an option", data);
        let reply = match kind {
            option_replies::ACK => OptionReply::Ack,
            option_replies::SERVER => {
                let name = cursor.counted_text()?;
                // The rest is server-specific.
                cursor.rest();
                OptionReply::Server(name)
            }
            option_replies::INFO => decode_info(&mut cursor)?,
            option_replies::META_CONTEXT => {
                OptionReply::MetaContext { id: cursor.u32()?, name: cursor.rest_text()? }
            }
            kind if kind & option_replies::ERROR != 0 => {
                let message = String::from_utf8_lossy(cursor.rest()).into_owned();
                OptionReply::Error { kind, message }
            }
            kind => return Ok(OptionReply::Other(kind)),
        };
        cursor.end()?;
        Ok(reply)
    }
}

fn decode_info(cursor: &mut Cursor<'_>) -> Result<OptionReply, ProtocolError> {
    Ok(match cursor.u16()? {
        infos::EXPORT => OptionReply::Export { size: cursor.u64()?, flags: cursor.u16()? },
        infos::NAME => OptionReply::Name(cursor.rest_text()?),
        infos::DESCRIPTION => OptionReply::Description(cursor.rest_text()?),
        infos::BLOCK_SIZE => OptionReply::BlockSize {
            least: cursor.u32()?,
            preferred: cursor.u32()?,
            most: cursor.u32()?,
        },
        other => {
            cursor.rest();
            OptionReply::OtherInfo(other)
        }
    })
}
