//! libCacheSim's `oracleGeneral`: packed little-endian records of 24 bytes.
//!
//! ```text
//! byte 0      4                 12       16                24
//!      ├ time ┼ object id       ┼ size   ┼ next access     ┤
//!        u32    u64               u32      i64: number of the next reference to the
//!                                          object, from 1; -1 or the largest if there is none
//! ```
//!
//! The format does not distinguish reads from writes. Time and next access are not kept.

use millpond_base::Mark;

use crate::trace::{Batch, Source, TraceError};

use super::csv::note_sizes;
use super::input::Input;
use super::lines::Run;

/// Bytes per record.
pub(crate) const RECORD: usize = 24;

/// Reads oracleGeneral.
pub(crate) struct OracleGeneral {
    input: Input,
    page_size: u64,
    expand_sizes: bool,
    rest: Run,
    records: u64,
    sized: u64,
    larger: u64,
}

impl OracleGeneral {
    pub(crate) fn new(input: Input, page_size: u64, expand_sizes: bool) -> OracleGeneral {
        let rest = Run { count: 0, ..Run::page(0, Mark::READ) };
        OracleGeneral { input, page_size, expand_sizes, rest, records: 0, sized: 0, larger: 0 }
    }

    /// Appends one reference per record.
    fn plain(&mut self, batch: &mut Batch, limit: usize) {
        let data = self.input.data();
        let n = (data.len() / RECORD).min(limit);
        let page_size = self.page_size;
        let (mut sized, mut larger) = (0, 0);
        let (records, _) = data[..n * RECORD].as_chunks::<RECORD>();
        batch.pages.extend(records.iter().map(|record| {
            let (id, size) = id_and_size(record);
            sized += u64::from(size > 1);
            larger += u64::from(u64::from(size) > page_size);
            id
        }));
        batch.marks.resize(batch.pages.len(), Mark::READ);
        (self.sized, self.larger) = (self.sized + sized, self.larger + larger);
        self.records += n as u64;
        self.input.consume(n * RECORD);
    }

    /// Appends one reference per page of each object.
    fn expanded(&mut self, batch: &mut Batch, limit: usize) -> Result<(), TraceError> {
        let mut room = limit - self.rest.move_into(batch, limit);
        while room > 0
            && let Some(record) = self.input.data().first_chunk::<RECORD>()
        {
            let (id, size) = id_and_size(record);
            let run = Run::object(id, u64::from(size), self.page_size, Mark::READ);
            self.rest = run.map_err(|reason| self.corrupt(reason))?;
            self.input.consume(RECORD);
            self.records += 1;
            room -= self.rest.move_into(batch, room);
        }
        Ok(())
    }

    fn corrupt(&self, reason: String) -> TraceError {
        let path = self.input.path().to_path_buf();
        TraceError::Corrupt { path, record: self.records + 1, reason }
    }
}

#[inline(always)]
fn id_and_size(record: &[u8; RECORD]) -> (u64, u32) {
    let [_, _, _, _, a, b, c, d, e, f, g, h, s, t, u, v, ..] = *record;
    (u64::from_le_bytes([a, b, c, d, e, f, g, h]), u32::from_le_bytes([s, t, u, v]))
}

impl Source for OracleGeneral {
    fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError> {
        let before = batch.pages.len();
        loop {
            let room = limit - (batch.pages.len() - before);
            if self.expand_sizes {
                self.expanded(batch, room)?;
            } else {
                self.plain(batch, room);
            }
            let added = batch.pages.len() - before;
            if added == limit {
                return Ok(added);
            }
            if !self.input.more(self.records + 1)? {
                let left = self.input.data().len();
                if left == 0 {
                    return Ok(added);
                }
                let reason = format!("the file ends in the middle of it: {left} of 24 bytes");
                return Err(self.corrupt(reason));
            }
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.expand_sizes {
            note_sizes(self.sized, self.larger, &mut notes);
        }
        notes
    }
}

/// Upper limit of a trace's references; a next access with a higher number means none.
const REFERENCES_MAX: i64 = 1 << 48;

/// Returns `true` if `data`, the start of a file, can be oracleGeneral: time never decreases, and
/// each next access is none or later than its own record.
pub(crate) fn fits(data: &[u8], is_whole_file: bool) -> bool {
    let (records, left) = data.as_chunks::<RECORD>();
    // The reader reports a cut file, if enough of it is left for detection.
    let least = if is_whole_file && !left.is_empty() { 8 } else { 1 };
    if records.len() < least {
        return false;
    }
    let mut before = 0;
    records.iter().enumerate().all(|(i, record)| {
        let [t, u, v, w, ..] = *record;
        let time = u32::from_le_bytes([t, u, v, w]);
        let forward = std::mem::replace(&mut before, time) <= time;
        forward && is_next(record, i as i64 + 1)
    })
}

/// Returns `true` if `data` can be oracleGeneral that was cut out of a longer trace, or sorted
/// again: each next access is the number of a reference, or none.
pub(crate) fn may_fit(data: &[u8]) -> bool {
    let (records, _) = data.as_chunks::<RECORD>();
    records.iter().all(|record| is_next(record, 1))
}

/// Returns `true` if the next access of `record` is none, or a number from `least` on.
fn is_next(record: &[u8; RECORD], least: i64) -> bool {
    let next: [u8; 8] = record[16..].try_into().unwrap_or_default();
    match i64::from_le_bytes(next) {
        -1 | i64::MAX => true,
        next => (least..REFERENCES_MAX).contains(&next),
    }
}
