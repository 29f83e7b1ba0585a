//! Replies to requests: simple ones, and chunks of structured ones.

use super::constants::{
    CHUNK_MAGIC, EXTENTS_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, SIMPLE_REPLY_MAGIC, chunks,
};
use super::cursor::{Cursor, limit};
use super::error::ProtocolError;

/// A simple reply, without the data of a READ.
///
/// ```text
/// offset size
///      0    4  magic
///      4    4  error, 0: none
///      8    8  cookie
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimpleHeader {
    /// [`errors`](super::errors), or 0.
    pub error: u32,
    /// Cookie of the request.
    pub cookie: u64,
}

impl SimpleHeader {
    /// Bytes of a header.
    pub const BYTES: usize = 16;

    /// Returns the header as bytes.
    pub fn encode(self) -> [u8; SimpleHeader::BYTES] {
        let mut bytes = [0; SimpleHeader::BYTES];
        bytes[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.error.to_be_bytes());
        bytes[8..].copy_from_slice(&self.cookie.to_be_bytes());
        bytes
    }
}

/// Header before the data of a chunk.
///
/// ```text
/// offset size
///      0    4  magic
///      4    2  flags
///      6    2  type
///      8    8  cookie
///     16    4  bytes of data
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkHeader {
    /// [`chunks::FLAG_DONE`], or 0.
    pub flags: u16,
    /// [`chunks`], or another number.
    pub kind: u16,
    /// Cookie of the request.
    pub cookie: u64,
    /// Bytes of data that follow.
    pub length: u32,
}

impl ChunkHeader {
    /// Bytes of a header.
    pub const BYTES: usize = 20;

    /// Maximum bytes of data of any type: the data of a READ with its offset, or the longest list
    /// of extents.
    pub const DATA_MAX: u32 = PAYLOAD_BYTES_MAX + 4096;

    /// Returns the header as bytes.
    pub fn encode(self) -> [u8; ChunkHeader::BYTES] {
        let mut bytes = [0; ChunkHeader::BYTES];
        bytes[..4].copy_from_slice(&CHUNK_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.kind.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// Returns `true` for the last chunk of a reply.
    pub fn is_last(&self) -> bool {
        self.flags & chunks::FLAG_DONE != 0
    }
}

/// The beginning of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyHeader {
    /// A simple reply; the data of a READ follows, unless it failed.
    Simple(SimpleHeader),
    /// A chunk.
    Chunk(ChunkHeader),
}

impl ReplyHeader {
    /// Bytes that [`ReplyHeader::decode`] needs to find the header's length.
    pub const BYTES_MIN: usize = SimpleHeader::BYTES;

    /// Returns the length in bytes of the header that begins with `bytes`.
    ///
    /// # Errors
    /// The bytes are not a header.
    pub fn length(bytes: &[u8]) -> Result<usize, ProtocolError> {
        match Cursor::new("a reply", bytes).u32()? {
            SIMPLE_REPLY_MAGIC => Ok(SimpleHeader::BYTES),
            CHUNK_MAGIC => Ok(ChunkHeader::BYTES),
            found => Err(ProtocolError::Magic { what: "a reply", found: found.into() }),
        }
    }

    /// Reads a header.
    ///
    /// # Errors
    /// The bytes are not a header, or its length is too large.
    pub fn decode(bytes: &[u8]) -> Result<ReplyHeader, ProtocolError> {
        let is_simple = ReplyHeader::length(bytes)? == SimpleHeader::BYTES;
        let mut cursor = Cursor::new("a reply", bytes);
        cursor.u32()?;
        if is_simple {
            let (error, cookie) = (cursor.u32()?, cursor.u64()?);
            cursor.end()?;
            return Ok(ReplyHeader::Simple(SimpleHeader { error, cookie }));
        }
        let (flags, kind) = (cursor.u16()?, cursor.u16()?);
        let (cookie, length) = (cursor.u64()?, cursor.u32()?);
        cursor.end()?;
        limit("bytes of a chunk", length.into(), ChunkHeader::DATA_MAX.into())?;
        Ok(ReplyHeader::Chunk(ChunkHeader { flags, kind, cookie, length }))
    }
}

/// A range with the same status throughout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Length in bytes.
    pub length: u32,
    /// Status in the metadata context.
    pub status: u32,
}

/// The data of a chunk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Chunk<'a> {
    /// No data.
    None,
    /// Bytes that were read.
    Data {
        /// Offset of the bytes.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Zeros.
    Hole {
        /// Offset of the hole.
        offset: u64,
        /// Length of the hole.
        length: u32,
    },
    /// Extents, from the request's offset on.
    BlockStatus {
        /// Number of the metadata context.
        context: u32,
        /// The extents.
        extents: Vec<Extent>,
    },
    /// The request failed.
    Error {
        /// [`errors`](super::errors).
        error: u32,
        /// Message for people.
        message: String,
        /// Offset of the error, if known.
        offset: Option<u64>,
    },
    /// Another type; its data is ignored.
    Other(u16),
}

impl<'a> Chunk<'a> {
    /// Returns the chunk's type.
    pub fn kind(&self) -> u16 {
        match self {
            Chunk::None => chunks::NONE,
            Chunk::Data { .. } => chunks::OFFSET_DATA,
            Chunk::Hole { .. } => chunks::OFFSET_HOLE,
            Chunk::BlockStatus { .. } => chunks::BLOCK_STATUS,
            Chunk::Error { offset: None, .. } => chunks::ERROR,
            Chunk::Error { offset: Some(_), .. } => chunks::ERROR_OFFSET,
            Chunk::Other(kind) => *kind,
        }
    }

    /// Returns header and data of the chunk. For [`Chunk::Data`] the bytes are left out; the caller
    /// sends them next.
    pub fn encode(&self, cookie: u64, is_last: bool) -> Vec<u8> {
        let (mut data, mut more) = (Vec::new(), 0);
        match self {
            Chunk::None | Chunk::Other(_) => {}
            Chunk::Data { offset, bytes } => {
                data.extend_from_slice(&offset.to_be_bytes());
                more = bytes.len();
            }
            Chunk::Hole { offset, length } => {
                data.extend_from_slice(&offset.to_be_bytes());
                data.extend_from_slice(&length.to_be_bytes());
            }
            Chunk::BlockStatus { context, extents } => {
                data.extend_from_slice(&context.to_be_bytes());
                for extent in extents {
                    data.extend_from_slice(&extent.length.to_be_bytes());
                    data.extend_from_slice(&extent.status.to_be_bytes());
                }
            }
            Chunk::Error { error, message, offset } => {
                data.extend_from_slice(&error.to_be_bytes());
                data.extend_from_slice(&(message.len() as u16).to_be_bytes());
                data.extend_from_slice(message.as_bytes());
                offset.iter().for_each(|at| data.extend_from_slice(&at.to_be_bytes()));
            }
        }
        let flags = if is_last { chunks::FLAG_DONE } else { 0 };
        let length = (data.len() + more) as u32;
        let header = ChunkHeader { flags, kind: self.kind(), cookie, length };
        [&header.encode()[..], &data].concat()
    }

    /// Reads the `data` of a chunk of type `kind`.
    ///
    /// # Errors
    /// The data does not fit the type.
    pub fn decode(kind: u16, data: &'a [u8]) -> Result<Chunk<'a>, ProtocolError> {
        let mut cursor = Cursor::new("a chunk", data);
        let chunk = match kind {
            chunks::NONE => Chunk::None,
            chunks::OFFSET_DATA => {
                let offset = cursor.u64()?;
                let bytes = cursor.rest();
                if bytes.is_empty() {
                    return Err(ProtocolError::TooShort { what: "a chunk" });
                }
                Chunk::Data { offset, bytes }
            }
            chunks::OFFSET_HOLE => Chunk::Hole { offset: cursor.u64()?, length: cursor.u32()? },
            chunks::BLOCK_STATUS => {
                let context = cursor.u32()?;
                let count = cursor.left() / 8;
                limit("extents", count as u64, EXTENTS_MAX.into())?;
                let extent = |_| Ok(Extent { length: cursor.u32()?, status: cursor.u32()? });
                let extents = (0..count).map(extent).collect::<Result<_, ProtocolError>>()?;
                Chunk::BlockStatus { context, extents }
            }
            kind if kind & chunks::ERROR_BIT != 0 => {
                let error = cursor.u32()?;
                let length = cursor.u16()?;
                limit("bytes of a message", length.into(), NAME_BYTES_MAX.into())?;
                let message = cursor.bytes(length.into())?;
                let message = String::from_utf8_lossy(message).into_owned();
                let has_offset = kind == chunks::ERROR_OFFSET;
                let offset = has_offset.then(|| cursor.u64()).transpose()?;
                if !has_offset {
                    // Unknown errors may have more data.
                    cursor.rest();
                }
                Chunk::Error { error, message, offset }
            }
            kind => return Ok(Chunk::Other(kind)),
        };
        cursor.end()?;
        Ok(chunk)
    }
}
