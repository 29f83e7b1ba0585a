//! The common part of all line formats: finding lines, expanding requests to pages, counting
//! records.
//!
//! A format parses one line into at most one [`Run`] of consecutive pages; [`Lines`] finds the
//! lines in the input's buffer (no line is ever copied), spreads runs over batches, and turns a
//! format's complaint into an error that names file and line.

use millpond_base::{Lsn, Mark};

use crate::trace::{Batch, Source, TraceError};

use super::input::Input;

/// The largest number of pages that one request may have: 64 GiB of 4 KiB pages.
pub(crate) const MAX_RUN: u64 = 1 << 24;

/// Consecutive pages of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub start: u64,
    pub count: u64,
    pub mark: Mark,
    pub lsn: Option<Lsn>,
    /// Set if the run is an object of several pages, whose pages after the first get scattered
    /// ids.
    pub object: bool,
}

impl Run {
    /// Returns a run of a single page.
    #[inline]
    pub(crate) fn page(page: u64, mark: Mark) -> Run {
        Run { start: page, count: 1, mark, lsn: None, object: false }
    }

    /// Returns `count` pages from `start` on, if that is plausible.
    #[inline]
    pub(crate) fn pages(start: u64, count: u64, mark: Mark) -> Result<Run, String> {
        if count > MAX_RUN {
            return Err(format!("a request of {count} pages is absurd (at most {MAX_RUN})"));
        }
        if start.checked_add(count).is_none() {
            return Err(format!("pages {start} + {count} exceed 64 bits"));
        }
        Ok(Run { start, count, mark, lsn: None, object: false })
    }

    /// Returns the pages that `len` bytes from `offset` on touch.
    pub(crate) fn bytes(offset: u64, len: u64, page_size: u64, mark: Mark) -> Result<Run, String> {
        let Some(end) = offset.checked_add(len) else {
            return Err(format!("bytes {offset} + {len} exceed 64 bits"));
        };
        let first = offset / page_size;
        let count = if len == 0 { 0 } else { (end - 1) / page_size - first + 1 };
        Run::pages(first, count, mark)
    }

    /// Returns an object of `size` bytes: one reference to each of its pages, at least one.
    pub(crate) fn object(id: u64, size: u64, page_size: u64, mark: Mark) -> Result<Run, String> {
        let count = size.div_ceil(page_size).max(1);
        if count > MAX_RUN {
            return Err(format!("an object of {size} bytes has an absurd {count} pages"));
        }
        Ok(Run { start: id, count, mark, lsn: None, object: true })
    }

    /// Moves at most `limit` references of the run into `batch`; the rest stays in the run.
    #[inline]
    pub(crate) fn move_into(&mut self, batch: &mut Batch, limit: usize) -> usize {
        let n = self.count.min(limit as u64);
        if self.object {
            self.move_object(batch, n);
        } else if n == 1 {
            // The last possible page has no successor, so a range could not hold it.
            batch.pages.push(self.start);
            self.start = self.start.wrapping_add(1);
        } else {
            batch.pages.extend(self.start..self.start + n);
            self.start += n;
        }
        self.count -= n;
        batch.marks.resize(batch.pages.len(), self.mark);
        if let Some(lsn) = self.lsn {
            batch.lsns.resize(batch.pages.len(), lsn);
        }
        n as usize
    }

    /// Appends `n` pages of an object. The first page has the object's id. The others get ids
    /// scattered over 64 bits, so that objects with neighbouring ids do not share pages; two ids
    /// collide with a chance of 2⁻⁶⁴.
    fn move_object(&mut self, batch: &mut Batch, n: u64) {
        for _ in 0..n {
            batch.pages.push(self.start);
            self.start = scatter(self.start);
        }
    }
}

/// Mixes 64 bits bijectively (the finaliser of splitmix64).
fn scatter(id: u64) -> u64 {
    let x = id.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The progress in parsing a block of lines.
pub(crate) struct Parsed {
    /// Bytes of the parsed whole lines.
    pub bytes: usize,
    /// Number of parsed lines.
    pub lines: u64,
    /// Fault of the next line, if it has one.
    pub error: Option<String>,
}

/// One line format.
pub(crate) trait LineFormat: Send {
    /// Parses a line without its end (`\n` or `\r\n`); `None` for comments and headers.
    fn line(&mut self, line: &[u8]) -> Result<Option<Run>, String>;

    /// Parses lines of `block`, all complete, until `limit` references are in `batch` or the
    /// block ends; a run that does not fit is left in `rest`. Overridden where speed matters.
    fn block(&mut self, block: &[u8], batch: &mut Batch, limit: usize, rest: &mut Run) -> Parsed {
        let (mut bytes, mut lines, mut room) = (0, 0, limit);
        while room > 0
            && let Some(len) = memchr::memchr(b'\n', &block[bytes..])
        {
            let line = &block[bytes..bytes + len];
            match self.line(line.strip_suffix(b"\r").unwrap_or(line)) {
                Ok(None) => {}
                Ok(Some(mut run)) => {
                    room -= run.move_into(batch, room);
                    if run.count > 0 {
                        *rest = run;
                    }
                }
                Err(reason) => return Parsed { bytes, lines, error: Some(reason) },
            }
            bytes += len + 1;
            lines += 1;
        }
        Parsed { bytes, lines, error: None }
    }

    /// Appends remarks for the user about the part read so far.
    fn notes(&self, notes: &mut Vec<String>);
}

/// Reader of a trace in a line format.
pub(crate) struct Lines<F> {
    input: Input,
    format: F,
    rest: Run,
    lines: u64,
}

impl<F: LineFormat> Lines<F> {
    /// Reads `input` as `format`.
    pub(crate) fn new(input: Input, format: F) -> Lines<F> {
        Lines { input, format, rest: Run::page(0, Mark::READ).emptied(), lines: 0 }
    }

    fn corrupt(&self, reason: String) -> TraceError {
        let path = self.input.path().to_path_buf();
        TraceError::Corrupt { path, record: self.lines + 1, reason }
    }
}

impl Run {
    fn emptied(self) -> Run {
        Run { count: 0, ..self }
    }
}

impl<F: LineFormat> Source for Lines<F> {
    fn fill(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, TraceError> {
        let before = batch.pages.len();
        self.rest.move_into_if_any(batch, limit);
        loop {
            let added = batch.pages.len() - before;
            if added == limit {
                return Ok(added);
            }
            let data = self.input.data();
            let whole = memchr::memrchr(b'\n', data).map_or(0, |at| at + 1);
            if whole > 0 {
                let block = &data[..whole];
                let parsed = self.format.block(block, batch, limit - added, &mut self.rest);
                self.input.consume(parsed.bytes);
                self.lines += parsed.lines;
                if let Some(reason) = parsed.error {
                    return Err(self.corrupt(reason));
                }
            } else if !self.input.more(self.lines + 1)? {
                if self.input.data().is_empty() {
                    return Ok(added);
                }
                self.input.end_line();
            }
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        self.format.notes(&mut notes);
        notes
    }
}

impl Run {
    pub(crate) fn move_into_if_any(&mut self, batch: &mut Batch, limit: usize) {
        if self.count > 0 {
            self.move_into(batch, limit);
        }
    }
}

/// Splits a line at blanks. Returns at most `N` fields, and the number of all fields.
pub(crate) fn words<const N: usize>(line: &[u8]) -> ([&[u8]; N], usize) {
    let mut fields: [&[u8]; N] = [b""; N];
    let mut found = 0;
    let mut at = 0;
    loop {
        while at < line.len() && is_blank(line[at]) {
            at += 1;
        }
        if at == line.len() {
            return (fields, found);
        }
        let begin = at;
        while at < line.len() && !is_blank(line[at]) {
            at += 1;
        }
        if let Some(field) = fields.get_mut(found) {
            *field = &line[begin..at];
        }
        found += 1;
    }
}

#[inline]
fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Returns `true` for a line without content: empty, blank or a `#` comment.
pub(crate) fn is_comment(line: &[u8]) -> bool {
    line.iter().find(|b| !is_blank(**b)).is_none_or(|b| *b == b'#')
}
