//! Searches all pages of the file for those that no walk reached.

use std::io;

use millpond_base::PageId;

use crate::admin::check::BATCH;
use crate::admin::salvage::report::Lost;
use crate::admin::salvage::tree::{Saver, Sink, Source};
use crate::btree::{Fences, StoredNode};
use crate::page::superblock::Placement;
use crate::page::{PAGE_HEADER, PageHeader, PageType, View, free_map};

/// A leaf that was found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Leaf {
    pub(super) owner: u32,
    lower: Vec<u8>,
    pub(super) page: PageId,
}

fn overlap(a: &Fences, b: &Fences) -> bool {
    let below = |lower: &[u8], upper: &Option<Vec<u8>>| {
        upper.as_ref().is_none_or(|upper| lower < upper.as_slice())
    };
    below(&a.lower, &b.upper) && below(&b.lower, &a.upper)
}

/// Returns `true` if a leaf with these fences may have keys that were not reached.
pub(super) fn fills_a_gap(gaps: &[(u32, Fences)], owner: u32, fences: &Fences) -> bool {
    gaps.iter().any(|(of, gap)| *of == owner && overlap(gap, fences))
}

impl Saver<'_> {
    /// Returns all sound leaves that no walk reached, that are not free, and that `wanted` accepts
    /// by their owner and fences. They are ordered by owner and key.
    pub(super) fn scan(&mut self, wanted: impl Fn(u32, &Fences) -> bool) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        self.each_candidate(&mut |page, view, bytes| {
            let header = PageHeader::read(bytes);
            if header.kind != PageType::BTREE_LEAF {
                return;
            }
            let Ok(node) = StoredNode::of(view) else { return };
            let (fences, owner) = (node.fences(), header.owner);
            if wanted(owner, &fences) {
                leaves.push(Leaf { owner, lower: fences.lower, page });
            }
        });
        leaves.sort_unstable();
        leaves
    }

    /// Passes every readable page that no walk reached, and that is not free, to `each`.
    pub(super) fn each_candidate(&mut self, each: &mut dyn FnMut(PageId, View<'_>, &[u8])) {
        let size = self.store.page_size();
        let per_map = free_map::pages_per_map(size);
        let mut map = None;
        let mut page = 0;
        while page < self.store.pages() {
            let group = page / per_map;
            if page.is_multiple_of(per_map) {
                map = self.map(group);
            }
            let end = self.store.pages().min((group + 1) * per_map);
            let mut batch = Vec::with_capacity(BATCH);
            while page < end && batch.len() < BATCH {
                if self.is_candidate(PageId(page), map.as_deref(), page % per_map) {
                    batch.push(PageId(page));
                }
                page += 1;
            }
            let results = self.reader.read(self.store, &batch);
            for (i, (page, result)) in batch.iter().zip(results).enumerate() {
                if result.is_ok() {
                    each(*page, self.reader.view(i), self.reader.bytes(i));
                }
            }
        }
    }

    fn is_candidate(&self, page: PageId, map: Option<&[u8]>, bit: u64) -> bool {
        if self.store.placement() == Placement::OutOfPlace {
            let is_somewhere = self.store.is_allocated(page);
            return is_somewhere && !self.reached.has(page) && !self.store.is_reserved(page);
        }
        let byte = map.and_then(|map| map.get(PAGE_HEADER + (bit / 8) as usize));
        let free = byte.is_some_and(|byte| byte >> (bit % 8) & 1 == 0);
        !free && !self.reached.has(page) && !self.store.is_reserved(page)
    }

    /// Returns the map of free pages of a group, if it is that of a closed store.
    fn map(&mut self, group: u64) -> Option<Vec<u8>> {
        if !self.report.was_closed || self.store.placement() == Placement::OutOfPlace {
            return None;
        }
        let page = free_map::map_page(self.store.page_size(), group);
        let result = self.reader.read(self.store, &[page]).pop()?;
        result.ok().map(|()| self.reader.bytes(0).to_vec())
    }

    /// Passes the entries of a leaf that was found to `sink`; returns their number.
    pub(super) fn found_leaf(
        &mut self,
        source: &Source,
        leaf: &Leaf,
        sink: &mut Sink<'_>,
    ) -> io::Result<u64> {
        let mut reader =
            std::mem::replace(&mut self.reader, crate::admin::check::PageReader::new(0));
        let result = reader.read(self.store, &[leaf.page]).pop();
        let mut entries = 0;
        match result {
            Some(Err(error)) => {
                let fences = Fences { lower: leaf.lower.clone(), upper: None };
                self.lose(Some(&source.name), leaf.page, error.into(), Lost::Keys(fences));
            }
            _ => {
                if let Ok(node) = StoredNode::of(reader.view(0)) {
                    let lost = self.leaf(source, leaf.page, node, sink)?;
                    entries = node.count() as u64 - lost;
                }
            }
        }
        self.reader = reader;
        Ok(entries)
    }
}
