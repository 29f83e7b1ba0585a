//! A cursor that keeps alive what it reads.

use std::ops::Bound;
use std::sync::Arc;

use millpond::{KeyRange, RawTree, Snapshot};

use crate::fault::Fault;
use crate::range_cell::{Context, RangeCell, Source};
use crate::shared::Shared;

/// A place among the entries of a tree within a range of keys, which seeks and moves both ways.
///
/// The entry that it is on is a copy: it stays until the next call.
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
    /// The transaction has it.
    Txn(Arc<Shared>, u64),
}

impl Cursor {
    fn new(range: Reach, within: KeyRange) -> Cursor {
        let (key, value) = (Vec::new(), Vec::new());
        Cursor { range, within, key, value, has_place: false, is_on: false }
    }

    /// A cursor of what is committed in `tree`.
    pub fn alone(tree: &RawTree, within: KeyRange) -> Cursor {
        let source = Source { tree: tree.clone(), context: Context::Autocommit };
        Cursor::new(Reach::Own(Box::new(RangeCell::of(source))), within)
    }

    /// A cursor of what `snapshot` shows of `tree`.
    pub fn in_snapshot(snapshot: &Snapshot, tree: &RawTree, within: KeyRange) -> Cursor {
        let source = Source { tree: tree.clone(), context: Context::Snapshot(snapshot.clone()) };
        Cursor::new(Reach::Own(Box::new(RangeCell::of(source))), within)
    }

    pub(crate) fn in_transaction(tx: Arc<Shared>, id: u64, within: KeyRange) -> Cursor {
        Cursor::new(Reach::Txn(tx, id), within)
    }

    /// The entry that it is on.
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.is_on.then_some((&*self.key, &*self.value))
    }

    /// Goes to the first entry; returns whether there is one.
    ///
    /// # Errors
    /// Those of reading; [`Fault::TransactionOver`] and [`Fault::CursorOver`].
    pub fn first(&mut self) -> Result<bool, Fault> {
        self.go(true, self.within.clone())
    }

    /// Goes to the last entry; returns whether there is one.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn last(&mut self) -> Result<bool, Fault> {
        self.go(false, self.within.clone())
    }

    /// Goes to the first entry at or above `key`; returns whether there is one.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn seek(&mut self, key: &[u8]) -> Result<bool, Fault> {
        let start = later(&self.within.start, Bound::Included(key.to_vec()));
        self.go(true, KeyRange { start, end: self.within.end.clone() })
    }

    /// Goes to the last entry at or below `key`; returns whether there is one.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn seek_back(&mut self, key: &[u8]) -> Result<bool, Fault> {
        let end = earlier(&self.within.end, Bound::Included(key.to_vec()));
        self.go(false, KeyRange { start: self.within.start.clone(), end })
    }

    /// Goes to the entry behind the one that it is on, or was on last; a new cursor to the first
    /// one. Returns whether there is one; if not, it stays where it was, and a later call may find
    /// more.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    #[expect(clippy::should_implement_trait, reason = "it may move back, too")]
    pub fn next(&mut self) -> Result<bool, Fault> {
        self.step(true)
    }

    /// Goes to the entry before the one that it is on, or was on last; a new cursor to the last
    /// one. Otherwise as [`Cursor::next`].
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn prev(&mut self) -> Result<bool, Fault> {
        self.step(false)
    }

    /// Forgets what was read ahead of the entry that it is on: the next move sees what is there
    /// then. In a transaction nothing is read ahead of what it may see.
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
    /// There, unless the range goes on in this direction.
    IfTurned(KeyRange),
}

impl Drop for Cursor {
    fn drop(&mut self) {
        if let Reach::Txn(tx, id) = &self.range {
            tx.drop_range(*id);
        }
    }
}

/// The later of two beginnings.
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

/// The earlier of two ends.
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
