//! The ARC authors' `.lis` traces.
//!
//! ```text
//! 4711 8 0 17     start, number of pages, an ignored field, number of the request
//! ```

use super::extents::{note_empty, run_of};
use super::lines::{LineFormat, Run, words};
use super::number::{shown, whole};

/// Reads `.lis`.
#[derive(Default)]
pub(crate) struct Lis {
    empty: u64,
}

impl LineFormat for Lis {
    fn line(&mut self, line: &[u8]) -> Result<Option<Run>, String> {
        let (fields, found) = words::<4>(line);
        if found == 0 || fields[0].starts_with(b"#") {
            return Ok(None);
        }
        if found != 4 {
            return Err(format!("{}: expected 'start count 0 request'", shown(line)));
        }
        for field in &fields[2..] {
            if whole(field).is_none() {
                return Err(format!("{} is no 64-bit number", shown(field)));
            }
        }
        run_of(fields[0], fields[1], &mut self.empty).map(Some)
    }

    fn notes(&self, notes: &mut Vec<String>) {
        note_empty(self.empty, notes);
    }
}
