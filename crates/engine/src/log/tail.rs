//! Finds the end of a log when it is opened.
//!
//! Records are walked over from a known position to the first that is not whole. There may be more
//! records behind it, for two reasons. The durable LSN in each record, up to which the log was
//! durable when the record was appended, tells the two apart (rule 5):
//!
//! - A crash tore the last writes. The whole records behind the hole were never acknowledged, since
//!   none of them was written after the hole had become durable. They are cut off and overwritten
//!   (rule 10): otherwise they would be valid again as soon as new records reach up to them. So are
//!   torn records: a torn rewrite of the same bytes could make them whole.
//! - A record behind the hole states that the log had been durable beyond the hole. Then
//!   acknowledged records have been lost, and no crash does that.
//!
//! A record of a segment's former life passes for a whole one by chance, once in 2³². A log has
//! tens of thousands of such records, so one open in fifty thousand would call a sound log damaged.
//! So one record is no proof if the bytes behind it look like a record and are not whole, as in a
//! former life. Two in a row are a proof. So is one that is chained to a record which its segment's
//! former life cannot have known.

use std::sync::Arc;

use millpond_base::Lsn;
use millpond_device::AlignedBuffer;

use super::error::LogError;
use super::options::{BLOCK, BUFFER_MAX};
use super::record::HEADER_MAX;
use super::record::Header;
use super::segments::Segments;
use super::window::AHEAD;
use super::window::Window;

/// End of an opened log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tail {
    /// End of the last whole record, where the next one begins.
    pub end: Lsn,
    /// The part that was cut off, if any.
    pub cut: Option<Cut>,
}

/// Records behind the end that were never acknowledged as durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// Number of whole records cut off.
    pub records: u64,
    /// End of the last whole record; the log's end if there is none.
    pub until: Lsn,
}

/// Guarantee about the position from which a log is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Begin {
    /// A durable record begins there.
    Record,
    /// A durable record begins there, or it is the log's end.
    RecordOrEnd,
}

/// Walks from `start` to the end, and clears the bytes behind it: at most `buffer_bytes` of them
/// may have been in flight.
///
/// # Errors
/// If the log is damaged, does not hold `start`, or cannot be read or written.
pub(super) fn find(
    segments: &Arc<Segments>,
    start: u64,
    begin: Begin,
    salt: u64,
    buffer_bytes: usize,
) -> Result<Tail, LogError> {
    let path = || segments.device().path().to_path_buf();
    let limit = segments.end_of_run(start);
    if limit == start && !(start > 0 && segments.holds(segments.sequence(start - 1))) {
        if let Some(offset) = segments.damaged_header() {
            return Err(LogError::DamagedSegment { path: path(), offset, at: Lsn(start) });
        }
        return Err(LogError::Missing { path: path(), at: Lsn(start) });
    }
    let mut window = Window::new(segments.clone(), AHEAD, limit, salt);
    let (mut end, mut known) = (start, start);
    while let Some((header, _)) = window.record(end)? {
        end = header.end.0;
        known = known.max(header.durable.map_or(0, |lsn| lsn.0));
    }
    debug_assert!(end <= limit, "records end before the first segment that is missing");
    // The record's position is known from a synced write that came after it. Any repair needs the
    // bytes behind it.
    if end == start && begin == Begin::Record {
        return Err(LogError::NoRecord { path: path(), at: Lsn(start) });
    }
    let is_torn = limit > end && window.bytes(end, 8)?.is_some_and(|bytes| bytes != [0; 8]);
    let mut starts = Vec::new();
    let behind = behind(segments, &mut window, end, &mut |header, _| starts.push(header.start.0))?;
    debug_assert!(behind.until >= end, "what lies behind the end ends there or later");
    debug_assert!(starts.is_sorted(), "records behind the end are found in order");
    debug_assert!(starts.first().is_none_or(|first| *first > end), "they begin behind the end");
    if let Some(durable) = behind.durable.filter(|&durable| durable > end) {
        return Err(LogError::Damaged { path: path(), at: Lsn(end), durable: Lsn(durable) });
    }
    // No crash leaves such a header where the log seems to end: the contents there are unknown.
    if let Some(offset) = segments.damaged_header().filter(|_| reaches_limit(&mut window, end)) {
        return Err(LogError::DamagedSegment { path: path(), offset, at: Lsn(end) });
    }
    let headers: Vec<u64> = is_torn.then_some(end).into_iter().chain(starts.clone()).collect();
    clear_tail(segments, &headers, end, buffer_bytes)?;
    write_again(segments, known.min(end), end)?;
    // Inside a block, the bytes behind the end are zeros unless a write was in flight there. At the
    // beginning of a block there may be anything, such as a segment's former contents.
    let is_cut = !starts.is_empty() || (is_torn && !end.is_multiple_of(BLOCK));
    let until = Lsn(behind.until.max(end));
    let cut = is_cut.then_some(Cut { records: starts.len() as u64, until });
    Ok(Tail { end: Lsn(end), cut })
}

/// Zeros the bytes behind `end`: the headers of the records at `headers`, durably, and then the
/// rest.
fn clear_tail(
    segments: &Segments,
    headers: &[u64],
    end: u64,
    buffer_bytes: usize,
) -> Result<(), LogError> {
    if !headers.is_empty() {
        clear(segments, headers)?;
        segments.device().sync().map_err(LogError::Prepare)?;
    }
    wipe(segments, end, buffer_bytes)
}

/// Returns whether the record at `end`, which is not whole, may lie in a segment that has no slot.
fn reaches_limit(window: &mut Window, end: u64) -> bool {
    let limit = window.limit();
    if limit.saturating_sub(end) < HEADER_MAX as u64 {
        return true;
    }
    window.header(end).map_or(true, |header| header.is_some_and(|header| header.end.0 > limit))
}

/// Whole records behind the end.
pub(super) struct Behind {
    /// End of the last such record.
    pub(super) until: u64,
    /// Highest durable LSN in one of these records that cannot be there by chance.
    pub(super) durable: Option<u64>,
}

/// Looks for records at every place behind `end` where one could begin.
pub(super) fn behind(
    segments: &Segments,
    window: &mut Window,
    end: u64,
    visit: &mut dyn FnMut(&Header, &[u8]),
) -> Result<Behind, LogError> {
    let mut found = Behind { until: end, durable: None };
    let mut at = end + 8;
    while let Some(begin) = segments.next_held(at) {
        let limit = segments.end_of_run(begin);
        if window.limit() != limit {
            window.set_limit(limit);
        }
        at = begin;
        // The whole record that ends at `at`, if there is one, and whether it is the first in its
        // row.
        let mut before: Option<(Header, bool)> = None;
        while at < limit {
            if let Some((header, body)) = window.record(at)? {
                visit(&header, body);
                found.until = header.end.0;
                at = header.end.0;
                if let Some((first, true)) = before {
                    found.believe(&first);
                }
                if before.is_some() {
                    found.believe(&header);
                }
                before = Some((header, before.is_none()));
                continue;
            }
            if let Some((alone, true)) = before.take()
                && (is_of_this_life(segments, &alone) || window.header(at)?.is_none())
            {
                found.believe(&alone);
            }
            at = skip_zeros(window, at + 8)?;
        }
        if let Some((alone, true)) = before {
            found.believe(&alone);
        }
    }
    Ok(found)
}

/// Returns the first position from `at` on that is not the beginning of a block of zeros.
fn skip_zeros(window: &mut Window, mut at: u64) -> Result<u64, LogError> {
    static ZEROS: [u8; BLOCK as usize] = [0; BLOCK as usize];
    while at.is_multiple_of(BLOCK) && window.bytes(at, ZEROS.len())? == Some(&ZEROS) {
        at += BLOCK;
    }
    Ok(at)
}

impl Behind {
    fn believe(&mut self, header: &Header) {
        self.durable = self.durable.max(header.durable.map(|lsn| lsn.0));
    }
}

/// Returns whether a record is chained to one that did not exist yet when its segment was last
/// recycled.
fn is_of_this_life(segments: &Segments, header: &Header) -> bool {
    let former = header.start.0.saturating_sub(segments.size());
    header.prev < header.start && header.prev.0 > former
}

/// Writes the bytes from `known` to `end` again, and the headers of their segments and of those
/// behind: the found records may never have been synced (rule 12).
fn write_again(segments: &Segments, known: u64, end: u64) -> Result<(), LogError> {
    debug_assert!(known <= end, "the log is durable up to its end at most");
    let mut buffer = AlignedBuffer::new(AHEAD);
    let mut at = known - known % BLOCK;
    while at < end {
        let room = (segments.size() - at % segments.size()).min(AHEAD as u64);
        let count = room.min((end - at).next_multiple_of(BLOCK));
        let bytes = &mut buffer[..count as usize];
        let offset = segments.offset(at)?;
        segments.read(at, bytes)?;
        segments.device().write(offset, bytes).map_err(LogError::Prepare)?;
        at += count;
    }
    segments.write_headers(segments.sequence(known)).map_err(LogError::Prepare)
}

/// Overwrites the bytes behind the end with zeros, as far as writes may have been in flight there.
fn wipe(segments: &Segments, end: u64, buffer_bytes: usize) -> Result<(), LogError> {
    let under_way = buffer_bytes.max(BUFFER_MAX) as u64;
    let limit = segments.end_of_run(end).min((end + under_way).next_multiple_of(BLOCK));
    let mut buffer = AlignedBuffer::new(AHEAD);
    let mut at = end - end % BLOCK;
    while at < limit {
        let room = segments.in_file(at).min(AHEAD as u64);
        if room == 0 {
            at = (segments.sequence(at) + 1) * segments.size();
            continue;
        }
        let bytes = &mut buffer[..room.min(limit - at) as usize];
        segments.read(at, bytes)?;
        let behind = &mut bytes[end.saturating_sub(at) as usize..];
        if behind.iter().any(|byte| *byte != 0) {
            behind.fill(0);
            let offset = segments.offset(at)?;
            segments.device().write(offset, bytes).map_err(LogError::Prepare)?;
        }
        at += bytes.len() as u64;
    }
    Ok(())
}

/// Overwrites the headers of the records that begin at `starts`, in ascending order, with zeros.
fn clear(segments: &Segments, starts: &[u64]) -> Result<(), LogError> {
    debug_assert!(starts.is_sorted(), "headers are cleared block by block");
    let mut block = AlignedBuffer::new(BLOCK as usize);
    let mut at = 0;
    while let Some(&first) = starts.get(at) {
        let begin = first - first % BLOCK;
        let offset = segments.offset(begin)?;
        segments.read(begin, &mut block)?;
        while let Some(&start) = starts.get(at).filter(|&&start| start < begin + BLOCK) {
            // Records begin at multiples of 8: length and checksum never reach into the next block.
            debug_assert!(start.is_multiple_of(8), "a record begins at a multiple of 8");
            let from = (start - begin) as usize;
            block[from..from + 8].fill(0);
            at += 1;
        }
        segments.device().write(offset, &block).map_err(LogError::Prepare)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::options::LogOptions;
    use super::super::record::{self, Form, Record, SUM, checksum, encode};
    use super::super::{Log, LogError};
    use super::*;
    use millpond_device::{Device, MemoryDevice};

    const ID: [u8; 16] = [7; 16];

    fn tiny() -> LogOptions {
        LogOptions { segment_bytes: 16 << 10, buffer_bytes: 64 << 10, ..LogOptions::default() }
    }

    /// Returns a record at `start` that passes for a whole one if `passes`, and states that the log
    /// was durable up to itself.
    fn planted(start: u64, prev: u64, passes: bool) -> Vec<u8> {
        let body = [3; 64];
        let header = Record { kind: 5, tx: 9, prev: Lsn(prev), parts: &[] };
        let (form, salt) = (Form::of(&header, body.len()), record::salt(&ID));
        let mut bytes = encode(&header, form, start, start, salt)[..form.header()].to_vec();
        bytes.extend(body);
        bytes.resize(form.whole(), 0);
        let sum = checksum(&bytes[SUM..], &[], start, salt) ^ u32::from(!passes);
        bytes[..SUM].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Returns a log with a record at 4096 and, behind a gap, `rows`, one after the other.
    fn with_behind(rows: &[(u64, bool)]) -> (Arc<MemoryDevice>, u64) {
        let device = Arc::new(MemoryDevice::new());
        let log = Log::create(device.clone(), ID, Lsn(0), &tiny()).unwrap();
        log.append(&Record { kind: 1, tx: 0, prev: Lsn(0), parts: &[b"first"] });
        log.wait_durable(log.tail()).unwrap();
        let end = log.tail().0;
        log.close().unwrap();
        let segments = Segments::open(device.clone(), ID).unwrap();
        let mut at = end + 256;
        for &(prev, passes) in rows {
            let bytes = planted(at, prev, passes);
            device.write(segments.offset(at).unwrap(), &bytes).unwrap();
            at += bytes.len() as u64;
        }
        (device, end)
    }

    fn opened(rows: &[(u64, bool)]) -> Result<Tail, LogError> {
        let (device, end) = with_behind(rows);
        let result = Log::open(device.clone(), ID, Lsn(4096), &tiny()).map(|(_, tail)| tail);
        assert!(result.as_ref().is_ok_and(|tail| tail.end.0 == end) || result.is_err());
        result
    }

    #[test]
    fn one_record_of_a_former_life_that_passes_by_chance_is_no_damage() {
        for rows in [&[(0, true), (0, false)][..], &[(0, false), (0, true), (0, false)]] {
            assert!(opened(rows).is_ok(), "{rows:?}");
        }
    }

    #[test]
    fn two_in_a_row_or_one_with_nothing_behind_it_or_a_late_chain_are_damage() {
        let chained = [(4096, true), (0, false)];
        for rows in [&[(0, true), (0, true), (0, false)][..], &[(0, true)], &chained] {
            let result = opened(rows);
            assert!(matches!(result, Err(LogError::Damaged { .. })), "{rows:?}: {result:?}");
        }
    }

    #[test]
    fn what_lies_behind_the_end_is_wiped_as_far_as_the_largest_buffer_reaches() {
        let device = Arc::new(MemoryDevice::new());
        let options = LogOptions { segment_bytes: 16 << 20, ..tiny() };
        let log = Log::create(device.clone(), ID, Lsn(0), &options).unwrap();
        log.append(&Record { kind: 1, tx: 0, prev: Lsn(0), parts: &[b"first"] });
        log.wait_durable(log.tail()).unwrap();
        let end = log.tail().0;
        log.close().unwrap();
        device.grow(16 << 20).unwrap();
        let segments = Segments::open(device.clone(), ID).unwrap();
        let older = end.next_multiple_of(BLOCK);
        device.write(segments.offset(older).unwrap(), &vec![0xAA; 6 << 20]).unwrap();
        let (log, tail) = Log::open(device.clone(), ID, Lsn(4096), &options).unwrap();
        assert_eq!(tail.end, Lsn(end));
        drop(log);
        let wiped = (end + BUFFER_MAX as u64).next_multiple_of(BLOCK);
        let mut bytes = vec![0; 6 << 20];
        device.read(segments.offset(older).unwrap(), &mut bytes).unwrap();
        let (zeros, rest) = bytes.split_at((wiped - older) as usize);
        assert!(zeros.iter().all(|byte| *byte == 0), "{} bytes are wiped", zeros.len());
        assert!(rest.iter().all(|byte| *byte == 0xAA), "and no more");
    }

    #[test]
    fn a_record_that_must_be_there_and_is_not_whole_is_reported_before_anything_is_written() {
        let (device, _) = with_behind(&[(0, true), (0, false)]);
        let segments = Segments::open(device.clone(), ID).unwrap();
        let offset = segments.offset(4096).unwrap();
        let mut byte = [0];
        device.read(offset + 12, &mut byte).unwrap();
        device.write(offset + 12, &[byte[0] ^ 1]).unwrap();
        let before = device.to_bytes();
        let result = Log::open_from_record(device.clone(), ID, Lsn(4096), &tiny());
        assert!(matches!(result, Err(LogError::NoRecord { at: Lsn(4096), .. })));
        assert!(device.to_bytes() == before);
    }
}
