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
//! Spaces are numbered by first appearance and put above bit 48 of the page, so that the pages
//! of a file with one disk keep their numbers.

use std::collections::HashMap;

use millpond_base::Mark;

use super::extents::note_empty;
use super::lines::{LineFormat, Run, is_comment};
use super::number::shown;
use super::op::parse_op;
use super::spc::{in_space, named};

/// Reads MSR Cambridge traces.
pub(crate) struct Msr {
    page_size: u64,
    /// Disks by name, numbered by first appearance.
    spaces: HashMap<Box<[u8]>, u64>,
    /// The disk of the line before.
    last: (Box<[u8]>, u64),
    empty: u64,
    begun: bool,
}

impl Msr {
    pub(crate) fn new(page_size: u64) -> Msr {
        let (spaces, last) = (HashMap::new(), (Box::default(), 0));
        Msr { page_size, spaces, last, empty: 0, begun: false }
    }

    /// The number of the space that `name` (host, comma, disk) names.
    fn space(&mut self, name: &[u8]) -> u64 {
        if *self.last.0 != *name {
            let next = self.spaces.len() as u64;
            let space = self.spaces.get(name).copied().unwrap_or(next);
            if space == next {
                self.spaces.insert(name.into(), next);
            }
            self.last = (name.into(), space);
        }
        self.last.1
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
        let op = parse_op(field(3))?;
        let (offset, size) = (named("offset", field(4))?, named("size", field(5))?);
        let space = self.space(&line[ends[0] + 1..ends[2]]);
        self.empty += u64::from(size == 0);
        in_space(space, Run::bytes(offset, size, self.page_size, Mark::of(op))?).map(Some)
    }

    fn notes(&self, notes: &mut Vec<String>) {
        note_empty(self.empty, notes);
        if self.spaces.len() > 1 {
            notes.push(format!("{} disks were kept apart above bit 48", self.spaces.len()));
        }
    }
}
