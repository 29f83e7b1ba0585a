//! Extents: runs of consecutive pages.
//!
//! ```text
//! 4711 8          pages 4711, 4712, … 4718, each read once
//! ```

use millpond_base::Mark;

use super::lines::{LineFormat, Run, words};
use super::number::{shown, whole};

/// Reads extents.
#[derive(Default)]
pub(crate) struct Extents {
    empty: u64,
}

impl LineFormat for Extents {
    fn line(&mut self, line: &[u8]) -> Result<Option<Run>, String> {
        let (fields, found) = words::<2>(line);
        if found == 0 || fields[0].starts_with(b"#") {
            return Ok(None);
        }
        if found != 2 {
            return Err(format!("{}: expected 'start count'", shown(line)));
        }
        let run = run_of(fields[0], fields[1], &mut self.empty)?;
        Ok(Some(run))
    }

    fn notes(&self, notes: &mut Vec<String>) {
        note_empty(self.empty, notes);
    }
}

/// Returns the run of a start and a count; counts empty runs.
pub(crate) fn run_of(start: &[u8], count: &[u8], empty: &mut u64) -> Result<Run, String> {
    let Some(first) = whole(start) else {
        return Err(format!("start {} is no 64-bit number", shown(start)));
    };
    let Some(pages) = whole(count) else {
        return Err(format!("count {} is no 64-bit number", shown(count)));
    };
    *empty += u64::from(pages == 0);
    Run::pages(first, pages, Mark::READ)
}

/// Adds the note on requests of length zero.
pub(crate) fn note_empty(empty: u64, notes: &mut Vec<String>) {
    if empty > 0 {
        notes.push(format!("{empty} requests of length 0 were skipped"));
    }
}
