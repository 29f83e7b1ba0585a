//! The first and the last entry, for those that pop them: one look at one leaf, which a finger
//! remembers, and a copy of the key only.

use millpond_base::AccessKind;

use crate::btree::descend::Seek;
use crate::btree::node::layout::{Node, Value};
use crate::btree::tree::{BTree, mark};
use crate::btree::write::finger::{Finger, is_leaf_of};
use crate::page::View;
use crate::pool::{MiniTransaction, Pages, PoolError, Read};

/// What is at an end of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndEntry {
    /// Nothing: the tree is empty.
    None,
    /// An entry whose value is in its leaf.
    Inline,
    /// An entry whose value is in overflow pages, or one that is not in the outermost leaf, which
    /// has none: a cursor finds it.
    Elsewhere,
}

/// Whether a leaf is the first of its tree, or the last.
fn is_outermost(leaf: View<'_>, first: bool) -> bool {
    let node = Node::leaf(leaf);
    if first { node.lower().len == 0 } else { node.upper().is_none() }
}

impl<P: Pages> BTree<P> {
    /// Looks at the first entry, or the last; its key goes to `key` if its value is in its leaf.
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
            let leaf = match self.end_by(mtr, first, finger) {
                Some(leaf) => leaf,
                None => {
                    let seek = if first { Seek::At(&[]) } else { Seek::Last };
                    match self.place(mtr, seek, 0)? {
                        Some(place) => place.node,
                        None => return Ok(EndEntry::Elsewhere),
                    }
                }
            };
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
            finger.found(self.owner, hint, at);
            Ok(EndEntry::Inline)
        })
    }

    fn end_by<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        first: bool,
        finger: &Finger,
    ) -> Option<Read<'o, P>> {
        let hint = finger.leaf_of(self.owner)?;
        let what = mark(AccessKind::Read, true, self.height_hint());
        let leaf = mtr.pages().recall_to_read(mtr, hint, what)?;
        let is_it = is_leaf_of(leaf.view(), self.owner) && is_outermost(leaf.view(), first);
        (is_it && leaf.validate().is_ok()).then_some(leaf)
    }
}
