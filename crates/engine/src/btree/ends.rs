//! The first and the last entry, for callers that pop them: one look at one leaf, which a finger
//! remembers, and a copy of only the key.

use millpond_base::AccessKind;

use crate::btree::descend::{LocatedNode, Seek};
use crate::btree::node::layout::{Node, Value};
use crate::btree::tree::{BTree, mark};
use crate::btree::write::finger::{Finger, is_leaf_of};
use crate::page::View;
use crate::pool::{MiniTransaction, PageHint, Pages, PoolError, Read, Try};

/// The entry at an end of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndEntry {
    /// No entry: the tree is empty.
    None,
    /// An entry whose value is in its leaf.
    Inline,
    /// An entry whose value is in overflow pages, or that is not in the outermost leaf, which is
    /// empty: a cursor finds it.
    Elsewhere,
}

/// Returns whether a leaf is the first of its tree, or the last.
fn is_outermost(leaf: View<'_>, first: bool) -> bool {
    let node = Node::leaf(leaf);
    if first { node.lower().len == 0 } else { node.upper().is_none() }
}

/// The leaf with an end of a tree, and the outermost leaf if that is empty.
type End<'o, P> = (Read<'o, P>, Option<PageHint>);

impl<P: Pages> BTree<P> {
    /// Looks at the first or the last entry. Copies its key to `key` if its value is in its leaf.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn end_entry(
        &self,
        first: bool,
        finger: &mut Finger,
        key: &mut Vec<u8>,
    ) -> Result<EndEntry, PoolError> {
        self.pages.run(|mtr| {
            let found = match self.end_by(mtr, first, finger, key) {
                Some(end) => Some(end),
                None => self.end_leaf(mtr, first)?,
            };
            let Some((leaf, emptied)) = found else { return Ok(EndEntry::Elsewhere) };
            let node = Node::leaf(leaf.view());
            let Some(last) = node.count().checked_sub(1) else {
                let is_only = node.lower().len == 0 && node.upper().is_none();
                leaf.validate()?;
                return Ok(if is_only { EndEntry::None } else { EndEntry::Elsewhere });
            };
            let at = if first { 0 } else { last };
            let is_whole = node.key_to(at, key);
            let is_inline = matches!(node.value(at), Value::Inline(_));
            let hint = leaf.hint();
            leaf.validate()?;
            if !is_whole || !is_inline {
                return Ok(EndEntry::Elsewhere);
            }
            finger.found(self.owner, hint, emptied, at);
            Ok(EndEntry::Inline)
        })
    }

    /// Descends to the outermost leaf. An empty leaf stays until its neighbour is thin, too
    /// (`structure/merge.rs`); the end is then in the neighbour.
    fn end_leaf<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        first: bool,
    ) -> Try<Option<End<'o, P>>> {
        let seek = if first { Seek::At(&[]) } else { Seek::Last };
        let Some(LocatedNode { node: outermost, .. }) = self.place(mtr, seek, 0)? else {
            return Ok(None);
        };
        let node = Node::leaf(outermost.view());
        if node.count() > 0 {
            return Ok(Some((outermost, None)));
        }
        let (lower, upper, hint) = (node.lower_bytes(), node.upper_bytes(), outermost.hint());
        outermost.validate()?;
        let seek = match upper {
            Some(ref upper) if first => Seek::At(upper),
            _ if !first && !lower.is_empty() => Seek::Below(&lower),
            _ => return Ok(Some((outermost, None))),
        };
        let Some(LocatedNode { node: next, .. }) = self.place(mtr, seek, 0)? else {
            return Ok(None);
        };
        // No entry came into the outermost leaf before its neighbour was found.
        outermost.validate()?;
        Ok(Some((next, hint)))
    }

    fn end_by<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        first: bool,
        finger: &Finger,
        scratch: &mut Vec<u8>,
    ) -> Option<End<'o, P>> {
        let hint = finger.leaf_of(self.owner)?;
        let what = mark(AccessKind::Read, true, self.height_hint());
        // At the version at which the leaf was empty.
        let emptied = match finger.emptied_of(self.owner) {
            None => None,
            Some(hint) => Some((mtr.pages().recall_to_read(mtr, hint, what)?, hint)),
        };
        let leaf = mtr.pages().recall_to_read(mtr, hint, what)?;
        let is_end = match &emptied {
            None => is_outermost(leaf.view(), first),
            Some((emptied, _)) if first => is_next(emptied.view(), leaf.view(), scratch),
            Some((emptied, _)) => is_next(leaf.view(), emptied.view(), scratch),
        };
        let is_end = is_end && Node::leaf(leaf.view()).count() > 0;
        let is_it = is_leaf_of(leaf.view(), self.owner) && is_end && leaf.validate().is_ok();
        let is_still = emptied.as_ref().is_none_or(|(emptied, _)| emptied.validate().is_ok());
        (is_it && is_still).then_some((leaf, emptied.map(|(_, hint)| hint)))
    }
}

/// Returns whether `leaf` begins where `before` ends; overwrites `fence`.
fn is_next(before: View<'_>, leaf: View<'_>, fence: &mut Vec<u8>) -> bool {
    let (before, leaf) = (Node::leaf(before), Node::leaf(leaf));
    let (Some(upper), lower) = (before.upper(), leaf.lower()) else { return false };
    fence.clear();
    before.append(upper, fence);
    leaf.view.compare(lower.at, lower.len, fence).is_eq()
}
