//! Removing the entries that a closure chooses.

use crate::api::place::Place;
use crate::api::place::range::{RawEntry, RawRange};
use crate::btree::Finger;
use crate::encoding::key_range::KeyRange;
use crate::store::error::Error;

/// What decides whether an entry is removed.
pub(crate) type Judge<'j> = dyn FnMut(&[u8], &[u8]) -> Result<bool, Error> + 'j;

/// The entries of a range, of which some are removed.
pub(crate) struct Extract<'t> {
    place: Place<'t>,
    range: RawRange<'t>,
    /// The entry that was removed last, or is about to be.
    entry: RawEntry,
    /// Where that is.
    finger: Finger,
}

impl<'t> Extract<'t> {
    #[track_caller]
    pub(crate) fn new(place: Place<'t>, range: &KeyRange) -> Extract<'t> {
        let (range, finger) = (place.key_range(range), Finger::default());
        Extract { place, range, entry: RawEntry::default(), finger }
    }

    /// Removes the next entry that `judge` chooses, and returns it.
    pub(crate) fn next_entry(&mut self, judge: &mut Judge<'_>) -> Result<Option<RawEntry>, Error> {
        Ok(self.step(judge, true)?.then(|| std::mem::take(&mut self.entry)))
    }

    /// Removes all entries that `judge` chooses; returns how many.
    pub(crate) fn remove_all(
        place: Place<'t>,
        range: &KeyRange,
        judge: &mut Judge<'_>,
    ) -> Result<u64, Error> {
        // All of them are looked at: they are locked at once.
        place.lock_range(range)?;
        let (mut extract, mut removed) = (Extract::new(place, range), 0);
        while extract.step(judge, false)? {
            removed += 1;
        }
        Ok(removed)
    }

    /// Removes the next entry that `judge` chooses, and keeps its value if that is wanted; returns
    /// whether there was one.
    pub(crate) fn step(&mut self, judge: &mut Judge<'_>, wants_value: bool) -> Result<bool, Error> {
        let Extract { place, range, entry: (key, value), finger } = self;
        // Inside a transaction it is locked, and the same when it is removed.
        let wants_value = wants_value || place.shares();
        while let Some((its_key, its_value)) = range.next_entry()? {
            if !judge(its_key, its_value)? {
                continue;
            }
            its_key.clone_into(key);
            if wants_value {
                its_value.clone_into(value);
            }
            loop {
                if place.take((range, finger), key, value)? {
                    return Ok(true);
                }
                // Others have changed it: what it is now is looked at.
                match place.get(key)? {
                    Some(now) if judge(key, &now)? => *value = now,
                    _ => break,
                }
            }
        }
        Ok(false)
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
