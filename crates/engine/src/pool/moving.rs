//! Moves pages to lower ids, so that the end of a file becomes free.
//!
//! # How
//! A page moves in one mini-transaction. A new page is allocated below a bound, and the old page's
//! bytes are copied behind its header. The one swip that refers to the page (`pages.rs`, rule 1) is
//! replaced, the swips in the page are adopted, and the old page is freed. To other threads this
//! looks like a merge. The parent's version and that of the old frame grow, so a thread that read
//! either restarts. The policy is notified of a new page and of one that was dropped. The log gets
//! one record, of no transaction, with the new page's image, the parent's change, and the old page
//! as free. A crash leaves the page in one place, and no undo moves it back. The content of a page
//! stays the same, byte for byte: keys, numbers of rows, stamps of values. Only a swip remembers
//! the place of a page for longer than a mini-transaction. A thread that loads a page in between
//! has an in-flight load, and the mover waits for it, as it needs the page in memory.
//!
//! Only the swips of each page have to be known, and a [`Kind`](super::Kind) finds them, so this is
//! written once, for all structures. Pages that no root reaches stay: a value that a transaction
//! replaced, say, whose anchor that transaction has.
//!
//! # The walk
//! A [`Walk`] goes through a structure from its root, parents before children, and remembers its
//! place as a path: which child of the root, which child of that, and so on. Nothing is held
//! between two steps. Other threads change the structure in between, so a path may lead elsewhere
//! afterwards, and pages may be passed over or seen twice. The caller asks the page store whether
//! pages are left behind the bound, and walks again.
//!
//! A child is loaded only if it is to move, or may have children of its own. The ids of other
//! children are known from the swips that refer to them.

use millpond_base::{AccessKind, Mark, PageId, PageKind};

use crate::page::{PAGE_HEADER, PageHeader, PageType, View};
use crate::pool::allocation::Lacking;
use crate::pool::anchors::Anchor;
use crate::pool::buffer_pool::Pool;
use crate::pool::error::PoolError;
use crate::pool::guard::{Read, Write};
use crate::pool::jump::Try;
use crate::pool::mini_transaction::MiniTransaction;
use crate::pool::options::PoolStrategy;
use crate::pool::pages::{NewPage, Pages};
use crate::pool::swip::Swip;

/// Position of a walk through a structure that moves pages to ids below a bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Walk {
    /// Index of the child at each level; empty once all pages were seen.
    path: Vec<usize>,
    bound: PageId,
    /// `true` if leaves of trees are read, for values in pages of their own.
    values: bool,
}

impl Walk {
    /// Returns a walk before the first child of a root. Pages from `bound` on are to move. With
    /// `values`, the pages of trees' large values move as well, for which all leaves have to be
    /// read.
    pub fn new(bound: PageId, values: bool) -> Walk {
        Walk { path: vec![0], bound, values }
    }

    /// Returns the bound: pages move below it.
    pub fn bound(&self) -> PageId {
        self.bound
    }

    /// Continues behind the current child.
    fn pass(&mut self) {
        if let Some(last) = self.path.last_mut() {
            *last += 1;
        }
    }

    /// Continues behind the parent of the current child.
    fn leave(&mut self) {
        self.path.pop();
        self.pass();
    }

    /// Continues at child `index`: among its children if it `leads_on`, or else behind it.
    fn enter(&mut self, index: usize, leads_on: bool) {
        if let Some(last) = self.path.last_mut() {
            *last = index + usize::from(!leads_on);
        }
        if leads_on {
            self.path.push(0);
        }
    }
}

/// Result of a step of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moved {
    /// The step moved a page.
    Page,
    /// The walk continued without moving a page.
    Nothing,
    /// A page that was to move was unavailable, and was passed over.
    Busy,
    /// There is no free page below the bound.
    Full,
    /// The walk is over.
    End,
}

/// A copy of a page, with the offsets of its swips.
#[derive(Default)]
struct Seen {
    page: Vec<u8>,
    swips: Vec<usize>,
}

fn mark(what: AccessKind) -> Mark {
    // Not the mark of a scan: the pages on the way down would be the first victims for the pages
    // below them.
    Mark::of(what).with_kind(PageKind::OTHER, 0)
}

impl<M: PoolStrategy> Pool<M> {
    /// Number of mini-transactions after which a page is passed over: other threads hold it, or it
    /// does not stay in memory.
    pub(crate) const MOVE_TRIES: u32 = 50;

    /// Takes a step of a walk through the structure below `anchor`: moves the next page that is to
    /// move, or continues to the next page that may have children.
    ///
    /// # Errors
    /// A page could not be read, or no frame was available.
    pub fn move_on(&self, anchor: Anchor, walk: &mut Walk) -> Result<Moved, PoolError> {
        let (mut seen, mut tries) = (Seen::default(), 0);
        loop {
            self.make_log_room(2 * self.frames.page_size())?;
            let done = self.run(|mtr| {
                tries += 1;
                if tries > Self::MOVE_TRIES {
                    return Ok(Some(Moved::Busy));
                }
                self.attempt_step(mtr, anchor, walk, &mut seen)
            });
            match done {
                Ok(None) => self.make_frames(1)?,
                // With `Held`, a closure of this thread has borrowed the page.
                Ok(Some(Moved::Busy)) | Err(PoolError::Held { .. }) => {
                    walk.pass();
                    return Ok(Moved::Busy);
                }
                Ok(Some(moved)) => return Ok(moved),
                Err(error) => return Err(error),
            }
        }
    }

    fn attempt_step<'o>(
        &'o self,
        mtr: &'o MiniTransaction<'o, Self>,
        anchor: Anchor,
        walk: &mut Walk,
        seen: &mut Seen,
    ) -> Try<Option<Moved>> {
        let Some((&from, way)) = walk.path.split_last() else { return Ok(Some(Moved::End)) };
        let mut node = Read::root(mtr, anchor, mark(AccessKind::Read))?;
        for (depth, &index) in way.iter().enumerate() {
            self.see(&node, seen)?;
            let Some(&at) = seen.swips.get(index) else {
                walk.path.truncate(depth + 1);
                walk.leave();
                return Ok(Some(Moved::Nothing));
            };
            node = node.child(at, mark(AccessKind::Read))?;
        }
        self.see(&node, seen)?;
        let view = View::of(&seen.page);
        let above_leaves = PageHeader::type_in(view) == PageType::BTREE_INNER
            && PageHeader::read(&seen.page).level == 1;
        let kind = self.translation.kinds().of(view);
        for (index, &at) in seen.swips.iter().enumerate().skip(from) {
            let leads_on =
                (walk.values || !above_leaves) && kind.is_some_and(|kind| kind.leads_on(view, at));
            if self.page_of(Swip(view.u64(at))) >= walk.bound {
                let moved = self.move_child(mtr, &mut node.upgrade()?, at, walk.bound)?;
                if moved == Some(Moved::Page) {
                    walk.enter(index, leads_on);
                }
                return Ok(moved);
            }
            if leads_on {
                node.validate()?;
                walk.enter(index, true);
                return Ok(Some(Moved::Nothing));
            }
        }
        node.validate()?;
        walk.leave();
        Ok(Some(Moved::Nothing))
    }

    /// Copies a page, and finds its swips.
    fn see(&self, node: &Read<'_, Self>, seen: &mut Seen) -> Try<()> {
        seen.page.clear();
        seen.swips.clear();
        node.view().copy_to(0, self.frames.page_size(), &mut seen.page);
        node.validate()?;
        let view = View::of(&seen.page);
        if let Some(kind) = self.translation.kinds().of(view) {
            kind.swips(view, &mut |at| {
                seen.swips.push(at);
                true
            });
        }
        Ok(())
    }

    /// Moves the root below `anchor`, if its id is not below `bound`, and returns its new id.
    /// Without a free frame it returns `None` and changes nothing.
    ///
    /// # Errors
    /// A jump.
    pub(crate) fn move_root<'o>(
        &'o self,
        mtr: &'o MiniTransaction<'o, Self>,
        anchor: Anchor,
        bound: PageId,
    ) -> Try<(Option<Moved>, Option<PageId>)> {
        let mut parent = Read::anchor(mtr, anchor)?.upgrade()?;
        let moved = self.move_child(mtr, &mut parent, anchor.swip(), bound)?;
        let root = self.page_of(Swip(parent.view().u64(anchor.swip())));
        Ok((moved, (moved == Some(Moved::Page)).then_some(root)))
    }

    /// Moves the child at `at` of `parent`, if its id is not below `bound`. Without a free frame it
    /// returns `None` and changes nothing.
    fn move_child<'o>(
        &'o self,
        mtr: &'o MiniTransaction<'o, Self>,
        parent: &mut Write<'o, Self>,
        at: usize,
        bound: PageId,
    ) -> Try<Option<Moved>> {
        let mut old = parent.child_exclusive(at, mark(AccessKind::Write))?;
        if old.id() < bound {
            return Ok(Some(Moved::Nothing));
        }
        let PageHeader { owner, kind, level, .. } = PageHeader::read(old.page());
        let mut new = match self.allocate_below(mtr, NewPage { owner, kind, level }, bound) {
            Ok(new) => new,
            Err(Lacking::Frame) => return Ok(None),
            Err(Lacking::Id) => return Ok(Some(Moved::Full)),
        };
        if let (Some(to), Some(from)) =
            (new.page_mut().get_mut(PAGE_HEADER..), old.page().get(PAGE_HEADER..))
        {
            to.copy_from_slice(from);
        }
        if let Some(kind) = self.translation.kinds().of(new.view()) {
            kind.swips(new.view(), &mut |at| {
                mtr.adopt(Swip(new.view().u64(at)), &new);
                true
            });
        }
        debug_assert!(new.id() < bound, "a page moves below the bound");
        debug_assert!(old.id() >= bound, "a page that moves was behind the bound");
        let swip = new.swip();
        if let Some(place) = parent.page_mut().get_mut(at..at + 8) {
            place.copy_from_slice(&swip.0.to_le_bytes());
        }
        mtr.adopt(swip, parent);
        // The children of the old page belong to the new one.
        if let Some(body) = old.page_mut().get_mut(PAGE_HEADER..) {
            body.fill(0);
        }
        old.free();
        Ok(Some(Moved::Page))
    }
}
