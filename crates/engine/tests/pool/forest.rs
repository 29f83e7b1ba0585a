//! The smallest structure that uses everything of a pool: a tree of fixed fan-out whose leaves
//! count, and which drops and makes leaves.

use std::sync::Arc;

use millpond::internals::page::{PAGE_HEADER, PageType, View};
use millpond::internals::pool::{
    Anchor, Kind, MiniTransaction, NewPage, Pages, PoolError, Read, Swip, Try,
};
use millpond_base::{Mark, PageKind};

pub const FAN_OUT: usize = 8;
const INNER: PageType = PageType(100);
const LEAF: PageType = PageType(101);
const SWIPS: usize = PAGE_HEADER;
const COUNT: usize = PAGE_HEADER;
const NUMBER: usize = PAGE_HEADER + 8;

struct InnerKind;

impl Kind for InnerKind {
    fn swips(&self, page: View<'_>, visit: &mut dyn FnMut(usize) -> bool) {
        let filled = |at: &usize| page.u64(*at) != Swip::NULL.0;
        for at in (0..FAN_OUT).map(|i| SWIPS + i * 8).filter(filled) {
            if !visit(at) {
                return;
            }
        }
    }
}

/// A tree with `FAN_OUT`² leaves.
pub struct Forest<P: Pages> {
    pub pages: Arc<P>,
    anchor: Anchor,
}

fn put(page: &mut [u8], at: usize, word: u64) {
    page[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

fn get(page: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(page[at..at + 8].try_into().unwrap())
}

fn new(kind: PageType) -> NewPage {
    NewPage { owner: 7, kind, level: u8::from(kind == INNER) }
}

fn mark(leaf: bool, write: bool) -> Mark {
    let kind = if leaf { PageKind::BTREE_LEAF } else { PageKind::BTREE_INNER };
    let mtr = if write { Mark::WRITE } else { Mark::READ };
    mtr.with_kind(kind, u8::from(leaf) + 1)
}

impl<P: Pages> Forest<P> {
    /// All leaves exist and have counted nothing. `register` gives the pool the inner pages' kind.
    pub fn new(pages: Arc<P>, register: impl FnOnce(&P, PageType, &'static dyn Kind)) -> Self {
        let inner: Vec<usize> = (0..FAN_OUT).collect();
        Forest::small(pages, register, &inner, 0..FAN_OUT * FAN_OUT)
    }

    /// Only these inner pages and leaves exist.
    pub fn small(
        pages: Arc<P>,
        register: impl FnOnce(&P, PageType, &'static dyn Kind),
        inner: &[usize],
        leaves: impl Iterator<Item = usize>,
    ) -> Self {
        register(&pages, INNER, &InnerKind);
        let (anchor, _) = pages.anchor_new(new(INNER)).unwrap();
        let forest = Forest { pages, anchor };
        for i in inner {
            forest.pages.run(|mtr| forest.add_inner(mtr, *i)).unwrap();
        }
        for leaf in leaves {
            forest.make(leaf).unwrap();
        }
        forest
    }

    fn add_inner<'o>(&self, mtr: &'o MiniTransaction<'o, P>, i: usize) -> Try<()> {
        let mut root = Read::root(mtr, self.anchor, mark(false, true))?.upgrade()?;
        let inner = mtr.allocate(new(INNER))?;
        let word = inner.swip();
        put(root.page_mut(), SWIPS + i * 8, word.0);
        mtr.adopt(word, &root);
        Ok(())
    }

    fn inner<'o>(&self, mtr: &'o MiniTransaction<'o, P>, leaf: usize) -> Try<Read<'o, P>> {
        let root = Read::root(mtr, self.anchor, mark(false, false))?;
        root.child(SWIPS + leaf / FAN_OUT * 8, mark(false, false))
    }

    /// Makes leaf number `leaf`, which must not exist.
    pub fn make(&self, leaf: usize) -> Result<(), PoolError> {
        let at = SWIPS + leaf % FAN_OUT * 8;
        self.pages.run(|mtr| {
            let mut inner = self.inner(mtr, leaf)?.upgrade()?;
            let mut page = mtr.allocate(new(LEAF))?;
            put(page.page_mut(), NUMBER, leaf as u64);
            let word = page.swip();
            assert_eq!(get(inner.page(), at), Swip::NULL.0, "leaf {leaf} exists");
            put(inner.page_mut(), at, word.0);
            mtr.adopt(word, &inner);
            Ok(())
        })
    }

    /// Drops leaf number `leaf` and returns its count.
    pub fn drop_leaf(&self, leaf: usize) -> Result<u64, PoolError> {
        let at = SWIPS + leaf % FAN_OUT * 8;
        self.pages.run(|mtr| {
            let mut inner = self.inner(mtr, leaf)?.upgrade()?;
            let page = inner.child_exclusive(at, mark(true, true))?;
            assert_eq!(get(page.page(), NUMBER), leaf as u64);
            let count = get(page.page(), COUNT);
            put(inner.page_mut(), at, Swip::NULL.0);
            page.free();
            Ok(count)
        })
    }

    /// Adds one to leaf number `leaf`.
    pub fn count(&self, leaf: usize) -> Result<(), PoolError> {
        let at = SWIPS + leaf % FAN_OUT * 8;
        self.pages.run(|mtr| {
            let inner = self.inner(mtr, leaf)?;
            let mut page = inner.child_exclusive(at, mark(true, true))?;
            assert_eq!(get(page.page(), NUMBER), leaf as u64, "another page than the swip says");
            let count = get(page.page(), COUNT);
            put(page.page_mut(), COUNT, count + 1);
            Ok(())
        })
    }

    /// Returns the count of leaf number `leaf`.
    pub fn read(&self, leaf: usize) -> Result<u64, PoolError> {
        let at = SWIPS + leaf % FAN_OUT * 8;
        self.pages.run(|mtr| {
            let page = self.inner(mtr, leaf)?.child(at, mark(true, false))?;
            let (number, count) = (page.view().u64(NUMBER), page.view().u64(COUNT));
            page.validate()?;
            assert_eq!(number, leaf as u64, "another page than the swip says");
            Ok(count)
        })
    }

    /// Like `read`, for a leaf that another thread may have dropped.
    #[allow(dead_code, reason = "not every test that has a forest drops what others read")]
    pub fn read_if_there(&self, leaf: usize) -> Result<Option<u64>, PoolError> {
        let at = SWIPS + leaf % FAN_OUT * 8;
        self.pages.run(|mtr| {
            let inner = self.inner(mtr, leaf)?;
            let word = inner.swip(at);
            inner.validate()?;
            if word == Swip::NULL {
                return Ok(None);
            }
            let page = inner.child(at, mark(true, false))?;
            let (number, count) = (page.view().u64(NUMBER), page.view().u64(COUNT));
            page.validate()?;
            assert_eq!(number, leaf as u64, "another page than the swip says");
            Ok(Some(count))
        })
    }

    /// Like `read`; `meanwhile` runs in the first attempt, before it ends.
    pub fn read_while(&self, leaf: usize, meanwhile: impl FnOnce()) -> Result<u64, PoolError> {
        let at = SWIPS + leaf % FAN_OUT * 8;
        let mut meanwhile = Some(meanwhile);
        self.pages.run(|mtr| {
            let inner = self.inner(mtr, leaf)?;
            let page = inner.child(at, mark(true, false));
            // Else a shared hold would keep the others out.
            drop(inner);
            if let Some(meanwhile) = meanwhile.take() {
                meanwhile();
            }
            let page = page?;
            let (number, count) = (page.view().u64(NUMBER), page.view().u64(COUNT));
            page.validate()?;
            assert_eq!(number, leaf as u64, "another page than the swip says");
            Ok(count)
        })
    }

    /// Asks for all children of the inner page above `leaf` ahead of their use.
    pub fn prefetch(&self, leaf: usize) -> Result<(), PoolError> {
        let at: Vec<usize> = (0..FAN_OUT).map(|i| SWIPS + i * 8).collect();
        self.pages.run(|mtr| {
            let inner = self.inner(mtr, leaf)?;
            self.pages.prefetch(&inner, &at);
            inner.validate()
        })
    }
}
