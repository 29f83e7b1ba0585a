//! SPC-1 style traces of block requests.
//!
//! ```text
//! 0,20941264,8192,W,0.551706
//! │ │        │    │ └ seconds since the start, not kept
//! │ │        │    └ R or W
//! │ │        └ bytes
//! │ └ logical block address, in units of 512 bytes
//! └ application storage unit: a space of blocks of its own, below 65536
//! ```
//!
//! Further columns are ignored. The storage unit is stored above bit 48 of the page, so that
//! the pages of unit 0 keep their numbers.

use millpond_base::Mark;

use super::extents::note_empty;
use super::lines::{LineFormat, Run, is_comment};
use super::number::{shown, whole};
use super::op::{Ops, note_skipped};
use super::options::ReadOptions;
use super::spaces::in_space;

/// Bytes per logical block.
pub(crate) const BLOCK: u64 = 512;

/// Reads SPC-1 style traces.
pub(crate) struct Spc {
    page_size: u64,
    ops: Ops,
    empty: u64,
    skipped: u64,
}

impl Spc {
    pub(crate) fn new(options: &ReadOptions) -> Spc {
        Spc { page_size: options.page_size, ops: options.ops.clone(), empty: 0, skipped: 0 }
    }
}

impl LineFormat for Spc {
    fn line(&mut self, line: &[u8]) -> Result<Option<Run>, String> {
        if is_comment(line) {
            return Ok(None);
        }
        let mut fields = line.split(|b| *b == b',').map(|f| f.trim_ascii());
        let mut next = |what: &str| {
            fields.next().ok_or_else(|| format!("{}: the {what} is missing", shown(line)))
        };
        let asu = named("ASU", next("ASU")?)?;
        let lba = named("LBA", next("LBA")?)?;
        let size = named("size", next("size")?)?;
        let op = self.ops.find(next("opcode")?)?;
        let time = next("timestamp")?;
        if std::str::from_utf8(time).ok().and_then(|t| t.parse::<f64>().ok()).is_none() {
            return Err(format!("timestamp {} is no number", shown(time)));
        }
        let Some(offset) = lba.checked_mul(BLOCK) else {
            return Err(format!("block {lba} exceeds 64 bits of bytes"));
        };
        let Some(op) = op else {
            self.skipped += 1;
            return Ok(None);
        };
        self.empty += u64::from(size == 0);
        in_space(asu, Run::bytes(offset, size, self.page_size, Mark::of(op))?).map(Some)
    }

    fn notes(&self, notes: &mut Vec<String>) {
        note_empty(self.empty, notes);
        note_skipped(self.skipped, notes);
    }
}

/// Returns the number in `field`, called `name` in the message.
pub(crate) fn named(name: &str, field: &[u8]) -> Result<u64, String> {
    whole(field).ok_or_else(|| format!("{name} {} is no 64-bit number", shown(field)))
}
