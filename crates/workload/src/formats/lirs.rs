//! The LIRS authors' traces: plain text with lone `*` lines between phases.
//!
//! ```text
//! 4711            a reference to block 4711
//! *               the end of a phase; no reference
//! ```
//!
//! It does not distinguish reads from writes, so a second column is an error.

use crate::trace::Batch;

use super::lines::{LineFormat, Parsed, Run};
use super::options::ReadOptions;
use super::text::Text;

/// Reads LIRS text.
pub(crate) struct Lirs(Text);

impl Lirs {
    pub(crate) fn new(options: &ReadOptions) -> Lirs {
        Lirs(Text::one_column(options))
    }
}

impl LineFormat for Lirs {
    fn line(&mut self, line: &[u8]) -> Result<Option<Run>, String> {
        self.0.line(line)
    }

    fn block(&mut self, block: &[u8], batch: &mut Batch, limit: usize, rest: &mut Run) -> Parsed {
        self.0.block(block, batch, limit, rest)
    }

    fn notes(&self, notes: &mut Vec<String>) {
        self.0.notes(notes);
    }
}
