//! Disks, volumes and storage units: spaces of pages of their own.
//!
//! A space is put above bit 48 of the page. The first space of a trace has number 0, so that the
//! pages of a trace with one space keep their numbers.

use std::collections::HashMap;

use super::lines::Run;
use super::number::shown;
use super::parameters::MAP_IDS;

/// Bits of a page number within its space.
const SPACE_BITS: u32 = 48;
/// More spaces than these do not fit above the pages.
const MAX_SPACES: u64 = 1 << (64 - SPACE_BITS);

/// Spaces by name, numbered by first appearance.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    names: HashMap<Box<[u8]>, u64>,
    /// The space of the line before.
    last: (Box<[u8]>, u64),
    /// `true` if a page of the first space reaches into the bits of the others.
    is_wide: bool,
}

impl Spaces {
    /// Puts a run into the space called `name`.
    pub(crate) fn place(&mut self, name: &[u8], run: Run) -> Result<Run, String> {
        let space = self.number(name);
        let end = run.start.saturating_add(run.count);
        if self.names.len() == 1 && end > 1 << SPACE_BITS {
            self.is_wide = true;
            return Ok(run);
        }
        if self.is_wide {
            return Err(format!(
                "{} is a second disk or volume, and pages before it are above 2^48: {MAP_IDS} \
                 numbers pages from 0",
                shown(name)
            ));
        }
        in_space(space, run)
    }

    /// The number of the space that `name` names.
    fn number(&mut self, name: &[u8]) -> u64 {
        if self.names.is_empty() || *self.last.0 != *name {
            let next = self.names.len() as u64;
            let number = self.names.get(name).copied().unwrap_or(next);
            if number == next {
                self.names.insert(name.into(), next);
            }
            self.last = (name.into(), number);
        }
        self.last.1
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
        return Err(format!("page {end} is above 2^48 ({MAP_IDS} numbers pages from 0)"));
    }
    Ok(Run { start: run.start | space << SPACE_BITS, ..run })
}
