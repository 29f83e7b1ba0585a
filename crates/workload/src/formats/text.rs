//! Plain text: one reference per line.
//!
//! ```text
//! # a comment
//! 4711            a read of page 4711
//! 4711 W          a write of it; R for a read; a blank or a tab between
//! ```
//!
//! Lone `*` lines, the LIRS authors' phase markers, are skipped and counted, because the
//! first one may come long after the lines that detection reads.

use millpond_base::Mark;

use crate::trace::Batch;

use super::ids::Ids;
use super::lines::{LineFormat, Parsed, Run, words};
use super::number::{digits, shown};
use super::op::{Ops, note_skipped};
use super::options::ReadOptions;

/// Reads plain text.
pub(crate) struct Text {
    ids: Ids,
    with_ops: bool,
    ops: Ops,
    markers: u64,
    skipped: u64,
}

impl Text {
    /// Creates a reader of text with an optional column of operations.
    pub(crate) fn new(options: &ReadOptions) -> Text {
        let (ids, ops) = (Ids::new(options.map_ids), options.ops.clone());
        Text { ids, with_ops: true, ops, markers: 0, skipped: 0 }
    }

    /// Creates a reader of text with only page ids.
    pub(crate) fn one_column(options: &ReadOptions) -> Text {
        Text { with_ops: false, ..Text::new(options) }
    }
}

impl LineFormat for Text {
    fn line(&mut self, line: &[u8]) -> Result<Option<Run>, String> {
        let (fields, found) = words::<3>(line);
        if found == 0 || fields[0].starts_with(b"#") {
            return Ok(None);
        }
        if found == 1 && fields[0] == b"*" {
            self.markers += 1;
            return Ok(None);
        }
        if found > 2 && !fields[1..].iter().any(|field| field.starts_with(b"#")) {
            return Err(format!("{found} columns in {}: expected a page and R or W", shown(line)));
        }
        let mark = match fields[1] {
            b"" => Mark::READ,
            op if op.starts_with(b"#") => Mark::READ,
            _ if !self.with_ops => return Err(format!("{}: expected one column", shown(line))),
            op => match self.ops.find(op)? {
                Some(op) => Mark::of(op),
                None => {
                    self.skipped += 1;
                    return Ok(None);
                }
            },
        };
        Ok(Some(Run::page(self.ids.page(fields[0])?, mark)))
    }

    /// The fast path reads a line of a number, or of a number and an operation, without
    /// searching for its end first. Marks are filled in for a stretch of reads at once.
    fn block(&mut self, block: &[u8], batch: &mut Batch, limit: usize, rest: &mut Run) -> Parsed {
        let full = batch.pages.len() + limit;
        let (mut bytes, mut lines) = (0, 0);
        batch.pages.reserve(limit.min(block.len() / 2 + 1));
        while batch.pages.len() < full && bytes < block.len() {
            if self.ids.are_numbers()
                && let Some((page, len)) = digits(&block[bytes..])
            {
                let after = &block[bytes + len..];
                if after.first() == Some(&b'\n') {
                    batch.pages.push(page);
                    (bytes, lines) = (bytes + len + 1, lines + 1);
                    continue;
                }
                if self.with_ops
                    && self.ops.is_empty()
                    && let [b' ' | b'\t', op @ (b'R' | b'W' | b'r' | b'w'), b'\n', ..] = after
                {
                    batch.marks.resize(batch.pages.len(), Mark::READ);
                    batch.pages.push(page);
                    let write = op.eq_ignore_ascii_case(&b'W');
                    batch.marks.push(if write { Mark::WRITE } else { Mark::READ });
                    (bytes, lines) = (bytes + len + 3, lines + 1);
                    continue;
                }
            }
            batch.marks.resize(batch.pages.len(), Mark::READ);
            let end = memchr::memchr(b'\n', &block[bytes..]).unwrap_or(block.len() - bytes);
            let line = &block[bytes..bytes + end];
            match self.line(line.strip_suffix(b"\r").unwrap_or(line)) {
                Ok(None) => {}
                Ok(Some(mut run)) => {
                    run.move_into(batch, 1);
                    *rest = run;
                }
                Err(reason) => return Parsed { bytes, lines, error: Some(reason) },
            }
            (bytes, lines) = (bytes + end + 1, lines + 1);
        }
        batch.marks.resize(batch.pages.len(), Mark::READ);
        Parsed { bytes, lines, error: None }
    }

    fn notes(&self, notes: &mut Vec<String>) {
        self.ids.notes(notes);
        if self.markers > 0 {
            notes.push(format!("{} '*' markers were skipped", self.markers));
        }
        note_skipped(self.skipped, notes);
    }
}
