//! A walk through one tree in key order that skips damaged pages.
//!
//! A child is trusted if it has the level, the fences and the owner that its parent requires.
//! Fences of siblings do not overlap and levels fall, so every page is visited once whatever is in
//! the file.

use std::io;

use millpond_base::PageId;

use crate::admin::check::{BATCH, Bits, Fault, PageReader, Problem};
use crate::admin::salvage::gaps::Gaps;
use crate::admin::salvage::report::{Loss, Lost, SalvageReport};
use crate::btree::{
    Fences, LargePart, StoredChild, StoredNode, StoredValue, Violation, overflow_data,
    overflow_parts,
};
use crate::io::PageStore;
use crate::page::{PageHeader, View};

/// Maximum number of losses that are kept; further ones are counted.
const LOSSES_MAX: usize = 1000;

/// Receiver of entries.
pub(super) type Sink<'k> = dyn FnMut(&[u8], &[u8]) -> io::Result<()> + 'k;

/// A tree to be saved.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) owner: u32,
}

/// A node to be visited.
struct Next {
    page: PageId,
    /// Expected level and fences; `None` for the root.
    expected: Option<(u8, usize)>,
    fences: Fences,
}

/// An unusable page.
pub(super) struct Bad {
    pub(super) page: PageId,
    pub(super) fault: Fault,
}

/// Reader of a possibly damaged store, which keeps track of reached pages and losses.
pub(super) struct Saver<'s> {
    pub(super) store: &'s PageStore,
    pub(super) reader: PageReader,
    values: PageReader,
    /// Pages that belong to a tree that was walked.
    pub(super) reached: Bits,
    pub(super) report: SalvageReport,
    /// Key ranges that were not reached, with the owner of their tree.
    pub(super) gaps: Vec<(u32, Fences)>,
    /// Gaps of hash indexes and heaps.
    pub(super) other_gaps: Gaps,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl<'s> Saver<'s> {
    pub(super) fn new(store: &'s PageStore) -> Saver<'s> {
        let size = store.page_size().bytes();
        Saver {
            store,
            reader: PageReader::new(size),
            values: PageReader::new(size),
            reached: Bits::new(store.pages()),
            report: SalvageReport::default(),
            gaps: Vec::new(),
            other_gaps: Gaps::default(),
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    pub(super) fn lose(&mut self, structure: Option<&str>, page: PageId, fault: Fault, lost: Lost) {
        if self.report.losses.len() >= LOSSES_MAX {
            self.report.losses_left_out += 1;
            return;
        }
        let offset = page.0.saturating_mul(self.store.page_size().bytes_u64());
        let problem = Problem { page, offset, structure: structure.map(str::to_string), fault };
        self.report.losses.push(Loss { problem, lost });
    }

    fn lose_keys(&mut self, source: &Source, bad: Bad, fences: Fences) {
        self.gaps.push((source.owner, fences.clone()));
        self.lose(Some(&source.name), bad.page, bad.fault, Lost::Keys(fences));
    }

    /// Passes all entries of the tree at `root` to `sink`, in order. Returns their number, and the
    /// number of lost ranges and values.
    pub(super) fn walk(
        &mut self,
        source: &Source,
        root: PageId,
        sink: &mut Sink<'_>,
    ) -> io::Result<(u64, u64)> {
        let (mut entries, mut losses) = (0, 0);
        let mut stack = vec![Next { page: root, expected: None, fences: Fences::default() }];
        while !stack.is_empty() {
            let batch = take_batch(&mut stack);
            let pages: Vec<PageId> = batch.iter().map(|next| next.page).collect();
            let mut reader = std::mem::replace(&mut self.reader, PageReader::new(0));
            let results = reader.read(self.store, &pages);
            for (i, (next, result)) in batch.into_iter().zip(results).enumerate() {
                let read = result.map_err(Fault::from);
                let node = read.and_then(|()| trusted(source, &next, reader.view(i)));
                match node {
                    Err(fault) => {
                        losses += 1;
                        self.lose_keys(source, Bad { page: next.page, fault }, next.fences);
                    }
                    Ok(node) if node.is_leaf() => {
                        self.reached.set(next.page);
                        self.doubt_root(source, &next);
                        let lost = self.leaf(source, next.page, node, sink)?;
                        entries += node.count() as u64 - lost;
                        losses += lost;
                    }
                    Ok(node) => {
                        self.reached.set(next.page);
                        losses += self.inner(source, next.page, node, &mut stack);
                    }
                }
            }
            self.reader = reader;
        }
        Ok((entries, losses))
    }

    /// Adds a gap behind a root that is a leaf, in a store that was not closed: the root may have
    /// grown since it was written.
    fn doubt_root(&mut self, source: &Source, next: &Next) {
        if next.expected.is_none() && !self.report.was_closed {
            self.gaps.push((source.owner, Fences::default()));
        }
    }

    fn inner(
        &mut self,
        source: &Source,
        page: PageId,
        node: StoredNode<'_>,
        stack: &mut Vec<Next>,
    ) -> u64 {
        let mut losses = 0;
        for child in node.children().into_iter().rev() {
            let StoredChild { at, index, swip, level, fences } = child;
            if swip.is_evicted() {
                stack.push(Next { page: swip.page(), expected: Some((level, index)), fences });
            } else {
                losses += 1;
                let fault = Fault::Swip { at, word: swip.0 };
                self.lose_keys(source, Bad { page, fault }, fences);
            }
        }
        losses
    }

    /// Passes the entries of a leaf to `sink`; returns the number of lost values.
    pub(super) fn leaf(
        &mut self,
        source: &Source,
        page: PageId,
        node: StoredNode<'_>,
        sink: &mut Sink<'_>,
    ) -> io::Result<u64> {
        let (mut key, mut value) = (std::mem::take(&mut self.key), std::mem::take(&mut self.value));
        let mut losses = 0;
        for i in 0..node.count() {
            let whole = match node.entry(i, &mut key, &mut value) {
                Some(StoredValue::Inline) => Ok(()),
                Some(StoredValue::Large(part)) => {
                    let mut left = self.store.pages();
                    self.large(source, page, &part, &mut left, &mut value)
                }
                None => Err(Bad { page, fault: Violation::Order { entry: i }.into() }),
            };
            match whole {
                Ok(()) => sink(&key, &value)?,
                Err(bad) => {
                    losses += 1;
                    let lost = Lost::Value(key.clone());
                    self.lose(Some(&source.name), bad.page, bad.fault, lost);
                }
            }
        }
        (self.key, self.value) = (key, value);
        Ok(losses)
    }

    /// Appends a part of a value to `out`. `left` limits the pages of a value to those of the file.
    fn large(
        &mut self,
        source: &Source,
        parent: PageId,
        part: &LargePart,
        left: &mut u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Bad> {
        let (page, at) = (part.swip.page(), part.at);
        if !part.swip.is_evicted() || *left == 0 {
            return Err(Bad { page: parent, fault: Fault::Swip { at, word: part.swip.0 } });
        }
        *left -= 1;
        let bad = |fault: Fault| Bad { page, fault };
        let result = self.values.read(self.store, &[page]).pop();
        result.unwrap_or(Ok(())).map_err(|error| bad(error.into()))?;
        let found = PageHeader::read(self.values.bytes(0)).owner;
        if found != source.owner {
            return Err(bad(Violation::Owner { found, expected: source.owner }.into()));
        }
        let view = self.values.view(0);
        let parts = overflow_parts(view, part).map_err(|violation| bad(violation.into()))?;
        overflow_data(view, out);
        self.reached.set(page);
        parts.iter().try_for_each(|part| self.large(source, page, part, left, out))
    }
}

/// Takes the next node, and further ones if they are leaves: nodes to be read together.
fn take_batch(stack: &mut Vec<Next>) -> Vec<Next> {
    let is_leaf = |next: &Next| matches!(next.expected, Some((0, _)));
    let mut batch = Vec::new();
    while batch.len() < BATCH {
        let Some(next) = stack.pop_if(|next| batch.is_empty() || is_leaf(next)) else { break };
        let alone = !is_leaf(&next);
        batch.push(next);
        if alone {
            break;
        }
    }
    batch
}

/// Returns the node in `page`, if it matches its parent.
fn trusted<'v>(source: &Source, next: &Next, page: View<'v>) -> Result<StoredNode<'v>, Fault> {
    let mut header = [0; crate::page::PAGE_HEADER];
    page.copy_into(0, &mut header);
    let found = PageHeader::read(&header).owner;
    if found != source.owner {
        return Err(Violation::Owner { found, expected: source.owner }.into());
    }
    let node = StoredNode::of(page).map_err(|wrong| {
        let first = wrong.into_iter().next();
        first.map_or(Fault::Type { found: header[28] }, Fault::from)
    })?;
    let fits = node.fences() == next.fences;
    match next.expected {
        Some((level, _)) if level != node.level() => {
            Err(Violation::Level { found: node.level(), expected: level }.into())
        }
        Some((_, child)) if !fits => Err(Violation::ChildFences { child }.into()),
        None if !fits => Err(Violation::Fences { prefix: node.fences().lower.len() }.into()),
        _ => Ok(node),
    }
}
