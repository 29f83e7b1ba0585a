//! Parts of requests in both kinds of tiers: read from the cache or from below, and possibly kept.
//! Also the growth of the cache's file.

use std::io::IoSlice;
use std::ops::{Range, RangeInclusive};

use millpond_device::{Device, DeviceError, ReadRequest, WriteRequest};

use crate::cache::{Fill, Found};

/// Slots written together: one system call takes no more buffers (`IOV_MAX`).
const TOGETHER: usize = 256;
/// Bytes by which a cache's file grows: an eighth, clamped to this range.
const GROWTH: RangeInclusive<u64> = 8 << 20..=64 << 20;

/// Grows a cache's file to `end`, the end of a slot, and further up to `most`, by whole slots for
/// direct I/O. One thread at a time may call this.
pub(super) fn grow_for_slot(
    fast: &dyn Device,
    slot_bytes: u64,
    end: u64,
    most: u64,
) -> Result<(), DeviceError> {
    let eighth = (fast.length() / 8).clamp(*GROWTH.start(), *GROWTH.end());
    let ahead = (end + eighth.next_multiple_of(slot_bytes)).min(most);
    match fast.grow(ahead.max(end)) {
        Err(error) if error.is_disk_full() => fast.grow(end),
        grown => grown,
    }
}

/// A part of a request that is read from the cache.
pub(super) struct FromCache {
    pub request: usize,
    pub part: usize,
    pub found: Found,
}

/// A part of a request whose copy is to be written to the cache.
pub(super) struct ToCache {
    pub request: usize,
    pub part: usize,
    pub range: Range<u64>,
    pub fill: Fill,
}

/// Writes copies to slots of `slot_bytes` bytes, in ascending order, adjacent ones together.
/// Returns the length and the outcome of each run of adjacent slots.
pub(super) fn write_slots(
    fast: &dyn Device,
    slot_bytes: u32,
    offset_of: impl Fn(u32) -> u64,
    copies: &[(u32, &[u8])],
) -> Vec<(usize, Result<(), DeviceError>)> {
    let parts: Vec<IoSlice<'_>> = copies.iter().map(|(_, bytes)| IoSlice::new(bytes)).collect();
    let is_next = |one: &(u32, &[u8]), other: &(u32, &[u8])| {
        one.0.checked_add(1) == Some(other.0) && one.1.len() == slot_bytes as usize
    };
    let (mut requests, mut rest) = (Vec::new(), &parts[..]);
    for run in copies.chunk_by(is_next).flat_map(|run| run.chunks(TOGETHER)) {
        let (parts, others) = rest.split_at(run.len());
        rest = others;
        let slot = run.first().map_or(0, |(slot, _)| *slot);
        requests.push(WriteRequest::new(offset_of(slot), parts));
    }
    fast.write_batch(&mut requests);
    requests.into_iter().map(|request| (request.parts.len(), request.result)).collect()
}

/// Reads the parts that are below, adjacent ones together.
pub(super) fn read_below(
    below: &dyn Device,
    requests: &mut [ReadRequest<'_, '_>],
    is_below: &[Vec<bool>],
) {
    let (mut reads, mut owners) = (Vec::new(), Vec::new());
    for (at, (request, is_below)) in requests.iter_mut().zip(is_below).enumerate() {
        request.result = Ok(());
        let mut offset = request.offset;
        let (mut parts, mut left) = (&mut request.parts[..], &is_below[..]);
        while let Some(first) = left.first() {
            let count = left.iter().position(|other| other != first).unwrap_or(left.len());
            let (run, rest) = parts.split_at_mut(count);
            let length: u64 = run.iter().map(|part| part.len() as u64).sum();
            if *first {
                reads.push(ReadRequest::new(offset, run));
                owners.push(at);
            }
            offset += length;
            (parts, left) = (rest, left.get(count..).unwrap_or(&[]));
        }
    }
    if reads.is_empty() {
        return;
    }
    below.read_batch(&mut reads);
    let results: Vec<_> = reads.into_iter().map(|read| read.result).collect();
    for (at, result) in owners.into_iter().zip(results) {
        if let Some(request) = requests.get_mut(at) {
            request.result = std::mem::replace(&mut request.result, Ok(())).and(result);
        }
    }
}
