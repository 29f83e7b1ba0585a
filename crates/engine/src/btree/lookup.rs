//! Looking up one key.
//!
//! [`BTree::get`] copies the value while the leaf is read optimistically; the caller's closure sees
//! the copy after validation, outside the attempt: it runs once, and under no latch. Nothing is
//! written that other threads read.
//!
//! [`BTree::read`] copies nothing: once the leaf was read, it is latched in shared mode at the
//! version that was read, and the closure sees the value where it lies. The attempt is over by then
//! and its epoch left, so that the closure may use the store; what would need the leaf for itself
//! fails instead of waiting for ever ([`PoolError::Held`]).

use crate::btree::node::edit::{Reference, reference_at};
use crate::btree::node::layout::{Node, Value};
use crate::btree::tree::{BTree, corrupt};
use crate::page::Scratch;
use crate::pool::{Pages, PoolError, Shared};

/// Bytes of a value that are asked for before its leaf is latched; what follows in a larger one is
/// fetched ahead by the processor itself.
const AHEAD: usize = 512;

enum Found {
    Missing,
    Inline,
    Overflow(Reference),
}

enum Held<'t> {
    Missing,
    Inline(Shared<'t>),
    Overflow(Reference),
}

/// A value to look at.
pub(crate) enum ValueRef<'t> {
    /// Where it lies, in a leaf that is latched.
    InLeaf(Shared<'t>),
    /// It lay in pages of its own, and was put together.
    Whole(Vec<u8>),
}

impl ValueRef<'_> {
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            ValueRef::InLeaf(held) => held.bytes(),
            ValueRef::Whole(value) => value,
        }
    }
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
            match self.find(key, &mut scratch) {
                Ok(Found::Missing) => return Ok(None),
                Ok(Found::Inline) => return Ok(Some(f(scratch.bytes()))),
                Err(error) => return Err(error),
                Ok(Found::Overflow(reference)) => {
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

    /// What `f` makes of the value of `key`, which it sees where it lies, without a copy; `None` if
    /// there is no such key. A value in overflow pages is put together first.
    ///
    /// `f` runs once, under the leaf's shared latch: it keeps writers of the leaf waiting, but no
    /// readers. If it panics, the latch is released. It may use the tree; a write to the same leaf
    /// or to one beside it, and the first read of another value in overflow pages below the leaf,
    /// fail with [`PoolError::Held`].
    ///
    /// # Errors
    /// The memory behind the tree failed.
    #[inline]
    pub fn read<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, PoolError> {
        Ok(self.hold(key)?.map(|value| f(value.bytes())))
    }

    /// What [`BTree::read`] hands out: not generic, for code that is to be compiled here.
    pub(crate) fn hold(&self, key: &[u8]) -> Result<Option<ValueRef<'_>>, PoolError> {
        loop {
            match self.find_held(key)? {
                Held::Missing => return Ok(None),
                Held::Inline(held) => return Ok(Some(ValueRef::InLeaf(held))),
                Held::Overflow(reference) => {
                    if let Some(value) = self.read_whole(key, reference)? {
                        return Ok(Some(ValueRef::Whole(value)));
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
        self.pages.run(|mtr| {
            let leaf = self.leaf_for(mtr, key)?;
            let (_, equal) = Node::leaf(leaf.view()).lower_bound(key);
            leaf.validate()?;
            Ok(equal)
        })
    }

    /// Not inlined: it is the whole descent, and callers bring many closures.
    #[inline(never)]
    fn find(&self, key: &[u8], scratch: &mut Scratch) -> Result<Found, PoolError> {
        self.pages.run(|mtr| {
            let leaf = self.leaf_for(mtr, key)?;
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

    /// The same with the value held in its leaf. Not inlined, as [`BTree::find`] is not.
    #[inline(never)]
    fn find_held(&self, key: &[u8]) -> Result<Held<'_>, PoolError> {
        let pages: &P = &self.pages;
        pages.run(|mtr| {
            let leaf = self.leaf_for(mtr, key)?;
            let node = Node::leaf(leaf.view());
            let (i, equal) = node.lower_bound(key);
            if !equal {
                leaf.validate()?;
                return Ok(Held::Missing);
            }
            match node.value(i) {
                Value::Inline(span) => {
                    // The processor does not look ahead past the latch.
                    node.view.prefetch(span.at, span.len.min(AHEAD));
                    let page = leaf.header().page().unwrap_or_default();
                    match leaf.share(pages, span.at, span.len)? {
                        Some(held) => Ok(Held::Inline(held)),
                        None => Err(corrupt(page, "a value reaches beyond its page")),
                    }
                }
                Value::Overflow(at) => {
                    let reference = reference_at(node.view, at);
                    leaf.validate()?;
                    Ok(Held::Overflow(reference))
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
