//! Looking up one key.
//!
//! The value is copied while the leaf is read optimistically; the caller's closure sees the copy
//! after validation, outside the attempt: it runs once, and under no latch.

use crate::btree::node::edit::{Reference, reference_at};
use crate::btree::node::layout::{Node, Value};
use crate::btree::tree::{BTree, corrupt};
use crate::page::Scratch;
use crate::pool::{Pages, PoolError};

enum Found {
    Missing,
    Inline,
    Overflow(Reference),
}

impl<P: Pages> BTree<P> {
    /// What `f` makes of the value of `key`; `None` if there is no such key.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    #[inline]
    pub fn get<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, PoolError> {
        let mut scratch = Scratch::default();
        loop {
            match self.find(key, &mut scratch)? {
                Found::Missing => return Ok(None),
                Found::Inline => return Ok(Some(f(scratch.bytes()))),
                Found::Overflow(reference) => {
                    if let Some(value) = self.read_whole(key, reference)? {
                        return Ok(Some(f(&value)));
                    }
                }
            }
        }
    }

    /// The value of `key`: in `scratch` if the inner option is `None`; if not, it lay in pages of
    /// its own. The outer option is `None` if there is no such key.
    ///
    /// What [`BTree::get`] does, but not generic: for code that is to be compiled here.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn get_scratch(
        &self,
        key: &[u8],
        scratch: &mut Scratch,
    ) -> Result<Option<Option<Vec<u8>>>, PoolError> {
        loop {
            match self.find(key, scratch)? {
                Found::Missing => return Ok(None),
                Found::Inline => return Ok(Some(None)),
                Found::Overflow(reference) => {
                    if let Some(value) = self.read_whole(key, reference)? {
                        return Ok(Some(Some(value)));
                    }
                }
            }
        }
    }

    /// Puts the value of `key` into `out`; `false`, and `out` empty, if there is no such key.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, PoolError> {
        out.clear();
        Ok(self.get(key, |value| out.extend_from_slice(value))?.is_some())
    }

    /// A copy of the value of `key`.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn get_owned(&self, key: &[u8]) -> Result<Option<Vec<u8>>, PoolError> {
        self.get(key, <[u8]>::to_vec)
    }

    /// Whether `key` is there.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> Result<bool, PoolError> {
        self.pages.run(|op| {
            let leaf = self.leaf_for(op, key)?;
            let (_, equal) = Node::leaf(leaf.view()).lower_bound(key);
            leaf.validate()?;
            Ok(equal)
        })
    }

    /// Not inlined: it is the whole descent, and callers bring many closures.
    #[inline(never)]
    fn find(&self, key: &[u8], scratch: &mut Scratch) -> Result<Found, PoolError> {
        self.pages.run(|op| {
            let leaf = self.leaf_for(op, key)?;
            let node = Node::leaf(leaf.view());
            let (i, equal) = node.lower_bound(key);
            if !equal {
                leaf.validate()?;
                return Ok(Found::Missing);
            }
            match node.value(i) {
                Value::Inline(span) => {
                    let copied = node.view.copy_out(span.at, span.len, scratch);
                    leaf.validate()?;
                    if copied {
                        Ok(Found::Inline)
                    } else {
                        let page = leaf.header().page().unwrap_or_default();
                        Err(corrupt(page, "a value reaches beyond its page"))
                    }
                }
                Value::Overflow(at) => {
                    let reference = reference_at(node.view, at);
                    leaf.validate()?;
                    Ok(Found::Overflow(reference))
                }
            }
        })
    }

    /// The reference of `key`'s value, if it is in overflow pages.
    pub(crate) fn find_reference(&self, key: &[u8]) -> Result<Option<Reference>, PoolError> {
        Ok(self.look(key, &mut Scratch::default())?.flatten())
    }

    /// The value of `key`, if it is there: in `scratch`, or in overflow pages.
    pub(crate) fn look(
        &self,
        key: &[u8],
        scratch: &mut Scratch,
    ) -> Result<Option<Option<Reference>>, PoolError> {
        Ok(match self.find(key, scratch)? {
            Found::Missing => None,
            Found::Inline => Some(None),
            Found::Overflow(reference) => Some(Some(reference)),
        })
    }
}
