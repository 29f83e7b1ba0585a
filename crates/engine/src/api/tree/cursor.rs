//! Cursors: a position among the entries of a tree that seeks and moves both ways.

use std::marker::PhantomData;
use std::ops::Bound;

use crate::api::context::{Autocommit, Reads};
use crate::api::strategy::*;
use crate::api::tree::byte_range::ByteRange;
use crate::encoding::codec::DecodeError;
use crate::encoding::key::{DecodeKey, Key, KeyLike};
use crate::encoding::key_range::KeyRange;
use crate::encoding::value::{DecodeValue, Value};
use crate::store::error::Error;
use crate::txn::OwnedEntry;

/// A position among the entries of a tree, which moves both ways.
///
/// Each move returns the entry that the cursor is then on. A move beyond the first or the last
/// entry returns `None`, and the cursor stays. Moves in one direction read as a range does; a seek
/// or a change of direction looks at the tree again.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let tides = db.tree::<u32, String>("tides")?;
/// for (minute, tide) in [(340, "high"), (720, "low"), (1085, "high")] {
///     tides.put(&minute, tide)?;
/// }
/// let mut cursor = tides.cursor();
/// assert_eq!(cursor.seek(&600)?, Some((720, "low".to_string())));
/// assert_eq!(cursor.prev()?, Some((340, "high".to_string())));
/// assert_eq!(cursor.prev()?, None);
/// assert_eq!(cursor.seek_back(&600)?, Some((340, "high".to_string())));
/// # Ok(()) }
/// ```
pub struct Cursor<'t, K, V, At: Reads = Autocommit> {
    context: At,
    tree: &'t DbTree,
    /// The direction of the last moves, and the range that they read from.
    open: Option<(bool, ByteRange<'t>)>,
    at: Option<OwnedEntry>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<'t, K: Key, V: Value, At: Reads + 't> Cursor<'t, K, V, At> {
    pub(crate) fn new(context: At, tree: &'t DbTree) -> Cursor<'t, K, V, At> {
        Cursor { context, tree, open: None, at: None, types: PhantomData }
    }

    /// Moves to the first entry whose key is `key` or greater.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tides = db.tree::<u32, String>("tides")?;
    /// # for (minute, tide) in [(340, "high"), (720, "low"), (1085, "high")] {
    /// #     tides.put(&minute, tide)?;
    /// # }
    /// let mut cursor = tides.cursor();
    /// assert_eq!(cursor.seek(&341)?, Some((720, "low".to_string())));
    /// assert_eq!(cursor.seek(&1086)?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The errors of the tree's `get`. All moves return them.
    pub fn seek<Q: KeyLike<K> + ?Sized>(&mut self, key: &Q) -> Result<Option<(K, V)>, Error> {
        let start = Bound::Included(key.to_key_bytes());
        self.go(true, KeyRange { start, end: Bound::Unbounded })
    }

    /// Moves to the last entry whose key is `key` or less.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tides = db.tree::<u32, String>("tides")?;
    /// # for (minute, tide) in [(340, "high"), (720, "low"), (1085, "high")] {
    /// #     tides.put(&minute, tide)?;
    /// # }
    /// let mut cursor = tides.cursor();
    /// assert_eq!(cursor.seek_back(&1000)?, Some((720, "low".to_string())));
    /// assert_eq!(cursor.seek_back(&0)?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Cursor::seek`].
    pub fn seek_back<Q: KeyLike<K> + ?Sized>(&mut self, key: &Q) -> Result<Option<(K, V)>, Error> {
        let end = Bound::Included(key.to_key_bytes());
        self.go(false, KeyRange { start: Bound::Unbounded, end })
    }

    /// Moves to the first entry.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tides = db.tree::<u32, String>("tides")?;
    /// # for (minute, tide) in [(340, "high"), (720, "low"), (1085, "high")] {
    /// #     tides.put(&minute, tide)?;
    /// # }
    /// let mut cursor = tides.cursor();
    /// assert!(cursor.first()?.is_some_and(|(minute, _)| minute == 340));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Cursor::seek`].
    pub fn first(&mut self) -> Result<Option<(K, V)>, Error> {
        self.go(true, KeyRange::ALL)
    }

    /// Moves to the last entry.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tides = db.tree::<u32, String>("tides")?;
    /// # for (minute, tide) in [(340, "high"), (720, "low"), (1085, "high")] {
    /// #     tides.put(&minute, tide)?;
    /// # }
    /// let mut cursor = tides.cursor();
    /// assert!(cursor.last()?.is_some_and(|(minute, _)| minute == 1085));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Cursor::seek`].
    pub fn last(&mut self) -> Result<Option<(K, V)>, Error> {
        self.go(false, KeyRange::ALL)
    }

    /// Moves to the next entry, or to the first one if the cursor has not moved yet.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tides = db.tree::<u32, String>("tides")?;
    /// # for (minute, tide) in [(340, "high"), (720, "low"), (1085, "high")] {
    /// #     tides.put(&minute, tide)?;
    /// # }
    /// let mut cursor = tides.cursor();
    /// cursor.seek(&300)?;
    /// assert_eq!(cursor.next()?, Some((720, "low".to_string())));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Cursor::seek`].
    #[expect(clippy::should_implement_trait, reason = "it may move back, too")]
    pub fn next(&mut self) -> Result<Option<(K, V)>, Error> {
        self.step(true)
    }

    /// Moves to the entry before, or to the last one if the cursor has not moved yet.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tides = db.tree::<u32, String>("tides")?;
    /// # for (minute, tide) in [(340, "high"), (720, "low"), (1085, "high")] {
    /// #     tides.put(&minute, tide)?;
    /// # }
    /// let mut cursor = tides.cursor();
    /// cursor.seek(&800)?;
    /// assert_eq!(cursor.prev()?, Some((720, "low".to_string())));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Cursor::seek`].
    pub fn prev(&mut self) -> Result<Option<(K, V)>, Error> {
        self.step(false)
    }

    /// Returns the entry that the cursor is on.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let tides = db.tree::<u32, String>("tides")?;
    /// # for (minute, tide) in [(340, "high"), (720, "low"), (1085, "high")] {
    /// #     tides.put(&minute, tide)?;
    /// # }
    /// let mut cursor = tides.cursor();
    /// assert_eq!(cursor.entry()?, None);
    /// cursor.seek(&500)?;
    /// assert_eq!(cursor.entry()?, Some((720, "low".to_string())));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Decode`].
    pub fn entry(&self) -> Result<Option<(K, V)>, Error> {
        let Some((key, value)) = &self.at else { return Ok(None) };
        let decoded = || -> Result<(K, V), DecodeError> {
            Ok((<K as DecodeKey<'_>>::decode(key)?, <V as DecodeValue<'_>>::decode(value)?))
        };
        let tree = || self.tree.name().to_string();
        let key = Some(key.clone());
        decoded().map(Some).map_err(|error| Error::Decode { tree: tree(), key, error })
    }

    fn step(&mut self, forward: bool) -> Result<Option<(K, V)>, Error> {
        if self.open.as_ref().is_some_and(|(direction, _)| *direction == forward) {
            return self.take();
        }
        let range = match (&self.at, forward) {
            (None, _) => KeyRange::ALL,
            (Some((key, _)), true) => {
                KeyRange { start: Bound::Excluded(key.clone()), end: Bound::Unbounded }
            }
            (Some((key, _)), false) => {
                KeyRange { start: Bound::Unbounded, end: Bound::Excluded(key.clone()) }
            }
        };
        self.go(forward, range)
    }

    fn go(&mut self, forward: bool, range: KeyRange) -> Result<Option<(K, V)>, Error> {
        self.open = Some((forward, self.context.range(self.tree, &range)));
        self.take()
    }

    fn take(&mut self) -> Result<Option<(K, V)>, Error> {
        let Some((forward, range)) = &mut self.open else { return Ok(None) };
        let next = if *forward { range.next_entry() } else { range.next_entry_back() };
        let entry = next.map(|next| next.map(|(key, value)| (key.to_vec(), value.to_vec())));
        match entry {
            Ok(Some(entry)) => {
                self.at = Some(entry);
                self.entry()
            }
            // An exhausted range stays so, but there may be more entries at the next move.
            Ok(None) => {
                self.open = None;
                Ok(None)
            }
            Err(error) => {
                self.open = None;
                Err(error)
            }
        }
    }
}
