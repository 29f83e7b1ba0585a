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
//! Further columns are ignored. The storage unit is put above bit 48 of the page, so that the
//! pages of unit 0 keep their numbers.

use millpond_base::Mark;

use super::extents::note_empty;
use super::lines::{LineFormat, Run, is_comment};
use super::number::{shown, whole};
use super::op::parse_op;

/// Bits of a page number within its storage unit or disk.
const SPACE_BITS: u32 = 48;
/// Bytes per logical block.
const BLOCK: u64 = 512;

/// Reads SPC-1 style traces.
pub(crate) struct Spc {
    page_size: u64,
    empty: u64,
}

impl Spc {
    pub(crate) fn new(page_size: u64) -> Spc {
        Spc { page_size, empty: 0 }
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
        let op = parse_op(next("opcode")?)?;
        let time = next("timestamp")?;
        if std::str::from_utf8(time).ok().and_then(|t| t.parse::<f64>().ok()).is_none() {
            return Err(format!("timestamp {} is no number", shown(time)));
        }
        let Some(offset) = lba.checked_mul(BLOCK) else {
            return Err(format!("block {lba} exceeds 64 bits of bytes"));
        };
        self.empty += u64::from(size == 0);
        in_space(asu, Run::bytes(offset, size, self.page_size, Mark::of(op))?).map(Some)
    }

    fn notes(&self, notes: &mut Vec<String>) {
        note_empty(self.empty, notes);
    }
}

/// The number in `field`, called `name` in the message.
pub(crate) fn named(name: &str, field: &[u8]) -> Result<u64, String> {
    whole(field).ok_or_else(|| format!("{name} {} is no 64-bit number", shown(field)))
}

/// The same pages in a space of their own.
pub(crate) fn in_space(space: u64, run: Run) -> Result<Run, String> {
    if space >= 1 << (64 - SPACE_BITS) {
        return Err(format!("storage unit {space} is above 65535"));
    }
    if run.start + run.count > 1 << SPACE_BITS {
        return Err(format!("page {} is above 2^48", run.start + run.count));
    }
    Ok(Run { start: run.start | space << SPACE_BITS, ..run })
}
