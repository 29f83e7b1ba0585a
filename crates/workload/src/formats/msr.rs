//! MSR Cambridge block traces.
//!
//! ```text
//! 128166372003061629,usr,0,Read,7014609920,24576,41286
//! │                  │   │ │    │          │     └ response time, not kept
//! │                  │   │ │    │          └ bytes
//! │                  │   │ │    └ byte offset
//! │                  │   │ └ Read or Write
//! │                  └───┴ host and disk: together a space of pages
//! └ Windows file time, not kept
//! ```
//!
//! Spaces are numbered by first appearance. The number is stored above bit 48 of the page, so
//! that the pages of a file with one disk keep their numbers.

use millpond_base::Mark;

use super::extents::note_empty;
use super::lines::{LineFormat, Run, is_comment};
use super::number::shown;
use super::op::{Ops, note_skipped};
use super::options::ReadOptions;
use super::spaces::Spaces;
use super::spc::named;

/// Reads MSR Cambridge traces.
pub(crate) struct Msr {
    page_size: u64,
    ops: Ops,
    spaces: Spaces,
    empty: u64,
    skipped: u64,
    begun: bool,
}

impl Msr {
    pub(crate) fn new(options: &ReadOptions) -> Msr {
        Msr {
            page_size: options.page_size,
            ops: options.ops.clone(),
            spaces: Spaces::default(),
            empty: 0,
            skipped: 0,
            begun: false,
        }
    }
}

impl LineFormat for Msr {
    fn line(&mut self, line: &[u8]) -> Result<Option<Run>, String> {
        if is_comment(line) {
            return Ok(None);
        }
        let is_first = !std::mem::replace(&mut self.begun, true);
        if is_first && line.len() >= 9 && line[..9].eq_ignore_ascii_case(b"timestamp") {
            return Ok(None);
        }
        let mut commas = memchr::memchr_iter(b',', line);
        let mut ends = [0; 6];
        for end in &mut ends {
            let Some(at) = commas.next() else {
                return Err(format!("{}: expected 7 columns", shown(line)));
            };
            *end = at;
        }
        let field = |i: usize| line[ends[i - 1] + 1..ends[i]].trim_ascii();
        named("timestamp", &line[..ends[0]])?;
        named("response time", line[ends[5] + 1..].trim_ascii())?;
        named("disk", field(2))?;
        let op = self.ops.find(field(3))?;
        let (offset, size) = (named("offset", field(4))?, named("size", field(5))?);
        let Some(op) = op else {
            self.skipped += 1;
            return Ok(None);
        };
        self.empty += u64::from(size == 0);
        let run = Run::bytes(offset, size, self.page_size, Mark::of(op))?;
        self.spaces.place(&line[ends[0] + 1..ends[2]], run).map(Some)
    }

    fn notes(&self, notes: &mut Vec<String>) {
        note_empty(self.empty, notes);
        note_skipped(self.skipped, notes);
        self.spaces.notes(notes);
    }
}
