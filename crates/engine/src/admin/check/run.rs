//! A complete check.
//!
//! First the walk from the catalog down, then the sweep over everything else. Each page is read
//! once, including those of the catalog and of the store itself. Nothing is written, and no content
//! of a page is trusted before it was checked.

use std::path::Path;

use millpond_base::PageId;
use millpond_device::{AlignedBuffer, FileOptions};

use crate::admin::check::fault::Fault;
use crate::admin::check::report::{PageCounts, Problem, Report};
use crate::admin::check::rows::{Rows, compare, rows_beside};
use crate::admin::check::structure::{Named, Roots};
use crate::admin::check::sweep::Sweep;
use crate::admin::check::walk::Walk;
use crate::io::{OpenError, PageStore};
use crate::page::superblock::{Placement, Superblock};
use crate::page::{PageHeader, PageSize, PageType};
use crate::store::entry::{Structure, TypeNames};

/// Progress of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Pages checked so far.
    pub done: u64,
    /// Pages of the file.
    pub pages: u64,
}

/// Options of a check.
pub struct CheckOptions<'a> {
    /// Maximum number of problems to keep; further ones are counted.
    pub problems_max: usize,
    /// Numbers of entries of trees according to the log of a closed store; other trees are not
    /// compared. [`check`] reads the log beside the store.
    pub rows: Rows,
    /// The page size, if neither superblock nor free map has it.
    pub page_size: Option<PageSize>,
    /// Receives the progress of the check from time to time; returning `false` stops the check.
    pub progress: Option<&'a mut dyn FnMut(Progress) -> bool>,
}

impl Default for CheckOptions<'_> {
    fn default() -> Self {
        CheckOptions { problems_max: 1000, rows: Rows::new(), page_size: None, progress: None }
    }
}

impl CheckOptions<'_> {
    fn tell(&mut self, done: u64, pages: u64) -> Result<(), CheckError> {
        let Some(progress) = &mut self.progress else { return Ok(()) };
        if progress(Progress { done, pages }) { Ok(()) } else { Err(CheckError::Interrupted) }
    }
}

/// Reason that there is no report.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The file could not be opened, or has nothing that looks like a store.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The progress callback stopped the check.
    #[error("the check was interrupted")]
    Interrupted,
}

/// Checks the store in the file at `path`, which nobody has open for writing. `catalog` tells how
/// to read its catalog.
///
/// # Errors
/// The file cannot be opened, is in use, or is not a store at all; or `progress` stopped the check.
/// Faults of the store itself are in the report.
pub fn check(
    path: &Path,
    catalog: Roots,
    mut options: CheckOptions<'_>,
) -> Result<Report, CheckError> {
    let file = FileOptions { read_only: true, ..FileOptions::default() };
    let store = PageStore::open_for_salvage(path, options.page_size, &file)?;
    let beside = rows_beside(&store, path);
    let refused = beside.map(|rows| {
        if options.rows.is_empty() {
            options.rows = rows;
        }
    });
    let mut report = check_store(&store, catalog, &mut options)?;
    if let Err(fault) = refused {
        report.problems.push(Problem { page: PageId(0), offset: 0, structure: None, fault });
    }
    Ok(report)
}

/// Checks a store that was opened by [`PageStore::open_for_salvage`].
///
/// # Errors
/// The progress callback stopped the check.
pub fn check_store(
    store: &PageStore,
    catalog: Roots,
    options: &mut CheckOptions<'_>,
) -> Result<Report, CheckError> {
    let superblock = store.superblock().copied();
    let there = store.pages();
    let closed = superblock.filter(|block| block.clean);
    let pages = closed.map_or(there, |block| block.pages.min(there));
    let mut walk = Walk::new(store, pages, catalog, options.problems_max);
    look_at_superblock(store, &mut walk);
    match superblock.and_then(|block| block.catalog_root) {
        Some(root) => walk.add(Named {
            name: "catalog".to_string(),
            owner: catalog.owner,
            kind: Structure::Tree,
            root,
            types: TypeNames::default(),
        }),
        // A store that was never closed has no catalog yet; the report states that it was not
        // closed.
        None if superblock.is_some_and(|block| !block.clean) => {}
        None => walk.findings.add(PageId(0), None, Fault::NoCatalog),
    }
    let no_catalog = walk.structures.is_empty();
    while walk.step() {
        options.tell(walk.reached_count, pages)?;
    }
    compare(&mut walk, &options.rows);
    // Without a superblock the maps may be those of an open store.
    let mut sweep = Sweep::new(&mut walk, closed.is_some(), no_catalog);
    while sweep.step() {
        options.tell(sweep.done(), pages)?;
    }
    options.tell(pages, pages)?;
    let counts = sweep.finish();
    Ok(report(walk, counts, superblock))
}

fn report(mut walk: Walk<'_>, counts: PageCounts, superblock: Option<Superblock>) -> Report {
    if walk.store.placement() == Placement::OutOfPlace {
        for problem in &mut walk.findings.problems {
            problem.offset = walk.store.offset_of_page(problem.page).unwrap_or(0);
        }
    }
    let by_type = (0u8..=u8::MAX).zip(walk.by_type).filter(|(_, pages)| *pages > 0);
    Report {
        path: walk.store.path().to_path_buf(),
        page_size: walk.store.page_size(),
        pages: walk.pages,
        superblock,
        counts,
        by_type: by_type.map(|(page_type, pages)| (PageType(page_type), pages)).collect(),
        structures: walk.structures,
        problems: walk.findings.problems,
        problems_left_out: walk.findings.left_out,
    }
}

fn look_at_superblock(store: &PageStore, walk: &mut Walk<'_>) {
    let page = PageId(0);
    let Some(block) = store.superblock() else {
        let mut bytes = AlignedBuffer::new(store.page_size().bytes());
        let fault = match store.device().read(0, &mut bytes) {
            Err(source) => crate::io::ReadError::Device { page, error: source }.into(),
            Ok(()) => match Superblock::read(&bytes) {
                Err(error) => Fault::Superblock(error),
                // It was not sound a moment ago.
                Ok(_) => Fault::NoCatalog,
            },
        };
        return walk.findings.add(page, None, fault);
    };
    let mut bytes = AlignedBuffer::new(store.page_size().bytes());
    if let Err(error) = store.read(page, &mut bytes) {
        walk.findings.add(page, None, error.into());
    }
    let (found, expected) = (PageHeader::read(&bytes).kind.0, PageType::SUPER.0);
    if found != expected {
        walk.findings.add(page, None, Fault::OwnType { found, expected });
    }
    if let Some(damage) = store.map_damage() {
        walk.findings.add(page, None, Fault::PageMap(damage.clone()));
    }
    if store.placement() == Placement::InPlace && block.pages > store.pages() {
        let fault = Fault::Truncated { expected: block.pages, found: store.pages() };
        walk.findings.add(PageId(store.pages()), None, fault);
    }
    if !block.clean {
        walk.findings.add(page, None, Fault::NotClosed { pid: block.pid });
    }
}
