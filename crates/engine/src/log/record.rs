//! A log record: its format in the buffer and on storage.
//!
//! ```text
//!  byte  0  length u32     of the whole record: a multiple of 8, at least 32
//!        4  checksum u32   of the bytes from 8 to the end, mixed with LSN and store id
//!        8  lag u32        start LSN less the durable LSN when it was appended; 2³²−1 if more
//!       12  kind u8        whatever the owner of the body says
//!       13  flags u8       0
//!       14  padding u16    bytes of zeros at the end, below 8
//!       16  transaction u64
//!       24  prev u64       LSN that the owner chains records with; 0 for none
//!       32  body, then padding
//! ```
//!
//! Numbers are little-endian. The checksum is the low half of XXH3-64, combined with 32 bits drawn
//! from LSN and store id: a record is valid only where it was appended, in the log it was appended
//! to. So the old bytes of a recycled segment never pass (rule 4), and the hash of a body needs no
//! seed, which XXH3 computes faster.

use millpond_base::Lsn;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Bytes of a record's header.
pub(super) const HEADER: usize = 32;

/// Records and what they are aligned to, in bytes.
const UNIT: usize = 8;

/// A record to append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// Its kind, which tells the reader how to decode the body.
    pub kind: u8,
    /// The transaction; 0 for none.
    pub tx: u64,
    /// Another record of the same owner, by its start; `Lsn(0)` for none.
    pub prev: Lsn,
    /// The body, in pieces.
    pub parts: &'a [&'a [u8]],
}

/// Where a record lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Appended {
    /// Its first byte: what [`Log::read_at`](super::Log::read_at) takes.
    pub start: Lsn,
    /// The byte behind its last: what [`Log::wait_durable`](super::Log::wait_durable) takes.
    pub end: Lsn,
}

/// What a record's header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The record's first byte.
    pub start: Lsn,
    /// The byte behind its last.
    pub end: Lsn,
    /// Its kind, which tells the reader how to decode the body.
    pub kind: u8,
    /// The transaction; 0 for none.
    pub tx: u64,
    /// What its owner chained it to; `Lsn(0)` for none.
    pub prev: Lsn,
    /// The log was durable up to here when the record was appended; `None` if that was too far
    /// back to be noted.
    pub durable: Option<Lsn>,
    pub(super) checksum: u32,
    padding: u16,
}

/// Bytes of the whole record around a body of `body` bytes.
pub(super) fn whole(body: usize) -> usize {
    (HEADER + body).next_multiple_of(UNIT)
}

/// The header of `record`, whose body has `body` bytes, without its checksum.
pub(super) fn encode(record: &Record<'_>, body: usize, lag: u64) -> [u8; HEADER] {
    let length = whole(body);
    debug_assert!(u32::try_from(length).is_ok(), "a record has less than 4 GiB");
    let padding = (length - HEADER - body) as u16;
    let mut bytes = [0; HEADER];
    bytes[0..4].copy_from_slice(&(length as u32).to_le_bytes());
    bytes[8..12].copy_from_slice(&u32::try_from(lag).unwrap_or(u32::MAX).to_le_bytes());
    bytes[12] = record.kind;
    bytes[14..16].copy_from_slice(&padding.to_le_bytes());
    bytes[16..24].copy_from_slice(&record.tx.to_le_bytes());
    bytes[24..32].copy_from_slice(&record.prev.0.to_le_bytes());
    bytes
}

fn array<const N: usize>(bytes: &[u8; HEADER], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

impl Header {
    /// Reads the header of a record at `start`; `None` if there is none, going by its looks.
    pub(super) fn decode(start: u64, bytes: &[u8; HEADER]) -> Option<Header> {
        let length = u32::from_le_bytes(array(bytes, 0));
        let padding = u16::from_le_bytes(array(bytes, 14));
        let is_plausible = length as usize >= HEADER + usize::from(padding)
            && (length as usize).is_multiple_of(UNIT)
            && usize::from(padding) < UNIT
            && bytes[13] == 0;
        if !is_plausible {
            return None;
        }
        let lag = u32::from_le_bytes(array(bytes, 8));
        let durable = match lag {
            u32::MAX => None,
            lag => Some(Lsn(start.checked_sub(lag.into())?)),
        };
        Some(Header {
            start: Lsn(start),
            end: Lsn(start.checked_add(length.into())?),
            kind: bytes[12],
            tx: u64::from_le_bytes(array(bytes, 16)),
            prev: Lsn(u64::from_le_bytes(array(bytes, 24))),
            durable,
            checksum: u32::from_le_bytes(array(bytes, 4)),
            padding,
        })
    }

    /// Bytes of the whole record.
    pub(super) fn length(&self) -> usize {
        (self.end.0 - self.start.0) as usize
    }

    /// Bytes of the body.
    pub fn body_length(&self) -> usize {
        debug_assert!(
            usize::from(self.padding) < UNIT,
            "padding is shorter than the unit of records"
        );
        debug_assert!(self.length() >= HEADER + usize::from(self.padding), "a record has a header");
        self.length() - HEADER - usize::from(self.padding)
    }

    /// Whether `bytes`, the whole record, are what was appended here.
    pub(super) fn verifies(&self, bytes: &[u8], salt: u64) -> bool {
        bytes.len() == self.length()
            && checksum(&bytes[UNIT..], &[], self.start.0, salt) == self.checksum
    }
}

/// What distinguishes the logs of stores in checksums.
pub(super) fn salt(uuid: &[u8; 16]) -> u64 {
    xxh3_64(uuid)
}

/// The checksum of a record at `start` whose bytes from 8 on are `first`, then `rest`.
#[inline]
pub(super) fn checksum(first: &[u8], rest: &[u8], start: u64, salt: u64) -> u32 {
    let hash = if rest.is_empty() {
        xxh3_64(first)
    } else {
        let mut hasher = Xxh3::new();
        hasher.update(first);
        hasher.update(rest);
        hasher.digest()
    };
    hash as u32 ^ place(start, salt)
}

/// 32 bits that hardly any two places share. Odd multipliers and shifts mix; any such would do.
#[inline]
fn place(start: u64, salt: u64) -> u32 {
    let mut x = (start ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
    (x >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_as_it_went() {
        for body in 0..40 {
            let record = Record { kind: 9, tx: 77, prev: Lsn(4104), parts: &[] };
            let bytes = encode(&record, body, 8192);
            let header = Header::decode(40_960, &bytes).unwrap();
            assert_eq!((header.kind, header.tx, header.prev), (9, 77, Lsn(4104)));
            assert_eq!(header.body_length(), body);
            assert_eq!(header.end.0 - header.start.0, whole(body) as u64);
            assert_eq!(header.durable, Some(Lsn(32_768)));
        }
        let far = encode(&Record { kind: 0, tx: 0, prev: Lsn(0), parts: &[] }, 0, u64::MAX);
        assert_eq!(Header::decode(1 << 40, &far).unwrap().durable, None);
    }

    #[test]
    fn bytes_prove_themselves_only_in_their_place_and_store() {
        let (here, salt) = (8192, salt(&[1; 16]));
        let bytes: Vec<u8> = (0..600).map(|i| i as u8).collect();
        let sum = checksum(&bytes, &[], here, salt);
        for cut in [1, 7, 240, 599] {
            assert_eq!(checksum(&bytes[..cut], &bytes[cut..], here, salt), sum, "in two pieces");
        }
        assert_ne!(checksum(&bytes, &[], here + 8, salt), sum);
        assert_ne!(checksum(&bytes, &[], here, super::salt(&[2; 16])), sum);
        assert_ne!(checksum(&bytes[..599], &[], here, salt), sum);
    }

    #[test]
    fn what_cannot_be_a_header_is_none() {
        let good = encode(&Record { kind: 1, tx: 1, prev: Lsn(0), parts: &[] }, 5, 100);
        assert!(Header::decode(4096, &good).is_some());
        assert!(Header::decode(4096, &[0; HEADER]).is_none());
        for (at, value) in [(0, 31), (0, 33), (13, 1), (14, 8), (10, 255)] {
            let mut bad = good;
            bad[at] = value;
            assert!(Header::decode(4096, &bad).is_none(), "byte {at} is {value}");
        }
        assert!(Header::decode(u64::MAX - 7, &good).is_none());
    }
}
