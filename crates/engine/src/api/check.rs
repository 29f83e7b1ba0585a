//! Checks a store while it is in use.
//!
//! The check walks a tree page by page, without locks. In memory it needs one path from the root to
//! a leaf. The pages are marked as a scan's, so they leave the pool first. Concurrent changes can
//! look like damage, so a tree with faults is walked again while writers wait, and only the faults
//! of the second walk are reported. Hash indexes and heaps have no locks: a fault there counts only
//! if three walks find it.

use std::collections::HashSet;
use std::fmt;
use std::ops::ControlFlow;

use millpond_base::PageId;

use crate::api::db::Db;
use crate::pool::mini_transaction::RowCount;
use crate::store::entry::Structure;
use crate::store::error::Error;

/// Pages between two calls of a watch.
const WATCH_PAGES: u64 = 256;
/// Walks that must agree on a fault of a hash index or a heap.
const WALKS: usize = 3;

/// The findings of [`Db::check`].
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// db.tree::<String, u32>("birds")?.put("heron", &3)?;
/// db.heap::<String>("notes")?.append("quiet")?;
/// for structure in db.check()?.structures {
///     println!("{structure}");
///     assert!(structure.is_sound());
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// The checked structures, in the order of their names.
    pub structures: Vec<CheckedStructure>,
    /// Set if the watch of [`Db::check_with`] ended the check early.
    pub is_partial: bool,
}

impl CheckReport {
    /// Returns `true` if the check found no fault.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// assert!(db.check()?.is_sound());
    /// # Ok(()) }
    /// ```
    pub fn is_sound(&self) -> bool {
        self.structures.iter().all(CheckedStructure::is_sound)
    }
}

/// A structure that was checked.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// db.tree::<String, u32>("birds")?.put("heron", &3)?;
/// let report = db.check()?;
/// assert_eq!((report.structures[0].name.as_str(), report.structures[0].entries), ("birds", 1));
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CheckedStructure {
    /// Name of the structure.
    pub name: String,
    /// Kind of the structure.
    pub kind: Structure,
    /// Entries of a tree or hash index, or records of a heap. Approximate if others wrote during
    /// the check.
    pub entries: u64,
    /// The faults, each with its page.
    pub faults: Vec<(PageId, String)>,
}

impl CheckedStructure {
    /// Returns `true` if the structure has no fault.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.tree::<String, u32>("birds")?;
    /// assert!(db.check()?.structures.iter().all(|structure| structure.is_sound()));
    /// # Ok(()) }
    /// ```
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }
}

impl fmt::Display for CheckedStructure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CheckedStructure { name, kind, entries, faults } = self;
        write!(f, "{kind} '{name}': {entries} entries, {} faults", faults.len())?;
        faults.iter().try_for_each(|(page, fault)| write!(f, "\n  page {page}: {fault}"))
    }
}

/// The progress of a check.
///
/// ```
/// # use millpond::{Db, Error, Options};
/// # fn main() -> Result<(), Error> {
/// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// use std::ops::ControlFlow;
/// db.check_with(&mut |progress| {
///     println!("{} of {} structures", progress.structures, progress.structures_all);
///     ControlFlow::Continue(())
/// })?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CheckProgress {
    /// Structures checked so far.
    pub structures: usize,
    /// Structures to check in all.
    pub structures_all: usize,
    /// Pages of trees read so far.
    pub pages: u64,
}

/// Receives the progress of a check; `Break` ends the check.
pub type CheckWatch<'w> = dyn FnMut(CheckProgress) -> ControlFlow<()> + 'w;

/// Number of entries, and the faults.
type Found = (u64, Vec<(PageId, String)>);

impl Db {
    /// Checks every tree, hash index and heap, one after the other, while the store is in use.
    ///
    /// The check reads all pages of a tree and compares each with the separators of its parent,
    /// with memory for one path from the root to a leaf. A hash index or a heap takes some bytes
    /// for each page. Concurrent changes are not reported as faults: a tree that seems damaged is
    /// walked a second time, and writers wait during that walk. The check skips a structure that is
    /// dropped in the meantime; [`Db::drop_tree`] fails with [`Error::TreeInUse`] for the structure
    /// that is being checked.
    ///
    /// `millpond check` checks the file of a closed store, including the map of free pages and the
    /// pages that nothing refers to.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let birds = db.tree::<String, u32>("birds")?;
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| (0..1000).try_for_each(|i| birds.put(&format!("{i}"), &i).map(drop)));
    ///     assert!(db.check()?.is_sound());
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// A page could not be read, or a lock was unavailable for the second walk of a tree.
    pub fn check(&self) -> Result<CheckReport, Error> {
        self.check_with(&mut |_| ControlFlow::Continue(()))
    }

    /// Like [`Db::check`], with progress: calls `watch` after each structure, and after each 256
    /// pages of a tree. The watch may wait, to limit the load on the device, and returns `Break` to
    /// end the check.
    ///
    /// ```
    /// # use std::{ops::ControlFlow, time::Duration};
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let report = db.check_with(&mut |progress| {
    ///     println!("{} of {}", progress.structures, progress.structures_all);
    ///     std::thread::sleep(Duration::from_millis(1));
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert!(report.is_sound());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Db::check`].
    pub fn check_with(&self, watch: &mut CheckWatch<'_>) -> Result<CheckReport, Error> {
        let all = self.trees()?;
        let mut report = CheckReport::default();
        let mut progress = CheckProgress { structures: 0, structures_all: all.len(), pages: 0 };
        for (name, entry) in all {
            let kind = entry.structure;
            let found = match kind {
                Structure::Tree => self.check_tree(&name, &mut progress, watch),
                Structure::Hash => self.check_hash_index(&name).map(Some),
                Structure::Heap => self.check_heap(&name).map(Some),
            };
            progress.structures += 1;
            match found {
                Ok(Some((entries, faults))) => {
                    report.structures.push(CheckedStructure { name, kind, entries, faults });
                }
                Err(Error::NoTree { .. } | Error::NoStructure { .. }) => {}
                Ok(None) => report.is_partial = true,
                Err(error) => return Err(error),
            }
            if report.is_partial || watch(progress).is_break() {
                report.is_partial |= progress.structures < progress.structures_all;
                break;
            }
        }
        Ok(report)
    }

    /// Checks one tree; returns `None` if the watch ended the check.
    fn check_tree(
        &self,
        name: &str,
        progress: &mut CheckProgress,
        watch: &mut CheckWatch<'_>,
    ) -> Result<Option<Found>, Error> {
        let tree = self.open_tree(name)?;
        let mut is_over = false;
        let mut next = || {
            progress.pages += 1;
            is_over = is_over
                || (progress.pages.is_multiple_of(WATCH_PAGES) && watch(*progress).is_break());
            !is_over
        };
        let (owner, transactions) =
            (tree.handle().btree().owner(), tree.handle().store().transactions());
        let rows = transactions.rows();
        let mut walk = || -> Result<Found, Error> {
            let counted = rows.of(owner);
            let report = tree.handle().look_at_rest(|tree| tree.check_lean(&mut next))?;
            let faults = report.violations.into_iter();
            let mut faults: Vec<_> =
                faults.map(|(page, wrong)| (page, wrong.to_string())).collect();
            let (found, is_same) = (report.entries, |state| rows.state(owner) == state);
            if let Some((RowCount { all, .. }, state)) = counted
                && all != found
                && is_same(state)
            {
                let root = tree.handle().btree().root();
                faults.push((root, format!("{all} entries are counted, and the tree has {found}")));
            }
            Ok((found, faults))
        };
        let mut found = walk();
        if !matches!(&found, Ok((_, faults)) if faults.is_empty()) {
            found = transactions.while_unchanged(owner, walk);
        }
        let found = found?;
        Ok((!is_over).then_some(found))
    }

    fn check_hash_index(&self, name: &str) -> Result<Found, Error> {
        let index = self.open_hash_index(name)?;
        agreed(&mut || {
            let report = index.handle().look_at_rest(|index| index.check())?;
            let faults = report.violations.into_iter();
            Ok((report.entries, faults.map(|(page, fault)| (page, fault.to_string())).collect()))
        })
    }

    fn check_heap(&self, name: &str) -> Result<Found, Error> {
        let heap = self.open_heap(name)?;
        agreed(&mut || {
            let report = heap.handle().look_at_rest(|heap| heap.check())?;
            let faults = report.violations.into_iter();
            Ok((report.records, faults.map(|(page, fault)| (page, fault.to_string())).collect()))
        })
    }
}

/// Returns the faults that all walks find. The first walk is enough if it finds none.
fn agreed(walk: &mut dyn FnMut() -> Result<Found, Error>) -> Result<Found, Error> {
    let (mut entries, mut faults) = walk()?;
    for _ in 1..WALKS {
        if faults.is_empty() {
            break;
        }
        let (entries_now, found) = walk()?;
        let found: HashSet<(PageId, String)> = found.into_iter().collect();
        faults.retain(|fault| found.contains(fault));
        entries = entries_now;
    }
    Ok((entries, faults))
}
