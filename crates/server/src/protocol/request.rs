//! Requests.

use super::constants::REQUEST_MAGIC;
use super::cursor::Cursor;
use super::error::ProtocolError;

/// Bytes of a request without the data of a WRITE.
pub const REQUEST_BYTES: usize = 28;

/// Operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Reads bytes.
    Read,
    /// Writes the bytes that follow.
    Write,
    /// Ends the connection; there is no reply.
    Disconnect,
    /// Makes all replied writes durable.
    Flush,
    /// Discards the bytes.
    Trim,
    /// Announces that the bytes will be read.
    Cache,
    /// Writes zeros.
    WriteZeroes,
    /// Returns extents of metadata contexts.
    BlockStatus,
    /// Another number.
    Unknown(u16),
}

impl Command {
    /// Returns the command with this number.
    pub fn of(number: u16) -> Command {
        match number {
            0 => Command::Read,
            1 => Command::Write,
            2 => Command::Disconnect,
            3 => Command::Flush,
            4 => Command::Trim,
            5 => Command::Cache,
            6 => Command::WriteZeroes,
            7 => Command::BlockStatus,
            number => Command::Unknown(number),
        }
    }

    /// Returns the command's number.
    pub fn number(self) -> u16 {
        match self {
            Command::Read => 0,
            Command::Write => 1,
            Command::Disconnect => 2,
            Command::Flush => 3,
            Command::Trim => 4,
            Command::Cache => 5,
            Command::WriteZeroes => 6,
            Command::BlockStatus => 7,
            Command::Unknown(number) => number,
        }
    }
}

/// A request.
///
/// ```text
/// offset size
///      0    4  magic
///      4    2  flags
///      6    2  command
///      8    8  cookie
///     16    8  offset
///     24    4  length; of a WRITE, of the data that follow, too
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// [`command_flags`](super::command_flags).
    pub flags: u16,
    /// The operation.
    pub command: Command,
    /// The client's cookie, which replies carry.
    pub cookie: u64,
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes; not checked.
    pub length: u32,
}

impl Request {
    /// Returns the request as bytes.
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.number().to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// Reads a request.
    ///
    /// # Errors
    /// The bytes are not a request.
    pub fn decode(bytes: &[u8]) -> Result<Request, ProtocolError> {
        let mut cursor = Cursor::new("a request", bytes);
        cursor.magic32(REQUEST_MAGIC)?;
        let (flags, command) = (cursor.u16()?, Command::of(cursor.u16()?));
        let (cookie, offset, length) = (cursor.u64()?, cursor.u64()?, cursor.u32()?);
        cursor.end()?;
        Ok(Request { flags, command, cookie, offset, length })
    }
}
