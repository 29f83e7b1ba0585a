//! A cursor that keeps its source alive.

use std::ops::Bound;
use std::sync::Arc;

use millpond::{KeyRange, RawTree, Snapshot};

use crate::fault::Fault;
use crate::range_cell::{Context, RangeCell, Source};
use crate::shared::Shared;

/// A position among the entries of a tree within a range of keys, which seeks and moves both ways.
///
/// The current entry is a copy, which stays until the next call.
///
/// ```
/// use millpond::{Db, KeyRange, Options};
/// use millpond_handles::{Cursor, Fault};
///
/// # fn main() -> Result<(), Fault> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let ponds = db.raw_tree("ponds")?;
/// ponds.put(b"mill", b"deep")?;
/// ponds.put(b"weir", b"wide")?;
/// let mut cursor = Cursor::alone(&ponds, KeyRange::ALL);
/// assert!(cursor.seek_back(b"moor")?);
/// assert_eq!(cursor.entry().map(|(key, _)| key), Some(&b"mill"[..]));
/// assert!(cursor.next()? && !cursor.next()?);
/// # Ok(()) }
/// ```
pub struct Cursor {
    range: Reach,
    within: KeyRange,
    key: Vec<u8>,
    value: Vec<u8>,
    /// True if the cursor can continue from `key`.
    has_place: bool,
    /// True if the cursor is on an entry.
    is_on: bool,
}

/// Access of a cursor to its range.
enum Reach {
    Own(Box<RangeCell>),
    /// The transaction owns the range; this is its number there.
    Txn(Arc<Shared>, u64),
}

impl Cursor {
    fn new(range: Reach, within: KeyRange) -> Cursor {
        let (key, value) = (Vec::new(), Vec::new());
        Cursor { range, within, key, value, has_place: false, is_on: false }
    }

    /// Returns a cursor over the committed entries of `tree`.
    pub fn alone(tree: &RawTree, within: KeyRange) -> Cursor {
        let source = Source { tree: tree.clone(), context: Context::Autocommit };
        Cursor::new(Reach::Own(Box::new(RangeCell::of(source))), within)
    }

    /// Returns a cursor over `tree` in `snapshot`.
    pub fn in_snapshot(snapshot: &Snapshot, tree: &RawTree, within: KeyRange) -> Cursor {
        let source = Source { tree: tree.clone(), context: Context::Snapshot(snapshot.clone()) };
        Cursor::new(Reach::Own(Box::new(RangeCell::of(source))), within)
    }

    pub(crate) fn in_transaction(tx: Arc<Shared>, id: u64, within: KeyRange) -> Cursor {
        Cursor::new(Reach::Txn(tx, id), within)
    }

    /// Returns the current entry.
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.is_on.then_some((&*self.key, &*self.value))
    }

    /// Moves to the first entry. Returns `true` if there is one.
    ///
    /// # Errors
    /// Errors of reading; [`Fault::TransactionOver`] and [`Fault::CursorOver`].
    pub fn first(&mut self) -> Result<bool, Fault> {
        self.go(true, self.within.clone())
    }

    /// Moves to the last entry. Returns `true` if there is one.
    ///
    /// # Errors
    /// Same as [`Cursor::first`].
    pub fn last(&mut self) -> Result<bool, Fault> {
        self.go(false, self.within.clone())
    }

    /// Moves to the first entry at or above `key`. Returns `true` if there is one.
    ///
    /// # Errors
    /// Same as [`Cursor::first`].
    pub fn seek(&mut self, key: &[u8]) -> Result<bool, Fault> {
        let start = later(&self.within.start, Bound::Included(key.to_vec()));
        self.go(true, KeyRange { start, end: self.within.end.clone() })
    }

    /// Moves to the last entry at or below `key`. Returns `true` if there is one.
    ///
    /// # Errors
    /// Same as [`Cursor::first`].
    pub fn seek_back(&mut self, key: &[u8]) -> Result<bool, Fault> {
        let end = earlier(&self.within.end, Bound::Included(key.to_vec()));
        self.go(false, KeyRange { start: self.within.start.clone(), end })
    }

    /// Moves to the entry behind the current or last one; a new cursor moves to the first one.
    /// Returns `true` if there is one. Otherwise the cursor keeps its position, and a later call
    /// may find more.
    ///
    /// # Errors
    /// Same as [`Cursor::first`].
    #[expect(clippy::should_implement_trait, reason = "it may move back, too")]
    pub fn next(&mut self) -> Result<bool, Fault> {
        self.step(true)
    }

    /// Moves to the entry before the current or last one; a new cursor moves to the last one. At
    /// the beginning of the range it behaves like [`Cursor::next`] at the end.
    ///
    /// # Errors
    /// Same as [`Cursor::first`].
    pub fn prev(&mut self) -> Result<bool, Fault> {
        self.step(false)
    }

    /// Discards entries that were read ahead, so that the next move reads again. A cursor of a
    /// transaction never reads ahead of the data that the transaction may see.
    pub fn forget_ahead(&mut self) {
        if let Reach::Own(own) = &mut self.range {
            own.with_dependent_mut(|_, steps| steps.stop());
        }
    }

    fn step(&mut self, forward: bool) -> Result<bool, Fault> {
        let rest = match (self.has_place, forward) {
            (false, _) => self.within.clone(),
            (true, true) => {
                let start = later(&self.within.start, Bound::Excluded(self.key.clone()));
                KeyRange { start, end: self.within.end.clone() }
            }
            (true, false) => {
                let end = earlier(&self.within.end, Bound::Excluded(self.key.clone()));
                KeyRange { start: self.within.start.clone(), end }
            }
        };
        self.advance(forward, Begin::IfTurned(rest))
    }

    fn go(&mut self, forward: bool, range: KeyRange) -> Result<bool, Fault> {
        self.advance(forward, Begin::Anew(range))
    }

    fn advance(&mut self, forward: bool, begin: Begin) -> Result<bool, Fault> {
        let (key, value) = (&mut self.key, &mut self.value);
        let mut move_on = |cell: &mut RangeCell| {
            cell.with_dependent_mut(|_, steps| {
                match &begin {
                    Begin::Anew(range) => steps.begin(forward, range),
                    Begin::IfTurned(rest) if !steps.goes(forward) => steps.begin(forward, rest),
                    Begin::IfTurned(_) => {}
                }
                steps.step(key, value)
            })
        };
        let found = match &mut self.range {
            Reach::Own(own) => move_on(own).map_err(Fault::from),
            Reach::Txn(tx, id) => tx.with_range(*id, move_on),
        };
        self.is_on = matches!(found, Ok(true));
        self.has_place |= self.is_on;
        found
    }
}

/// Starting point of a move.
enum Begin {
    Anew(KeyRange),
    /// The range, unless a range in this direction is open: then that one continues.
    IfTurned(KeyRange),
}

impl Drop for Cursor {
    fn drop(&mut self) {
        if let Reach::Txn(tx, id) = &self.range {
            tx.drop_range(*id);
        }
    }
}

/// Returns the later of two lower bounds.
fn later(within: &Bound<Vec<u8>>, asked: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match (within, &asked) {
        (Bound::Unbounded, _) => asked,
        (Bound::Included(least), Bound::Included(key) | Bound::Excluded(key)) if key >= least => {
            asked
        }
        (Bound::Excluded(least), Bound::Included(key) | Bound::Excluded(key)) if key > least => {
            asked
        }
        _ => within.clone(),
    }
}

/// Returns the earlier of two upper bounds.
fn earlier(within: &Bound<Vec<u8>>, asked: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match (within, &asked) {
        (Bound::Unbounded, _) => asked,
        (Bound::Included(most), Bound::Included(key) | Bound::Excluded(key)) if key <= most => {
            asked
        }
        (Bound::Excluded(most), Bound::Included(key) | Bound::Excluded(key)) if key < most => asked,
        _ => within.clone(),
    }
}
