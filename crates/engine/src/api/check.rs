//! Checking a store while it is used.
//!
//! A tree is walked page by page, without locks: in memory for one path from the root to a leaf,
//! and with the pages marked as a scan's, so that they leave the pool first. What others change
//! during the walk can look like damage. So a tree in which the walk finds faults is walked again
//! while nobody writes to it, and only what that walk finds is reported. Hash indexes and heaps
//! have no locks; of theirs, what three walks find is reported.

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

/// What [`Db::check`] found.
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
    /// The structures, in the order of their names.
    pub structures: Vec<CheckedStructure>,
    /// Whether the watch of [`Db::check_with`] ended the check before its end.
    pub is_partial: bool,
}

impl CheckReport {
    /// Returns whether no fault was found.
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
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Structure,
    /// Entries of a tree or hash index, records of a heap: about as many as were there, if others
    /// wrote meanwhile.
    pub entries: u64,
    /// What is wrong with it, and on which page.
    pub faults: Vec<(PageId, String)>,
}

impl CheckedStructure {
    /// Returns whether no fault was found in it.
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

/// How far a check has come.
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
    /// Structures that were checked.
    pub structures: usize,
    /// Structures that there are.
    pub structures_all: usize,
    /// Pages of trees that were read.
    pub pages: u64,
}

/// Looks at the progress of a check; `Break` ends it.
pub type CheckWatch<'w> = dyn FnMut(CheckProgress) -> ControlFlow<()> + 'w;

/// Entries and faults.
type Found = (u64, Vec<(PageId, String)>);

impl Db {
    /// Checks every tree, hash index and heap, one after the other, while the store is used.
    ///
    /// Of a tree, all pages are read, and each is compared with what its parent demands; that takes
    /// memory for one path from the root to a leaf. Of a hash index or a heap it takes some bytes
    /// for each page. What others change meanwhile is not reported as a fault. A tree that seems
    /// damaged is walked a second time, and nobody writes to it during that walk. A structure that
    /// is dropped meanwhile is left out; [`Db::drop_tree`] fails with [`Error::TreeInUse`] for the
    /// one that is being checked.
    ///
    /// `millpond check` checks the file of a store that is closed, the map of free pages and the
    /// pages that nothing refers to among it.
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
    /// A page could not be read; or a lock was unavailable for the second walk of a tree.
    pub fn check(&self) -> Result<CheckReport, Error> {
        self.check_with(&mut |_| ControlFlow::Continue(()))
    }

    /// Checks as [`Db::check`] does, and calls `watch` with the progress: after each structure, and
    /// after each 256 pages of a tree. The watch may wait there, to limit the load on the device,
    /// and returns `Break` to end the check.
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
    /// As [`Db::check`].
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

    /// `None`: the watch ended it.
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

/// What several walks find; one is enough if it finds nothing.
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
