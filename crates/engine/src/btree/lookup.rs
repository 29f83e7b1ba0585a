//! Looks up single keys.
//!
//! [`BTree::get`] copies the value while the leaf is read optimistically. The caller's closure sees
//! the copy after validation, outside the attempt: it runs once, and under no latch. Nothing is
//! written that other threads read.
//!
//! [`BTree::read`] copies nothing. Once the leaf was read, it is latched in shared mode at the
//! version that was read, and the closure sees the value in its page. By then the attempt is over
//! and its epoch left, so the closure may use the store. An operation that needs the leaf in
//! exclusive mode fails instead of waiting for ever ([`PoolError::Held`]).

use crate::btree::node::edit::{Reference, reference_at};
use crate::btree::node::layout::{Node, Value};
use crate::btree::tree::{BTree, corrupt};
use crate::page::Scratch;
use crate::pool::{Pages, PoolError, Shared};

/// Number of bytes of a value to prefetch before its leaf is latched; the processor itself
/// prefetches the rest of a larger one.
const AHEAD: usize = 512;

/// The result of a look-up that copies inline values to a scratch buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup<V> {
    /// There is no such key.
    Missing,
    /// The value is in its leaf, and its bytes are in the scratch buffer.
    Inline,
    /// The value is in overflow pages.
    Overflow(V),
}

impl<V: AsRef<[u8]>> Lookup<V> {
    /// Calls `f` with the value and returns its result, or `None` if there is no such key.
    /// `scratch` is the look-up's.
    #[inline]
    pub fn map<R>(&self, scratch: &Scratch, f: impl FnOnce(&[u8]) -> R) -> Option<R> {
        match self {
            Lookup::Missing => None,
            Lookup::Inline => Some(f(scratch.bytes())),
            Lookup::Overflow(value) => Some(f(value.as_ref())),
        }
    }
}

/// The result of a look-up that latches the leaf of an inline value.
enum Held<'t> {
    Missing,
    Inline(Shared<'t>),
    Overflow(Reference),
}

/// A value borrowed from its page, or a copy of one in overflow pages.
pub(crate) enum ValueRef<'t> {
    /// A value in its leaf, which is latched in shared mode.
    InLeaf(Shared<'t>),
    /// A copy of a value in overflow pages.
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
    /// Calls `f` with the value of `key` and returns its result, or `None` if there is no such key.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    #[inline]
    pub fn get<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, PoolError> {
        let mut scratch = Scratch::default();
        loop {
            match self.look(key, &mut scratch) {
                Ok(Lookup::Missing) => return Ok(None),
                Ok(Lookup::Inline) => return Ok(Some(f(scratch.bytes()))),
                Err(error) => return Err(error),
                Ok(Lookup::Overflow(reference)) => {
                    if let Some(value) = self.read_whole(key, reference)? {
                        return Ok(Some(f(&value)));
                    }
                }
            }
        }
    }

    /// Looks up `key`. Copies an inline value to `scratch`; reads a value in overflow pages as a
    /// whole.
    ///
    /// Unlike [`BTree::get`], this is not generic, so that it is compiled in this crate.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn get_scratch(
        &self,
        key: &[u8],
        scratch: &mut Scratch,
    ) -> Result<Lookup<Vec<u8>>, PoolError> {
        loop {
            match self.look(key, scratch)? {
                Lookup::Missing => return Ok(Lookup::Missing),
                Lookup::Inline => return Ok(Lookup::Inline),
                Lookup::Overflow(reference) => {
                    if let Some(value) = self.read_whole(key, reference)? {
                        return Ok(Lookup::Overflow(value));
                    }
                }
            }
        }
    }

    /// Calls `f` with the value of `key` in its page, without a copy, and returns its result.
    /// Returns `None` if there is no such key. A value in overflow pages is copied first.
    ///
    /// `f` runs once, under the leaf's shared latch: it blocks writers of the leaf, but no readers.
    /// If it panics, the latch is released. `f` may use the tree. However, a write to the same leaf
    /// or to one beside it fails with [`PoolError::Held`], and so does the first read of another
    /// value in overflow pages below the leaf.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    #[inline]
    pub fn read<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, PoolError> {
        Ok(self.hold(key)?.map(|value| f(value.bytes())))
    }

    /// Returns the value that [`BTree::read`] shows. It is not generic, so that it is compiled in
    /// this crate.
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

    /// Copies the value of `key` to `out`. Returns `false`, and empties `out`, if there is no such
    /// key.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn get_into(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool, PoolError> {
        out.clear();
        Ok(self.get(key, |value| out.extend_from_slice(value))?.is_some())
    }

    /// Returns a copy of the value of `key`.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn get_owned(&self, key: &[u8]) -> Result<Option<Vec<u8>>, PoolError> {
        self.get(key, <[u8]>::to_vec)
    }

    /// Returns whether `key` exists.
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

    /// Looks up `key`, and copies an inline value to `scratch`.
    #[inline(always)]
    pub(crate) fn look(
        &self,
        key: &[u8],
        scratch: &mut Scratch,
    ) -> Result<Lookup<Reference>, PoolError> {
        self.look_after(0, key, scratch)
    }

    /// Looks up `key`; the policy was already notified of the first `notified` references. Not
    /// inlined: this is the whole descent, and many closures are compiled against it.
    #[inline(never)]
    pub(crate) fn look_after(
        &self,
        notified: u64,
        key: &[u8],
        scratch: &mut Scratch,
    ) -> Result<Lookup<Reference>, PoolError> {
        self.pages.run_after(notified, |mtr| {
            let leaf = self.leaf_for(mtr, key)?;
            let node = Node::leaf(leaf.view());
            let (i, equal) = node.lower_bound(key);
            if !equal {
                leaf.validate()?;
                return Ok(Lookup::Missing);
            }
            match node.value(i) {
                Value::Inline(span) => {
                    let copied = node.view.copy_out(span.at, span.len, scratch);
                    leaf.validate()?;
                    if copied {
                        Ok(Lookup::Inline)
                    } else {
                        let page = leaf.header().page().unwrap_or_default();
                        Err(corrupt(page, "a value reaches beyond its page"))
                    }
                }
                Value::Overflow(at) => {
                    let reference = reference_at(node.view, at);
                    leaf.validate()?;
                    Ok(Lookup::Overflow(reference))
                }
            }
        })
    }

    /// Looks up `key`, and latches the leaf of an inline value in shared mode. Not inlined, like
    /// the descent of [`BTree::look`].
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
                    // The processor does not prefetch past the latch.
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

    /// Returns the reference to `key`'s value, if it is in overflow pages.
    pub(crate) fn find_reference(&self, key: &[u8]) -> Result<Option<Reference>, PoolError> {
        match self.look(key, &mut Scratch::default())? {
            Lookup::Missing | Lookup::Inline => Ok(None),
            Lookup::Overflow(reference) => Ok(Some(reference)),
        }
    }
}
