//! Cursor that reads a message from the front.

use super::constants::NAME_BYTES_MAX;
use super::error::ProtocolError;

/// The rest of a message.
pub(super) struct Cursor<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Returns a cursor over the message `bytes`; `what` is its name in errors.
    pub fn new(what: &'static str, bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { what, rest: bytes }
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], ProtocolError> {
        let short = ProtocolError::TooShort { what: self.what };
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        let short = ProtocolError::TooShort { what: self.what };
        self.bytes(N)?.try_into().map_err(|_| short)
    }

    pub fn u16(&mut self) -> Result<u16, ProtocolError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, ProtocolError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, ProtocolError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub fn magic32(&mut self, magic: u32) -> Result<(), ProtocolError> {
        match self.u32()? {
            found if found == magic => Ok(()),
            found => Err(ProtocolError::Magic { what: self.what, found: u64::from(found) }),
        }
    }

    pub fn magic64(&mut self, magic: u64) -> Result<(), ProtocolError> {
        match self.u64()? {
            found if found == magic => Ok(()),
            found => Err(ProtocolError::Magic { what: self.what, found }),
        }
    }

    /// Reads text of `length` bytes.
    pub fn text(&mut self, length: u32) -> Result<String, ProtocolError> {
        limit("bytes of a name", length.into(), NAME_BYTES_MAX.into())?;
        let bytes = self.bytes(length as usize)?;
        let text = std::str::from_utf8(bytes);
        text.map(String::from).map_err(|_| ProtocolError::NotText { what: self.what })
    }

    /// Reads text after its length.
    pub fn counted_text(&mut self) -> Result<String, ProtocolError> {
        let length = self.u32()?;
        self.text(length)
    }

    /// Reads the rest as text.
    pub fn rest_text(&mut self) -> Result<String, ProtocolError> {
        self.text(u32::try_from(self.rest.len()).unwrap_or(u32::MAX))
    }

    /// Reads the rest.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Returns the number of bytes left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Checks that the cursor has reached the end.
    pub fn end(self) -> Result<(), ProtocolError> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(ProtocolError::TooLong { what: self.what, bytes }),
        }
    }
}

/// Checks that `found` is at most `most`.
pub(super) fn limit(what: &'static str, found: u64, most: u64) -> Result<(), ProtocolError> {
    if found <= most { Ok(()) } else { Err(ProtocolError::Limit { what, found, most }) }
}

/// Appends text after its length.
pub(super) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&(text.len() as u32).to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
}
