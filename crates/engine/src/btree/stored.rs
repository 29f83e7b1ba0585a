//! Pages of a tree as they are on storage, read one by one, without a pool: for checks of a store
//! and for salvage of a damaged one.
//!
//! Nothing here follows a swip. A page describes its children ([`StoredChild`], [`LargePart`]); the
//! caller reads the children and verifies them.

use crate::btree::check::{Violation, check_page};
use crate::btree::node::layout::{KIND, LEVEL, Node, Value};
use crate::btree::value::layout::{BODY, STAMP, front, held, held_by, len_below, level_for, used};
use crate::page::{PageType, View};
use crate::pool::Swip;

/// The keys that a node covers: from `lower` up to, but not including, `upper`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fences {
    /// Inclusive lower bound of the keys.
    pub lower: Vec<u8>,
    /// Exclusive upper bound of the keys; `None` if they have no upper bound.
    pub upper: Option<Vec<u8>>,
}

/// A child of an inner node, as its parent describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredChild {
    /// Offset of the child's swip in the parent's page.
    pub at: usize,
    /// Index of the child, counted from 0.
    pub index: usize,
    /// The child's swip.
    pub swip: Swip,
    /// The child's level.
    pub level: u8,
    /// The child's fences.
    pub fences: Fences,
}

/// A value in overflow pages, or a part of one, below some page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LargePart {
    /// Offset of the swip that refers to the part's page.
    pub at: usize,
    /// The swip.
    pub swip: Swip,
    /// Level of the part's page.
    pub level: u8,
    /// The value's stamp.
    pub stamp: u64,
    /// Bytes of the value in and below the page.
    pub len: u64,
}

/// A value, as its leaf stores it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoredValue {
    /// A value in the leaf; its bytes were appended.
    Inline,
    /// A value in overflow pages.
    Large(LargePart),
}

/// A node whose page is consistent in itself.
#[derive(Clone, Copy)]
pub struct StoredNode<'a> {
    node: Node<'a>,
}

impl<'a> StoredNode<'a> {
    /// Reads the node in `page`, which is a copy; its checksum need not have been right.
    ///
    /// # Errors
    /// All faults of the node.
    pub fn of(page: View<'a>) -> Result<StoredNode<'a>, Vec<Violation>> {
        let wrong = check_page(page);
        if wrong.is_empty() { Ok(StoredNode { node: Node::of(page) }) } else { Err(wrong) }
    }

    /// Returns the node's height above the leaves.
    pub fn level(self) -> u8 {
        self.node.level()
    }

    /// Returns whether the node is a leaf.
    pub fn is_leaf(self) -> bool {
        self.node.leaf
    }

    /// Returns the number of entries of a leaf, or of separators of an inner node.
    pub fn count(self) -> usize {
        self.node.count()
    }

    /// Returns the number of bytes in use for entries and fences, and the number available for
    /// them.
    pub fn fill(self) -> (usize, usize) {
        (self.node.used(), self.node.view.len() - self.node.slots())
    }

    /// Returns the range of keys that the node covers.
    pub fn fences(self) -> Fences {
        Fences { lower: self.node.lower_bytes(), upper: self.node.upper_bytes() }
    }

    /// Returns the children of an inner node in the order of their keys; none of a leaf.
    pub fn children(self) -> Vec<StoredChild> {
        let node = self.node;
        if node.leaf {
            return Vec::new();
        }
        let mut lower = node.lower_bytes();
        let mut children = Vec::with_capacity(node.count() + 1);
        for index in 0..=node.count() {
            let upper = if index < node.count() {
                let mut key = Vec::new();
                node.key_to(index, &mut key);
                Some(key)
            } else {
                node.upper_bytes()
            };
            let at = node.child_at(index);
            let next = upper.clone().unwrap_or_default();
            let fences = Fences { lower: std::mem::replace(&mut lower, next), upper };
            let (swip, level) = (Swip(node.view.u64(at)), node.level().saturating_sub(1));
            children.push(StoredChild { at, index, swip, level, fences });
        }
        children
    }

    /// Copies the key of entry `i` to `key` and, if the value is in the leaf, the value to `value`.
    /// Returns `None` if there is no such entry.
    pub fn entry(self, i: usize, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Option<StoredValue> {
        value.clear();
        if !self.node.leaf || i >= self.node.count() || !self.node.key_to(i, key) {
            return None;
        }
        match self.node.value(i) {
            Value::Inline(span) => self.node.append(span, value).then_some(StoredValue::Inline),
            Value::Overflow(_) => self.large(i).map(StoredValue::Large),
        }
    }

    /// Returns the value of entry `i`, if it is in overflow pages.
    pub fn large(self, i: usize) -> Option<LargePart> {
        let Value::Overflow(at) = self.node.value(i) else { return None };
        let reference = self.node.reference(i)?;
        let level = level_for(self.node.view.len(), reference.len);
        Some(LargePart {
            at,
            swip: reference.swip,
            level,
            stamp: reference.stamp,
            len: reference.len,
        })
    }

    /// Returns the values in overflow pages, with the numbers of their entries.
    pub fn large_values(self) -> impl Iterator<Item = (usize, LargePart)> {
        let count = if self.node.leaf && self.node.overflows() > 0 { self.count() } else { 0 };
        (0..count).filter_map(move |i| Some((i, self.large(i)?)))
    }
}

/// Returns the parts of a value below the overflow page `page`, in order; none below a page of
/// data. [`overflow_data`] returns the bytes in the page itself, which come before the parts.
///
/// # Errors
/// The fault of the page, if it is not the page of `part`.
pub fn overflow_parts(page: View<'_>, part: &LargePart) -> Result<Vec<LargePart>, Violation> {
    if page.u8(KIND) != PageType::OVERFLOW.0 {
        return Err(Violation::Type { found: page.u8(KIND), expected: PageType::OVERFLOW.0 });
    }
    if page.u8(LEVEL) != part.level {
        return Err(Violation::Level { found: page.u8(LEVEL), expected: part.level });
    }
    let expected = held(page.len(), part.level, part.len);
    if page.u64(STAMP) != part.stamp || held_by(page) != expected {
        return Err(Violation::Overflow);
    }
    if part.level == 0 {
        return Ok(Vec::new());
    }
    let below = |i: usize| {
        let at = BODY + 8 * i;
        let len = len_below(page.len(), part.level, part.len, i as u64);
        LargePart { at, swip: Swip(page.u64(at)), level: part.level - 1, len, ..*part }
    };
    Ok((0..used(page)).map(below).collect())
}

/// Appends the bytes of a value that the overflow page `page` itself holds to `out`: the data, or
/// the front of the data below it.
pub fn overflow_data(page: View<'_>, out: &mut Vec<u8>) {
    if page.u8(LEVEL) == 0 {
        page.copy_to(BODY, used(page), out);
    } else if front(page) > 0 {
        page.copy_to(page.len() - front(page), front(page), out);
    }
}
