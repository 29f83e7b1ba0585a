//! Checks a tree.
//!
//! [`check_page`] checks one page by itself and trusts nothing in it: any bytes are read without a
//! panic. [`BTree::check`] walks all reachable pages, and compares parents with children. No thread
//! should change the tree during that walk; otherwise sound pages may be reported as faulty.

use std::collections::HashSet;

use millpond_base::{Mark, PageId};

use crate::btree::kind::is_swip;
use crate::btree::node::layout::*;
use crate::btree::node::search::hint_distance;
use crate::btree::tree::BTree;
use crate::btree::value::layout::{BODY, STAMP, held, held_by, len_below, level_for, used};
use crate::page::{PageBuffer, PageHeader, PageType, View};
use crate::pool::{ANCHOR_SWIP, Pages, PoolError, Read};

/// A violated invariant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The page is of another type than its place demands.
    #[error("the page has type {found}, not {expected}")]
    Type {
        /// Type as the page states.
        found: u8,
        /// Type that its place demands.
        expected: u8,
    },
    /// The page is on another level than its parent states.
    #[error("the page is on level {found}, not {expected}")]
    Level {
        /// Level as the page states.
        found: u8,
        /// Level that its place demands.
        expected: u8,
    },
    /// The page belongs to another structure.
    #[error("the page belongs to structure {found}, not {expected}")]
    Owner {
        /// Owner as the page states.
        found: u32,
        /// The tree's id.
        expected: u32,
    },
    /// Count, heap or garbage of the header contradict each other or the page size.
    #[error("the header says {count} entries, a heap from byte {heap} and {garbage} bytes unused")]
    Header {
        /// Number of entries.
        count: usize,
        /// Start of the heap.
        heap: usize,
        /// Bytes of garbage.
        garbage: usize,
    },
    /// A fence is outside the heap, or the prefix is not the common part of the fences.
    #[error("the fences, or the prefix of {prefix} bytes, are wrong")]
    Fences {
        /// Length of the prefix.
        prefix: usize,
    },
    /// An entry is outside the heap.
    #[error("entry {entry} lies outside the heap, at byte {at}")]
    Outside {
        /// Index of the entry.
        entry: usize,
        /// Offset of the entry, as its slot states it.
        at: usize,
    },
    /// Two entries or fences overlap.
    #[error("two things lie at byte {at}")]
    Overlap {
        /// Offset in the page.
        at: usize,
    },
    /// A key is not above the one before it.
    #[error("the key of entry {entry} is not above the one before it")]
    Order {
        /// Index of the entry.
        entry: usize,
    },
    /// A key is not between the fences.
    #[error("the key of entry {entry} is not between the fences")]
    BeyondFence {
        /// Index of the entry.
        entry: usize,
    },
    /// A hint is not the head of its entry.
    #[error("hint {hint} is wrong")]
    Hint {
        /// Index of the hint.
        hint: usize,
    },
    /// The number of overflow values is wrong.
    #[error("{found} values are in overflow pages, not {said}")]
    Overflows {
        /// Number of entries with such a value.
        found: usize,
        /// Number in the header.
        said: usize,
    },
    /// A child's fences differ from its parent's separators.
    #[error("child {child} has other fences than its parent gives it")]
    ChildFences {
        /// Index of the child.
        child: usize,
    },
    /// The page can be reached in two ways.
    #[error("the page can be reached in two ways")]
    Twice,
    /// The page's header names another id than the one it was read under.
    #[error("the page's header names page {found}")]
    Id {
        /// Id as the page states.
        found: PageId,
    },
    /// An overflow page carries another stamp, or another number of bytes, than its value needs.
    #[error("the overflow page is not part of its value, or not the right one")]
    Overflow,
    /// A child refers to nothing.
    #[error("child {child} refers to nothing")]
    Missing {
        /// Index of the child.
        child: usize,
    },
    /// The page held a reference when the walk visited it, and no longer holds it: the tree is
    /// being changed.
    #[error("the reference at byte {at} is gone: the tree was changed during the walk")]
    Moved {
        /// Offset in the page.
        at: usize,
    },
}

/// Result of a walk.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// All pages reached, the root first.
    pub pages: Vec<PageId>,
    /// Number of entries in leaves.
    pub entries: u64,
    /// The violations, each with its page.
    pub violations: Vec<(PageId, Violation)>,
}

/// Returns the faults of a page of a tree, as far as the page alone shows them.
pub fn check_page(page: View<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let node = Node::of(page);
    let expected = if node.leaf { PageType::BTREE_LEAF } else { PageType::BTREE_INNER };
    if page.len() < SLOTS_HINTED || page.u8(KIND) != expected.0 {
        found.push(Violation::Type { found: page.u8(KIND), expected: expected.0 });
        return found;
    }
    if !node.is_sound() {
        let count = usize::from(page.u16(COUNT));
        let (heap, garbage) = (node.heap(), node.garbage());
        found.push(Violation::Header { count, heap, garbage });
        return found;
    }
    check_fences(node, &mut found);
    check_places(node, &mut found);
    if found.is_empty() {
        check_keys(node, &mut found);
        check_hints(node, &mut found);
    }
    found
}

fn check_fences(node: Node<'_>, found: &mut Vec<Violation>) {
    let prefix = node.prefix_len();
    let lower = node.lower_bytes();
    let right = match node.upper_bytes() {
        Some(upper) => lower < upper && common(&lower, &upper) == prefix,
        None => prefix == 0,
    };
    // Fences without bytes, and an absent one, have offset 0.
    let blank = |span: Span| span.len > 0 || span.at == 0;
    let absent = node.upper().is_some() || node.span(UPPER) == Span::default();
    if !right || !absent || !blank(node.lower()) || !blank(node.span(UPPER)) {
        found.push(Violation::Fences { prefix });
    }
}

/// Checks that every entry and fence is in the heap, that none overlap, and that the bytes outside
/// the garbage add up.
fn check_places(node: Node<'_>, found: &mut Vec<Violation>) {
    let (heap, size) = (node.heap(), node.view.len());
    let mut spans = Vec::new();
    spans.push(node.lower());
    spans.extend(node.upper());
    let mut overflows = 0;
    for entry in 0..node.count() {
        let (at, len) = (node.offset(entry), node.heap_len(entry));
        if len > 0 && (at < heap || at + len > size) {
            found.push(Violation::Outside { entry, at });
            continue;
        }
        if node.leaf && matches!(node.value(entry), Value::Overflow(_)) {
            overflows += 1;
        }
        spans.push(Span { at, len });
    }
    let said = node.overflows();
    if node.leaf && said != overflows {
        found.push(Violation::Overflows { found: overflows, said });
    }
    spans.retain(|span| span.len > 0);
    spans.sort_unstable_by_key(|span| span.at);
    for pair in spans.windows(2) {
        if pair[0].end() > pair[1].at {
            found.push(Violation::Overlap { at: pair[1].at });
        }
    }
    let live: usize = spans.iter().map(|span| span.len).sum();
    if found.is_empty() && live + node.garbage() != size - heap {
        let (count, garbage) = (node.count(), node.garbage());
        found.push(Violation::Header { count, heap, garbage });
    }
}

fn check_keys(node: Node<'_>, found: &mut Vec<Violation>) {
    let (lower, upper) = (node.lower_bytes(), node.upper_bytes());
    let (mut before, mut key) = (Vec::new(), Vec::new());
    for entry in 0..node.count() {
        if node.key_len(entry) < HEAD {
            let unused = 32 - 8 * node.key_len(entry) as u32;
            if unused > 0 && node.head(entry).checked_shl(32 - unused).unwrap_or(0) != 0 {
                found.push(Violation::Order { entry });
            }
        }
        node.key_to(entry, &mut key);
        if entry > 0 && key <= before {
            found.push(Violation::Order { entry });
        }
        let low = if node.leaf { key >= lower } else { key > lower };
        if !low || upper.as_ref().is_some_and(|upper| key >= *upper) {
            found.push(Violation::BeyondFence { entry });
        }
        std::mem::swap(&mut before, &mut key);
    }
}

fn check_hints(node: Node<'_>, found: &mut Vec<Violation>) {
    let distance = hint_distance(node.count());
    if node.slots() != SLOTS_HINTED || distance == 0 {
        return;
    }
    for hint in 0..HINT_COUNT {
        if node.view.u32(HINTS + 4 * hint) != node.head((hint + 1) * distance) {
            found.push(Violation::Hint { hint });
        }
    }
}

/// A page to visit next, as its parent describes it.
struct Visit {
    /// Offsets of swips, from the anchor down.
    path: Vec<usize>,
    role: Role,
}

enum Role {
    Root,
    Node { level: u8, child: usize, lower: Vec<u8>, upper: Option<Vec<u8>> },
    Overflow { level: u8, stamp: u64, len: u64 },
}

impl<P: Pages> BTree<P> {
    /// Walks the whole tree and reports its faults.
    ///
    /// # Errors
    /// The memory behind the tree failed. A page that cannot be read ends the walk with its error,
    /// too.
    pub fn check(&self) -> Result<Report, PoolError> {
        let mut report = Report::default();
        let (mut pages, mut seen) = (Vec::new(), HashSet::new());
        self.walk(Mark::READ, &mut report, &mut |id| {
            pages.push(id);
            Some(seen.insert(id))
        })?;
        report.pages = pages;
        Ok(report)
    }

    /// Walks the whole tree like [`BTree::check`], with memory for only one path from the root to a
    /// leaf. Calls `next` before each page, and ends when it returns `false`.
    ///
    /// Two references to one page show in the page's fences, or in its stamp.
    ///
    /// # Errors
    /// See [`BTree::check`].
    #[cfg_attr(test, allow(dead_code, reason = "used by what unit tests are built without"))]
    pub(crate) fn check_lean(&self, next: &mut dyn FnMut() -> bool) -> Result<Report, PoolError> {
        let mut report = Report::default();
        self.walk(Mark::READ.with_scan(true), &mut report, &mut |_| next().then_some(true))?;
        Ok(report)
    }

    /// Walks the tree. Calls `enter` with each page, which returns `Some(false)` if the page was
    /// already visited, and `None` to end the walk.
    fn walk(
        &self,
        mark: Mark,
        report: &mut Report,
        enter: &mut dyn FnMut(PageId) -> Option<bool>,
    ) -> Result<(), PoolError> {
        let mut stack = vec![Visit { path: vec![ANCHOR_SWIP], role: Role::Root }];
        let mut copy = PageBuffer::new(self.pages.page_size());
        while let Some(visit) = stack.pop() {
            let id = match self.copy_at(&visit.path, mark, &mut copy)? {
                Ok(id) => id,
                Err(moved) => {
                    report.violations.push(moved);
                    continue;
                }
            };
            let Some(is_new) = enter(id) else { return Ok(()) };
            let mut found = Vec::new();
            let header = PageHeader::read(copy.bytes());
            if header.page != id {
                found.push(Violation::Id { found: header.page });
            }
            if header.owner != self.owner {
                found.push(Violation::Owner { found: header.owner, expected: self.owner });
            }
            if is_new {
                let entries = &mut report.entries;
                self.check_visit(&visit, copy.view(), &mut found, &mut stack, entries);
            } else {
                found.push(Violation::Twice);
            }
            report.violations.extend(found.into_iter().map(|violation| (id, violation)));
        }
        Ok(())
    }

    /// Copies the page that `path` leads to. Follows an offset only if the page above still has a
    /// reference there: other bytes must not be taken for one.
    fn copy_at(
        &self,
        path: &[usize],
        mark: Mark,
        copy: &mut PageBuffer,
    ) -> Result<Result<PageId, (PageId, Violation)>, PoolError> {
        self.pages.run(|mtr| {
            let mut page = Read::anchor(mtr, self.anchor)?;
            for (depth, &at) in path.iter().enumerate() {
                if depth > 0 && !is_swip(page.view(), at) {
                    let id = page.header().page().unwrap_or_default();
                    page.validate()?;
                    return Ok(Err((id, Violation::Moved { at })));
                }
                page = page.child(at, mark)?;
            }
            page.view().copy_into(0, copy.bytes_mut());
            let id = page.header().page().unwrap_or_default();
            page.validate()?;
            Ok(Ok(id))
        })
    }

    fn check_visit(
        &self,
        visit: &Visit,
        page: View<'_>,
        found: &mut Vec<Violation>,
        stack: &mut Vec<Visit>,
        entries: &mut u64,
    ) {
        if let Role::Overflow { level, stamp, len } = visit.role {
            return check_overflow(visit, page, level, stamp, len, found, stack);
        }
        let before = found.len();
        found.extend(check_page(page));
        let node = Node::of(page);
        if let Role::Node { level, child, lower, upper } = &visit.role {
            if node.level() != *level {
                found.push(Violation::Level { found: node.level(), expected: *level });
            }
            let fits = node.lower_bytes() == *lower && node.upper_bytes() == *upper;
            if found.len() == before && !fits {
                found.push(Violation::ChildFences { child: *child });
            }
        } else if !node.lower_bytes().is_empty() || node.upper().is_some() {
            found.push(Violation::Fences { prefix: node.prefix_len() });
        }
        if found.len() > before {
            // The children of a faulty page are unknown.
            return;
        }
        if node.leaf {
            *entries += node.count() as u64;
            leaf_visits(visit, node, found, stack);
        } else {
            inner_visits(visit, node, found, stack);
        }
    }
}

fn below(visit: &Visit, at: usize) -> Vec<usize> {
    let mut path = visit.path.clone();
    path.push(at);
    path
}

fn inner_visits(visit: &Visit, node: Node<'_>, found: &mut Vec<Violation>, stack: &mut Vec<Visit>) {
    let mut key = Vec::new();
    let mut upper = node.upper_bytes();
    for child in (0..=node.count()).rev() {
        let lower = if child == 0 {
            node.lower_bytes()
        } else {
            node.key_to(child - 1, &mut key);
            key.clone()
        };
        let at = node.child_at(child);
        if node.view.u64(at) == 0 {
            found.push(Violation::Missing { child });
        } else {
            let level = node.level().saturating_sub(1);
            let role = Role::Node { level, child, lower: lower.clone(), upper: upper.take() };
            stack.push(Visit { path: below(visit, at), role });
        }
        upper = Some(lower);
    }
}

fn leaf_visits(visit: &Visit, node: Node<'_>, found: &mut Vec<Violation>, stack: &mut Vec<Visit>) {
    for i in 0..node.count() {
        let (Value::Overflow(at), Some(reference)) = (node.value(i), node.reference(i)) else {
            continue;
        };
        if node.view.u64(at) == 0 {
            found.push(Violation::Missing { child: i });
            continue;
        }
        let level = level_for(node.view.len(), reference.len);
        let role = Role::Overflow { level, stamp: reference.stamp, len: reference.len };
        stack.push(Visit { path: below(visit, at), role });
    }
}

fn check_overflow(
    visit: &Visit,
    page: View<'_>,
    level: u8,
    stamp: u64,
    len: u64,
    found: &mut Vec<Violation>,
    stack: &mut Vec<Visit>,
) {
    let kind = page.u8(KIND);
    if kind != PageType::OVERFLOW.0 {
        found.push(Violation::Type { found: kind, expected: PageType::OVERFLOW.0 });
        return;
    }
    if page.u8(LEVEL) != level {
        found.push(Violation::Level { found: page.u8(LEVEL), expected: level });
        return;
    }
    if page.u64(STAMP) != stamp || held_by(page) != held(page.len(), level, len) {
        found.push(Violation::Overflow);
        return;
    }
    if level == 0 {
        return;
    }
    for i in 0..used(page) {
        let at = BODY + 8 * i;
        if page.u64(at) == 0 {
            found.push(Violation::Missing { child: i });
            continue;
        }
        let len = len_below(page.len(), level, len, i as u64);
        let role = Role::Overflow { level: level - 1, stamp, len };
        stack.push(Visit { path: below(visit, at), role });
    }
}
