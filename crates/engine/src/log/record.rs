//! A log record: its format in the buffer and on storage.
//!
//! ```text
//!  byte  0  checksum u32   of the bytes from 4 to the end, mixed with LSN and store id
//!        4  check u16      of the header behind it, mixed with LSN and store id
//!        6  kind u8        whatever the owner of the body says, plus 1, in the low five bits;
//!                          above them: 32 a transaction follows, 64 prev follows
//!        7  lag u24        start LSN less the durable LSN when it was appended, divided by 8;
//!                          2²⁴−1 if more
//!       10  varint         bytes of the body
//!           varint         transaction, if it is not 0
//!           varint         LSN that the owner chains records with, divided by 8, if it is not 0
//!           body, then zeros up to a multiple of 8
//! ```
//!
//! Numbers are little-endian; varints have seven bits to the byte, the low ones first. The checksum
//! is the low half of XXH3-64, combined with 32 bits drawn from LSN and store id. So a record is
//! valid only where it was appended, in the log it was appended to, and the old bytes of a recycled
//! segment never pass (rule 4). The hash of a body needs no seed, which XXH3 computes faster. In a
//! search for records among such bytes, the check rejects false headers, so that no checksum is
//! computed over the length that they claim.

use std::ops::Range;

use millpond_base::Lsn;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::page::varint::take_varint;

/// Length in bytes of the longest header.
pub(super) const HEADER_MAX: usize = 40;

/// Length in bytes of the shortest record.
pub(super) const RECORD_MIN: usize = 16;

/// Alignment of records, in bytes.
const UNIT: usize = 8;

/// Bytes that the checksum does not cover: its own.
pub(super) const SUM: usize = 4;

/// Offset of the check, and the range that it covers.
const CHECK: usize = 4;
const CHECKED: usize = 6;

/// Offset of the kind.
const KIND: usize = 6;

/// Offset of the lag.
const LAG: usize = 7;

/// Offset of the first number of variable length.
const NUMBERS: usize = 10;

/// The highest kind.
const KIND_MAX: u8 = 30;
const KIND_BITS: u8 = 31;
const HAS_TX: u8 = 32;
const HAS_PREV: u8 = 64;
const FLAGS: u8 = HAS_TX | HAS_PREV;

/// The lag that stands for an unknown one.
const LAG_UNKNOWN: u32 = (1 << 24) - 1;

/// A record to append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// Kind of the record, which defines how to decode the body: 30 at most.
    pub kind: u8,
    /// The transaction; 0 for none.
    pub tx: u64,
    /// Start of an earlier record of the same owner; `Lsn(0)` for none.
    pub prev: Lsn,
    /// The body, in pieces.
    pub parts: &'a [&'a [u8]],
}

/// Position of a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Appended {
    /// Position of the record's first byte, for [`Log::read_at`](super::Log::read_at).
    pub start: Lsn,
    /// Position behind the record's last byte, for [`Log::wait_durable`](super::Log::wait_durable).
    pub end: Lsn,
}

/// Content of a record's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Position of the record's first byte.
    pub start: Lsn,
    /// Position behind the record's last byte.
    pub end: Lsn,
    /// Kind of the record, which defines how to decode the body.
    pub kind: u8,
    /// The transaction; 0 for none.
    pub tx: u64,
    /// LSN that the record's owner chained it to; `Lsn(0)` for none.
    pub prev: Lsn,
    /// Durable LSN when the record was appended; `None` if that was too far back to be stored.
    pub durable: Option<Lsn>,
    pub(super) checksum: u32,
    /// Offset of the body in the record.
    body: usize,
    body_length: usize,
}

/// Lengths of a record and its parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Form {
    /// Bytes of the header.
    header: usize,
    /// Bytes of the body.
    body: usize,
}

fn varint_bytes(value: u64) -> usize {
    (value | 1).ilog2() as usize / 7 + 1
}

impl Form {
    /// Returns the lengths of `record`, whose body has `body` bytes.
    #[inline]
    pub(super) fn of(record: &Record<'_>, body: usize) -> Form {
        let tx = if record.tx == 0 { 0 } else { varint_bytes(record.tx) };
        let prev = match record.prev {
            Lsn(0) => 0,
            Lsn(prev) => varint_bytes(prev / UNIT as u64),
        };
        Form { header: NUMBERS + varint_bytes(body as u64) + tx + prev, body }
    }

    /// Returns the number of bytes of the header.
    #[inline]
    pub(super) fn header(&self) -> usize {
        self.header
    }

    /// Returns the number of bytes of the body.
    #[inline]
    pub(super) fn body(&self) -> usize {
        self.body
    }

    /// Returns the number of bytes of the whole record.
    #[inline]
    pub(super) fn whole(&self) -> usize {
        (self.header + self.body).next_multiple_of(UNIT)
    }
}

/// Encodes the header of `record` at `start`, in a log that is durable up to `durable`, without its
/// checksum. The header has the length that `form` gives; zeros follow it.
#[inline]
pub(super) fn encode(
    record: &Record<'_>,
    form: Form,
    start: u64,
    durable: u64,
    salt: u64,
) -> [u8; HEADER_MAX] {
    debug_assert!(record.kind <= KIND_MAX, "kind {} does not fit", record.kind);
    debug_assert!(record.prev.0.is_multiple_of(UNIT as u64), "a record begins at a multiple of 8");
    let lag = start.saturating_sub(durable) / UNIT as u64;
    let lag = u32::try_from(lag).unwrap_or(LAG_UNKNOWN).min(LAG_UNKNOWN);
    let mut bytes = [0; HEADER_MAX];
    bytes[LAG..NUMBERS].copy_from_slice(&lag.to_le_bytes()[..NUMBERS - LAG]);
    let mut at = NUMBERS;
    let mut put = |value: u64, at: &mut usize| {
        let mut rest = value;
        while rest >= 0x80 {
            bytes[*at] = rest as u8 | 0x80;
            rest >>= 7;
            *at += 1;
        }
        bytes[*at] = rest as u8;
        *at += 1;
    };
    put(form.body as u64, &mut at);
    let mut flags = 0;
    if record.tx != 0 {
        flags = HAS_TX;
        put(record.tx, &mut at);
    }
    if record.prev != Lsn(0) {
        flags |= HAS_PREV;
        put(record.prev.0 / UNIT as u64, &mut at);
    }
    debug_assert_eq!(at, form.header, "the header is as long as was said");
    bytes[KIND] = (record.kind + 1) & KIND_BITS | flags;
    let check = check_of(&bytes, at, start, salt);
    bytes[CHECK..CHECKED].copy_from_slice(&check.to_le_bytes());
    bytes
}

/// Returns the 16-bit check of a header's first `length` bytes, its position and its log. Check and
/// checksum themselves are not covered; behind the header are zeros.
#[inline]
fn check_of(header: &[u8; HEADER_MAX], length: usize, start: u64, salt: u64) -> u16 {
    let mut x = start ^ salt;
    let (words, _) = header.as_chunks::<8>();
    for (at, word) in words.iter().take(length.div_ceil(8)).enumerate() {
        let word = u64::from_le_bytes(*word);
        let word = if at == 0 { word >> (8 * CHECKED) } else { word };
        x = (x ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x ^= x >> 29;
    }
    (x.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 48) as u16
}

impl Header {
    /// Decodes the header of a record at `start` from the record's first `bytes`: [`HEADER_MAX`] of
    /// them, if there are as many. Returns `None` if they do not look like a header or do not pass
    /// its check.
    pub(super) fn decode(start: u64, bytes: &[u8], salt: u64) -> Option<Header> {
        let (fixed, mut rest) = bytes.split_first_chunk::<NUMBERS>()?;
        let [a, b, c, d, check_low, check_high, kind, lag @ ..] = *fixed;
        let flags = kind & !KIND_BITS;
        let kind = (kind & KIND_BITS).checked_sub(1)?;
        let body_length = usize::try_from(take_varint(&mut rest)?).ok()?;
        let tx = if flags & HAS_TX == 0 { 0 } else { take_varint(&mut rest)? };
        let prev = match flags & HAS_PREV {
            0 => 0,
            _ => take_varint(&mut rest)?.checked_mul(UNIT as u64)?,
        };
        if flags & !FLAGS != 0 {
            return None;
        }
        let mut header = [0; HEADER_MAX];
        let body = bytes.len() - rest.len();
        header.get_mut(..body)?.copy_from_slice(bytes.get(..body)?);
        if check_of(&header, body, start, salt) != u16::from_le_bytes([check_low, check_high]) {
            return None;
        }
        let durable = match u32::from_le_bytes([lag[0], lag[1], lag[2], 0]) {
            LAG_UNKNOWN => None,
            lag => Some(Lsn(start.checked_sub(u64::from(lag) * UNIT as u64)?)),
        };
        let length = body.checked_add(body_length)?.checked_next_multiple_of(UNIT)?;
        let end = Lsn(start.checked_add(length as u64)?);
        let checksum = u32::from_le_bytes([a, b, c, d]);
        let (start, prev) = (Lsn(start), Lsn(prev));
        Some(Header { start, end, kind, tx, prev, durable, checksum, body, body_length })
    }

    /// Returns the number of bytes of the whole record.
    pub(super) fn length(&self) -> usize {
        (self.end.0 - self.start.0) as usize
    }

    /// Returns the number of bytes of the body.
    pub fn body_length(&self) -> usize {
        self.body_length
    }

    /// Returns the range of the body in the record.
    pub(super) fn body(&self) -> Range<usize> {
        debug_assert!(self.body + self.body_length <= self.length(), "the body is in the record");
        self.body..self.body + self.body_length
    }

    /// Returns whether `bytes`, the whole record, were appended at this position, by their
    /// checksum.
    pub(super) fn verifies(&self, bytes: &[u8], salt: u64) -> bool {
        bytes.len() == self.length()
            && checksum(&bytes[SUM..], &[], self.start.0, salt) == self.checksum
    }
}

/// Returns the number that makes checksums differ between the logs of different stores.
pub(super) fn salt(uuid: &[u8; 16]) -> u64 {
    xxh3_64(uuid)
}

/// Returns the checksum of a record at `start` whose bytes from 4 on are `first`, then `rest`.
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

/// Returns 32 bits that hardly any two places share. Odd multipliers and shifts mix; any such would
/// do.
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

    fn record(kind: u8, tx: u64, prev: u64) -> Record<'static> {
        Record { kind, tx, prev: Lsn(prev), parts: &[] }
    }

    #[test]
    fn a_header_comes_back_as_it_went() {
        let mut random = fastrand::Rng::with_seed(11);
        for round in 0..20_000 {
            let start = (random.u64(..) >> random.u32(1..50)) / 8 * 8;
            let prev = if random.bool() { 0 } else { random.u64(..=start) / 8 * 8 };
            let tx = if random.bool() { 0 } else { random.u64(..) >> random.u32(..64) };
            let record = record(random.u8(..=KIND_MAX), tx, prev);
            let body = random.usize(..1 << 22) >> random.u32(..22);
            let durable = start.saturating_sub((random.u64(..) >> random.u32(20..64)) / 8 * 8);
            let form = Form::of(&record, body);
            assert!(form.whole() >= RECORD_MIN && form.header() <= HEADER_MAX, "{round}: {form:?}");
            let bytes = encode(&record, form, start, durable, 7);
            let known = &bytes[..form.header().max(random.usize(..=HEADER_MAX))];
            let header = Header::decode(start, known, 7).unwrap();
            assert_eq!((header.kind, header.tx, header.prev), (record.kind, tx, Lsn(prev)));
            assert_eq!((header.body_length(), header.body().start), (body, form.header()));
            assert_eq!(header.length(), form.whole(), "{round}");
            let is_far = (start - durable) / 8 >= u64::from(LAG_UNKNOWN);
            assert_eq!(header.durable, (!is_far).then_some(Lsn(durable)), "{round}");
            for cut in 0..form.header() {
                assert!(Header::decode(start, &bytes[..cut], 7).is_none(), "{round}: {cut}");
            }
        }
    }

    #[test]
    fn a_durable_end_of_128_mebibytes_before_counts_as_unknown_and_a_nearer_one_is_known() {
        let (record, start) = (record(1, 1, 8), 1 << 40);
        let read = |durable| {
            let bytes = encode(&record, Form::of(&record, 5), start, durable, 9);
            Header::decode(start, &bytes, 9).unwrap().durable
        };
        let bound = (128 << 20) - UNIT as u64;
        assert_eq!(read(start - bound + 8), Some(Lsn(start - bound + 8)));
        assert_eq!(read(start - bound), None);
        assert_eq!(read(0), None);
    }

    #[test]
    fn a_commit_is_short() {
        let form = Form::of(&record(4, 1 << 20, 0), 0);
        assert_eq!((form.header(), form.whole()), (14, 16));
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
        let record = record(1, 1, 8);
        let good = encode(&record, Form::of(&record, 5), 4096, 4096, 9);
        let decode = |start, bytes: &[u8]| Header::decode(start, bytes, 9);
        assert!(decode(4096, &good).is_some());
        assert!(decode(4096, &[0; HEADER_MAX]).is_none());
        assert!(decode(4096, &[0xff; HEADER_MAX]).is_none());
        for bit in 8 * CHECK..8 * Form::of(&record, 5).header() {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(4096, &bad).is_none(), "bit {bit}");
        }
        assert!(decode(u64::MAX - 7, &good).is_none());
        assert!(decode(8192, &good).is_none(), "it was appended elsewhere");
        assert!(Header::decode(4096, &good, 8).is_none(), "it was appended to another log");
    }

    #[test]
    fn hardly_anything_looks_like_a_header() {
        let mut random = fastrand::Rng::with_seed(12);
        let mut found = 0;
        for at in 0..1 << 18 {
            let mut bytes = [0; HEADER_MAX];
            random.fill(&mut bytes);
            found += u32::from(Header::decode(at * 8, &bytes, 1).is_some());
        }
        assert!(found < 20, "{found} of 2^18: one in 2^16 is what 16 bits let pass");
    }
}
