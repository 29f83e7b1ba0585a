//! Removing the entries that a closure chooses.

use crate::api::place::Place;
use crate::api::place::range::{RawEntry, RawRange};
use crate::encoding::key_range::KeyRange;
use crate::store::error::Error;

/// What decides whether an entry is removed.
pub(crate) type Judge<'j> = dyn FnMut(&[u8], &[u8]) -> Result<bool, Error> + 'j;

/// The entries of a range, of which some are removed.
pub(crate) struct Extract<'t> {
    place: Place<'t>,
    range: RawRange<'t>,
}

impl<'t> Extract<'t> {
    #[track_caller]
    pub(crate) fn new(place: Place<'t>, range: &KeyRange) -> Extract<'t> {
        Extract { place, range: place.key_range(range) }
    }

    /// Removes the next entry that `judge` chooses, and returns it.
    pub(crate) fn next_entry(&mut self, judge: &mut Judge<'_>) -> Result<Option<RawEntry>, Error> {
        while let Some((key, value)) = self.range.next_entry()? {
            if !judge(key, value)? {
                continue;
            }
            let (key, mut value) = (key.to_vec(), value.to_vec());
            loop {
                if self.place.take(&mut self.range, &key, &value)? {
                    return Ok(Some((key, value)));
                }
                // Others have changed it: what it is now is looked at.
                match self.place.get(&key)? {
                    Some(now) if judge(&key, &now)? => value = now,
                    _ => break,
                }
            }
        }
        Ok(None)
    }

    pub(crate) fn end(&mut self) {
        self.range.end();
    }
}

/// The entries that `extract_if` of a tree of byte strings removes, as they are taken from it.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let ponds = db.raw_tree("ponds")?;
/// ponds.put(b"mill", b"deep")?;
/// ponds.put(b"weir", b"wide")?;
/// let wide: Result<Vec<_>, Error> = ponds.extract_if(.., |_, value| value == b"wide").collect();
/// assert_eq!((wide?.len(), ponds.len()?), (1, 1));
/// # Ok(()) }
/// ```
pub struct RawExtractIf<'t, F> {
    extract: Extract<'t>,
    judge: F,
}

impl<'t, F> RawExtractIf<'t, F> {
    pub(crate) fn new(extract: Extract<'t>, judge: F) -> RawExtractIf<'t, F> {
        RawExtractIf { extract, judge }
    }
}

impl<F: FnMut(&[u8], &[u8]) -> bool> Iterator for RawExtractIf<'_, F> {
    type Item = Result<RawEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let judge = &mut self.judge;
        let next = self.extract.next_entry(&mut |key, value| Ok(judge(key, value)));
        if next.is_err() {
            self.extract.end();
        }
        next.transpose()
    }
}
