//! Disks, volumes and storage units: spaces of pages of their own.
//!
//! A space is put above bit 48 of the page. The first space of a trace has number 0, so that the
//! pages of a trace with one space keep their numbers.

use super::lines::Run;
use super::number::shown;

/// Bits of a page number within its space.
const SPACE_BITS: u32 = 48;
/// More spaces than these do not fit above the pages.
const MAX_SPACES: u64 = 1 << (64 - SPACE_BITS);
/// More names than these are no disks.
const MAX_NAMES: usize = 4096;

/// Spaces by name, numbered by first appearance.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    names: Vec<Box<[u8]>>,
    last: usize,
    /// Whether a page of the first space reaches into the bits of the others.
    is_wide: bool,
}

impl Spaces {
    /// Puts a run into the space called `name`.
    pub(crate) fn place(&mut self, name: &[u8], run: Run) -> Result<Run, String> {
        let space = self.number(name)?;
        let end = run.start.saturating_add(run.count);
        if self.names.len() == 1 && end > 1 << SPACE_BITS {
            self.is_wide = true;
            return Ok(run);
        }
        if self.is_wide {
            return Err(format!(
                "{} is a second disk or volume, and pages before it are above 2^48: --map-ids \
                 numbers pages from 0",
                shown(name)
            ));
        }
        in_space(space, run)
    }

    /// The number of the space that `name` names.
    fn number(&mut self, name: &[u8]) -> Result<u64, String> {
        if self.names.get(self.last).is_some_and(|s| **s == *name) {
            return Ok(self.last as u64);
        }
        self.last = match self.names.iter().position(|s| **s == *name) {
            Some(at) => at,
            None if self.names.len() == MAX_NAMES => {
                return Err(format!("more than {MAX_NAMES} disks, with {}", shown(name)));
            }
            None => {
                self.names.push(name.into());
                self.names.len() - 1
            }
        };
        Ok(self.last as u64)
    }

    /// The note on how many spaces there are.
    pub(crate) fn notes(&self, notes: &mut Vec<String>) {
        if self.names.len() > 1 {
            notes.push(format!("{} disks were kept apart above bit 48", self.names.len()));
        }
    }
}

/// The same pages in a space of their own.
pub(crate) fn in_space(space: u64, run: Run) -> Result<Run, String> {
    if space >= MAX_SPACES {
        return Err(format!("storage unit {space} is above 65535"));
    }
    let end = run.start.saturating_add(run.count);
    if end > 1 << SPACE_BITS {
        return Err(format!("page {end} is above 2^48 (--map-ids numbers pages from 0)"));
    }
    Ok(Run { start: run.start | space << SPACE_BITS, ..run })
}
