//! Walks through a hash index or a heap that skip damaged pages.
//!
//! Both are directories of pages that state their own range: of hashes, or of numbers of data
//! pages. A child is trusted if it has the range that its parent leads to. Ranges get smaller from
//! parent to child, so every page is visited once whatever is in the file. Entries of a range that
//! was not reached are searched for in all pages.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use millpond_base::PageId;

use crate::admin::check::{BATCH, Fault, PageReader, Structure, owns};
use crate::admin::dump::DumpWriter;
use crate::admin::salvage::gaps::Range;
use crate::admin::salvage::report::{Lost, SalvagedTree};
use crate::admin::salvage::tree::{Bad, Saver, Sink, Source};
use crate::page::{PageHeader, PageType, View};
use crate::pool::Swip;
use crate::{hash_index, heap};

/// A page below a directory.
struct Part {
    at: usize,
    swip: Swip,
    is_directory: bool,
    range: Range,
}

/// A page to be visited.
struct Next {
    page: PageId,
    /// Expected range, and whether the page is a directory; `None` for the root.
    expected: Option<(bool, Range)>,
}

impl Next {
    fn is_low(&self) -> bool {
        matches!(self.expected, Some((false, _)))
    }

    fn range(&self) -> Range {
        self.expected.as_ref().map_or(0..=u64::MAX, |(_, range)| range.clone())
    }
}

/// A structure that is not a tree.
#[derive(Clone)]
pub(super) struct Other {
    pub(super) source: Source,
    pub(super) kind: Structure,
    /// Seed of a hash index, once its root was read.
    pub(super) seed: Option<u64>,
}

impl Other {
    fn range(&self, page: View<'_>) -> Range {
        match self.kind {
            Structure::Heap => heap::stored_numbers(page),
            Structure::Hash | Structure::Tree => hash_index::stored_hashes(page),
        }
    }

    fn parts(&self, page: View<'_>) -> Vec<Part> {
        match self.kind {
            Structure::Heap => {
                let part = |child: heap::StoredChild| Part {
                    at: child.at,
                    swip: child.swip,
                    is_directory: child.is_directory,
                    range: child.numbers,
                };
                heap::stored_children(page).into_iter().map(part).collect()
            }
            Structure::Hash | Structure::Tree => {
                let part = |child: hash_index::StoredChild| Part {
                    at: child.at,
                    swip: child.swip,
                    is_directory: child.is_directory,
                    range: child.hashes,
                };
                hash_index::stored_children(page).into_iter().map(part).collect()
            }
        }
    }

    /// Returns the fault of a page, as far as the page alone shows it.
    fn fault_of(&self, bytes: &[u8]) -> Option<Fault> {
        let header = PageHeader::read(bytes);
        if header.owner != self.source.owner || !owns(self.kind, header.kind) {
            return Some(Fault::Type { found: header.kind.0 });
        }
        match self.kind {
            Structure::Heap => heap::check_page(bytes).into_iter().next().map(Fault::from),
            Structure::Hash | Structure::Tree => {
                let seed = self.seed.unwrap_or_else(|| hash_index::seed_in(bytes));
                hash_index::check_page(bytes, seed).into_iter().next().map(Fault::from)
            }
        }
    }

    fn lost(&self, range: Range) -> Lost {
        match self.kind {
            Structure::Heap => Lost::Records(range),
            Structure::Hash | Structure::Tree => Lost::Hashes(range),
        }
    }

    /// Passes the entries of a data page, or those of a bucket whose hashes `wanted` accepts, to
    /// `sink`. Returns their number.
    fn give(
        &self,
        page: View<'_>,
        bytes: &[u8],
        wanted: &dyn Fn(u64) -> bool,
        sink: &mut Sink<'_>,
    ) -> io::Result<u64> {
        let mut given = 0;
        if self.kind == Structure::Heap {
            for (id, record) in heap::stored_records(page, bytes) {
                sink(id.0.to_string().as_bytes(), record)?;
                given += 1;
            }
            return Ok(given);
        }
        for i in 0..hash_index::stored_count(page) {
            let (key, value) = hash_index::stored_entry(page, bytes, i);
            if self.seed.is_none_or(|seed| wanted(hash_index::hash_of(key, seed))) {
                sink(key, value)?;
                given += 1;
            }
        }
        Ok(given)
    }
}

fn is_directory(bytes: &[u8]) -> bool {
    matches!(PageHeader::read(bytes).kind, PageType::HASH_ROOT | PageType::HEAP_DIRECTORY)
}

impl Saver<'_> {
    /// Passes all entries of the structure at `root` to `sink`. Returns their number, and the
    /// number of lost ranges.
    pub(super) fn walk_other(
        &mut self,
        other: &mut Other,
        root: PageId,
        sink: &mut Sink<'_>,
    ) -> io::Result<(u64, u64)> {
        let (mut entries, mut losses) = (0, 0);
        let mut stack = vec![Next { page: root, expected: None }];
        while !stack.is_empty() {
            let batch = take_batch(&mut stack);
            let pages: Vec<PageId> = batch.iter().map(|next| next.page).collect();
            let mut reader = std::mem::replace(&mut self.reader, PageReader::new(0));
            let results = reader.read(self.store, &pages);
            for (i, (next, result)) in batch.into_iter().zip(results).enumerate() {
                let (view, bytes) = (reader.view(i), reader.bytes(i));
                let trusted = result.map_err(Fault::from);
                match trusted.and_then(|()| self.trusted(other, &next, view, bytes)) {
                    Err(fault) => {
                        losses += 1;
                        self.lose_range(other, Bad { page: next.page, fault }, next.range());
                    }
                    Ok(()) if is_directory(bytes) => {
                        losses += self.below(other, next.page, view, &mut stack);
                    }
                    Ok(()) => entries += other.give(view, bytes, &|_| true, sink)?,
                }
            }
            self.reader = reader;
        }
        Ok((entries, losses))
    }

    /// Returns `true` if a page matches its parent; it then counts as reached.
    fn trusted(
        &mut self,
        other: &mut Other,
        next: &Next,
        page: View<'_>,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        if let Some(fault) = other.fault_of(bytes) {
            return Err(fault);
        }
        let (found, range) = (PageHeader::read(bytes).kind.0, other.range(page));
        let fits = match &next.expected {
            Some(expected) => *expected == (is_directory(bytes), range.clone()),
            None => is_directory(bytes) && *range.start() == 0,
        };
        if !fits {
            return Err(Fault::Type { found });
        }
        if !self.reached.set(next.page) {
            return Err(Fault::Twice { parent: None });
        }
        if next.expected.is_none() && other.kind == Structure::Hash {
            other.seed = Some(hash_index::seed_in(bytes));
        }
        if next.expected.is_none() && !self.report.was_closed && *range.end() < u64::MAX {
            // The root may have grown since it was written.
            self.other_gaps.add(other.source.owner, *range.end() + 1..=u64::MAX);
        }
        Ok(())
    }

    fn below(&mut self, other: &Other, page: PageId, view: View<'_>, stack: &mut Vec<Next>) -> u64 {
        let (mut losses, mut children) = (0, Vec::new());
        for Part { at, swip, is_directory, range } in other.parts(view) {
            if swip.is_evicted() {
                children.push(Next { page: swip.page(), expected: Some((is_directory, range)) });
            } else if swip != Swip::NULL {
                losses += 1;
                let fault = Fault::Swip { at, word: swip.0 };
                self.lose_range(other, Bad { page, fault }, range);
            } else if !self.report.was_closed {
                // It may have been there, or have come since.
                self.other_gaps.add(other.source.owner, range);
            }
        }
        stack.extend(children.into_iter().rev());
        losses
    }

    fn lose_range(&mut self, other: &Other, bad: Bad, range: Range) {
        self.other_gaps.add(other.source.owner, range.clone());
        self.lose(Some(&other.source.name), bad.page, bad.fault, other.lost(range));
    }

    /// Writes the entries of buckets and data pages that are in gaps of the walks, or whose
    /// structure is unknown. `known` are the structures that were walked, by owner.
    pub(super) fn fill_other_gaps<W: Write>(
        &mut self,
        known: &mut BTreeMap<u32, Option<Other>>,
        out: &mut DumpWriter<W>,
    ) -> io::Result<()> {
        let mut gaps = std::mem::take(&mut self.other_gaps);
        gaps.sort();
        let mut found: Vec<(u32, u64, PageId)> = Vec::new();
        let mut nameless = BTreeSet::new();
        self.each_candidate(&mut |page, view, bytes| {
            let header = PageHeader::read(bytes);
            let kind = match header.kind {
                PageType::HASH_BUCKET => Structure::Hash,
                PageType::HEAP_DATA => Structure::Heap,
                _ => return,
            };
            let owner = header.owner;
            let other = known.entry(owner).or_insert_with(|| {
                nameless.insert(owner);
                let source = Source { name: format!("unnamed-{owner}"), owner };
                Some(Other { source, kind, seed: None })
            });
            let Some(other) = other.as_ref().filter(|other| other.kind == kind) else { return };
            let is_sound = match (kind, other.seed) {
                // Without its root an index has no seed, and hashes cannot be verified.
                (Structure::Hash, None) => hash_index::is_readable(bytes),
                _ => other.fault_of(bytes).is_none(),
            };
            let range = other.range(view);
            if is_sound && (nameless.contains(&owner) || gaps.touch(owner, &range)) {
                found.push((owner, *range.start(), page));
            }
        });
        found.sort_unstable();
        let mut current = None;
        for (owner, _, page) in found {
            let Some(Some(other)) = known.get(&owner) else { continue };
            if current != Some(owner) {
                out.structure(other.kind, &other.source.name)?;
                current = Some(owner);
            }
            let wanted = |hash: u64| gaps.touch(owner, &(hash..=hash));
            let result = self.reader.read(self.store, &[page]).pop();
            if matches!(result, Some(Ok(()))) {
                let (view, bytes) = (self.reader.view(0), self.reader.bytes(0));
                let given =
                    other.give(view, bytes, &wanted, &mut |key, value| out.entry(key, value))?;
                self.count_found(other.clone(), given);
            }
        }
        Ok(())
    }

    fn count_found(&mut self, other: Other, entries: u64) {
        let Other { source: Source { name, owner }, kind, .. } = other;
        let trees = &mut self.report.trees;
        match trees.iter_mut().find(|tree| tree.owner == owner) {
            Some(tree) => tree.found += entries,
            None => {
                let found = entries;
                trees.push(SalvagedTree { name, owner, kind, found, ..SalvagedTree::default() });
            }
        }
    }
}

/// Takes the next page, and further ones if they are low: pages to be read together.
fn take_batch(stack: &mut Vec<Next>) -> Vec<Next> {
    let mut batch = Vec::new();
    while batch.len() < BATCH {
        let Some(next) = stack.pop_if(|next| batch.is_empty() || next.is_low()) else { break };
        let alone = !next.is_low();
        batch.push(next);
        if alone {
            break;
        }
    }
    batch
}
