//! A batch of requests, and the replies still missing.

use std::ops::Range;

use super::error::LinkError;
use crate::protocol::Command;

/// Buffer of a request's bytes.
#[derive(Debug)]
pub(super) enum Bytes<'b> {
    None,
    /// To be filled.
    Read(&'b mut [u8]),
    /// To be sent.
    Write(&'b [u8]),
}

/// One request to a server.
#[derive(Debug)]
pub(super) struct Transfer<'b> {
    pub command: Command,
    pub flags: u16,
    /// Number of the reason, for the cookie.
    pub reason: u64,
    pub offset: u64,
    pub length: u32,
    pub bytes: Bytes<'b>,
    /// Index of the caller's request that it is a part of.
    pub of: usize,
    /// The protocol's error number, or 0 if it has not failed.
    pub error: u32,
    /// Bytes of a READ that have arrived.
    pub seen: Coverage,
}

impl<'b> Transfer<'b> {
    /// Returns a request without data.
    pub fn bare(command: Command, flags: u16, offset: u64, length: u32) -> Transfer<'b> {
        let (bytes, seen) = (Bytes::None, Coverage::default());
        Transfer { command, flags, reason: 0, offset, length, bytes, of: 0, error: 0, seen }
    }

    /// Returns the buffer for the data of the server at `offset`. Fails if it was filled before.
    pub fn part(&mut self, offset: u64, length: u64) -> Result<&mut [u8], LinkError> {
        let from = offset.checked_sub(self.offset);
        let range = from.and_then(|from| Some(from..from.checked_add(length)?));
        let range = range.ok_or(LinkError::Reply("has bytes that were not asked for"))?;
        let Bytes::Read(bytes) = &mut self.bytes else {
            return Err(LinkError::Reply("has bytes, and none were asked for"));
        };
        let place = bytes.get_mut(range.start as usize..range.end as usize);
        let place = place.ok_or(LinkError::Reply("has bytes that were not asked for"))?;
        if !self.seen.add(range) {
            return Err(LinkError::Reply("has the same bytes twice"));
        }
        Ok(place)
    }

    /// Checks that an ended reply is complete.
    pub fn check_end(&self) -> Result<(), LinkError> {
        match &self.bytes {
            Bytes::Read(bytes) if self.error == 0 && self.seen.bytes() != bytes.len() as u64 => {
                Err(LinkError::Reply("lacks bytes that were asked for"))
            }
            _ => Ok(()),
        }
    }
}

/// Ranges that do not overlap.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    ranges: Vec<Range<u64>>,
}

impl Coverage {
    /// Adds a range; `false` if it overlaps an earlier one.
    pub fn add(&mut self, range: Range<u64>) -> bool {
        if range.is_empty() {
            return true;
        }
        let at = self.ranges.partition_point(|other| other.end <= range.start);
        if self.ranges.get(at).is_some_and(|other| other.start < range.end) {
            return false;
        }
        self.ranges.insert(at, range);
        true
    }

    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_come_twice_are_noticed() {
        let mut seen = Coverage::default();
        assert!(seen.add(10..20) && seen.add(0..10) && seen.add(30..40) && seen.add(5..5));
        for twice in [0..1, 19..20, 5..15, 25..31, 39..50, 0..100] {
            assert!(!seen.add(twice));
        }
        assert!(seen.add(20..30));
        assert_eq!(seen.bytes(), 40);
    }

    #[test]
    fn a_reply_with_other_bytes_than_were_asked_for_is_an_error() {
        let mut room = [0; 8];
        let mut read = Transfer::bare(Command::Read, 0, 100, 8);
        read.bytes = Bytes::Read(&mut room);
        for (offset, length) in [(99, 1), (108, 1), (104, 5), (u64::MAX, 2), (0, u64::MAX)] {
            assert!(read.part(offset, length).is_err(), "{offset} {length}");
        }
        read.part(100, 4).unwrap();
        assert!(read.check_end().is_err());
        read.part(104, 4).unwrap();
        assert!(read.check_end().is_ok() && read.part(100, 1).is_err());
        assert!(Transfer::bare(Command::Flush, 0, 0, 0).part(0, 1).is_err());
    }
}
