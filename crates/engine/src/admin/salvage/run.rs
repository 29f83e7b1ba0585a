//! A complete salvage.
//!
//! Structures are walked from their roots, as far as pages are sound and fit together. If that
//! leaves gaps, all pages of the file are searched for leaves, buckets and data pages that nothing
//! refers to. Their entries are written if they are in a gap. Such pages may be out of date: a
//! freed page keeps its bytes until it is used again.

use std::collections::BTreeMap;
use std::io::Write;

use millpond_base::PageId;

use crate::admin::check::{CATALOG, Fault, Named, Roots, Structure};
#[cfg(feature = "internals")]
use crate::admin::dump::DumpWriter;
#[cfg(feature = "internals")]
use crate::admin::salvage::others::Other;
use crate::admin::salvage::report::{Lost, SalvageReport, SalvagedTree};
use crate::admin::salvage::scan::fills_a_gap;
use crate::admin::salvage::tree::{Saver, Source};
use crate::io::PageStore;

/// Reason that a salvage ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SalvageError {
    /// The saved entries could not be written.
    #[error("what was saved could not be written: {0}")]
    Write(std::io::Error),
}

millpond_base::from_variants! { SalvageError {
    Write(std::io::Error),
} }

/// The readable part of the catalog.
struct Catalog {
    named: Vec<Named>,
    whole: bool,
}

/// Writes everything that is intact in `store`, which was opened by
/// [`PageStore::open_for_salvage`], to `out`. `catalog` tells how to read its catalog.
///
/// # Errors
/// `out` failed. Faults of the store are in the report.
#[cfg(feature = "internals")]
pub fn salvage<W: Write>(
    store: &PageStore,
    catalog: Roots,
    out: &mut DumpWriter<W>,
) -> Result<SalvageReport, SalvageError> {
    let mut saver = Saver::new(store);
    saver.report.path = store.path().to_path_buf();
    saver.report.lost_cache = store.lost_cache();
    saver.report.was_closed = store.superblock().is_some_and(|block| block.clean);
    let Catalog { named, whole } = read_catalog(&mut saver, catalog)?;
    let mut names = BTreeMap::new();
    let mut others = BTreeMap::from([(catalog.owner, None)]);
    for Named { name, owner, kind, root, types } in named {
        names.insert(owner, name.clone());
        out.structure_of(kind, &name, &types)?;
        let source = Source { name: name.clone(), owner };
        let mut sink = |key: &[u8], value: &[u8]| out.entry(key, value);
        let (entries, losses) = if kind == Structure::Tree {
            others.insert(owner, None);
            saver.walk(&source, root, &mut sink)?
        } else {
            let mut other = Other { source, kind, seed: None };
            let walked = saver.walk_other(&mut other, root, &mut sink)?;
            others.insert(owner, Some(other));
            walked
        };
        saver.report.trees.push(SalvagedTree { name, kind, owner, entries, found: 0, losses });
    }
    if !whole || !saver.gaps.is_empty() || !saver.report.was_closed {
        fill_gaps(&mut saver, catalog, &mut names, out)?;
    }
    if !whole || !saver.other_gaps.is_empty() || !saver.report.was_closed {
        saver.fill_other_gaps(&mut others, out)?;
    }
    Ok(saver.report)
}

/// Returns the names of the structures of `store` by their ids, as far as its catalog can be read.
#[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
pub(crate) fn names(store: &PageStore) -> BTreeMap<u32, String> {
    let found = read_catalog(&mut Saver::new(store), CATALOG);
    let named = found.map(|catalog| catalog.named).unwrap_or_default();
    let catalog = (CATALOG.owner, "catalog".to_string());
    named.into_iter().map(|named| (named.owner, named.name)).chain([catalog]).collect()
}

fn read_catalog(saver: &mut Saver<'_>, catalog: Roots) -> Result<Catalog, SalvageError> {
    let source = Source { name: "catalog".to_string(), owner: catalog.owner };
    let mut named: BTreeMap<String, Named> = BTreeMap::new();
    let mut wrong = 0;
    let mut take = |key: &[u8], value: &[u8]| {
        match (catalog.decode)(key, value) {
            Ok(Some(found)) => {
                named.insert(found.name.clone(), found);
            }
            Ok(None) => {}
            Err(_) => wrong += 1,
        }
        Ok(())
    };
    let mut lost = 0;
    match saver.store.catalog_root() {
        Some(root) => lost = saver.walk(&source, root, &mut take)?.1,
        None => {
            saver.gaps.push((catalog.owner, crate::btree::Fences::default()));
            saver.lose(None, PageId(0), Fault::NoCatalog, Lost::Names);
        }
    }
    if !saver.gaps.is_empty() {
        let leaves = saver.scan(|owner, _| owner == catalog.owner);
        for leaf in leaves {
            saver.found_leaf(&source, &leaf, &mut take)?;
        }
    }
    let whole = lost == 0 && wrong == 0 && saver.gaps.is_empty();
    // The gaps of the catalog are filled as well as they can be.
    saver.gaps.clear();
    Ok(Catalog { named: named.into_values().collect(), whole })
}

/// Writes the entries of leaves that are in gaps of the walks.
#[cfg(feature = "internals")]
fn fill_gaps<W: Write>(
    saver: &mut Saver<'_>,
    catalog: Roots,
    names: &mut BTreeMap<u32, String>,
    out: &mut DumpWriter<W>,
) -> Result<(), SalvageError> {
    let known = |owner: u32| owner == catalog.owner || names.contains_key(&owner);
    let gaps = std::mem::take(&mut saver.gaps);
    let leaves = saver.scan(|owner, fences| !known(owner) || fills_a_gap(&gaps, owner, fences));
    let mut current = None;
    for leaf in leaves {
        let owner = leaf.owner;
        let name = names.entry(owner).or_insert_with(|| format!("unnamed-{owner}")).clone();
        if current != Some(owner) {
            out.tree(&name)?;
            current = Some(owner);
        }
        let source = Source { name: name.clone(), owner };
        let entries = saver.found_leaf(&source, &leaf, &mut |key, value| out.entry(key, value))?;
        let trees = &mut saver.report.trees;
        let place = match trees.iter().position(|tree| tree.owner == owner) {
            Some(place) => place,
            None => {
                trees.push(SalvagedTree { name, owner, ..SalvagedTree::default() });
                trees.len() - 1
            }
        };
        trees[place].found += entries;
    }
    Ok(())
}
