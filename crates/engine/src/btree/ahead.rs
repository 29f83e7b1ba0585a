//! Reads ahead of a scan: orders its next leaves before it needs them.
//!
//! A scan looks at the leaves that come next, first in its parent and then in the parents behind,
//! and orders those that are not in memory. It looks again when it has passed half of the leaves
//! that it looked at. So a background thread reads many leaves together, in one request where they
//! are neighbours in the file. Where leaves were missing, the next parents are also ordered, before
//! their leaves are.
//!
//! All of this is a hint. A leaf that was not ordered is read when it is needed. An error is left
//! to the scan that needs the page.

use millpond_base::PageId;

use crate::btree::descend::Seek;
use crate::btree::node::layout::Node;
use crate::btree::tree::BTree;
use crate::pool::{Pages, PoolError, Read};

/// Maximum number of leaves that are ordered ahead.
pub(crate) const AHEAD_MAX: usize = 128;

/// Number of parents ordered together.
const PARENTS: usize = 4;

/// The leaves to fetch.
#[derive(Clone, Copy)]
pub(crate) struct Wish<'k> {
    pub(crate) seek: Seek<'k>,
    pub(crate) forward: bool,
    /// Maximum number of leaves to fetch.
    pub(crate) leaves: usize,
    /// Number of leaves after those to prefetch.
    pub(crate) ahead: usize,
    /// Key after whose leaf no leaf is fetched.
    pub(crate) stop: Option<&'k [u8]>,
    /// True if the leaves are marked as referenced by a scan.
    pub(crate) scan: bool,
    /// True if values are wanted, too.
    pub(crate) values: bool,
    /// True if the first leaf comes right after the last one of the batch, in the direction of the
    /// scan.
    pub(crate) goes_on: bool,
}

/// The part of the tree that a scan has looked at ahead of it.
#[derive(Default)]
pub(crate) struct Ahead {
    /// The parent of the last leaf fetched.
    parent: Option<PageId>,
    /// Number of its children after that leaf, in the direction of the scan.
    rest: usize,
    /// Number of leaves that were looked at and not fetched since, of this parent and of others.
    looked: usize,
    /// Position of the next look, once all children of this parent were looked at: the fence before
    /// the next parent, and the number of its children that were looked at. `None` if nothing
    /// follows.
    next: Option<(Vec<u8>, usize)>,
    /// True if the parents after this one were ordered.
    has_ordered: bool,
    /// True if leaves that were looked at were not in memory.
    is_cold: bool,
}

/// Result of one look beyond the parent of a scan.
struct Look {
    /// Number of leaves looked at.
    passed: usize,
    /// The fence behind the node, if all of its children were looked at.
    fence: Option<Option<Vec<u8>>>,
}

impl Ahead {
    /// Resets the state for another scan.
    pub(crate) fn forget(&mut self) {
        *self = Ahead::default();
    }

    /// Records that a leaf was fetched, which has `rest` others after it in `parent`.
    pub(crate) fn pass<P: Pages>(&mut self, parent: &Read<'_, P>, rest: usize) {
        let page = parent.header().page();
        let passed = if self.parent == page { self.rest.saturating_sub(rest) } else { 1 };
        self.has_ordered &= self.parent == page;
        self.looked = self.looked.saturating_sub(passed);
        (self.parent, self.rest) = (page, rest);
    }

    /// Looks at the children of `parent` behind child `index`, if it is time to do so.
    pub(crate) fn look<P: Pages>(&mut self, parent: &Read<'_, P>, index: usize, wish: Wish<'_>) {
        let most = wish.ahead.min(self.rest);
        if self.looked >= self.rest || 2 * self.looked >= most {
            return;
        }
        let inner = Node::inner(parent.view());
        let needed = wish.stop.map_or(self.rest, |stop| inner.child_for(stop).abs_diff(index));
        let until = most.min(needed);
        if self.looked >= until {
            return;
        }
        let child = |step| if wish.forward { index + step } else { index.saturating_sub(step) };
        let (passed, is_cold) = order(parent, (self.looked + 1..=until).map(child));
        self.looked += passed;
        self.is_cold = is_cold;
        let goes_on = is_cold && needed >= self.rest;
        self.next = if goes_on { fence(inner, wish).map(|fence| (fence, 0)) } else { None };
    }

    /// Returns the number of frames for the leaves to look at next, if leaves were missing.
    fn frames(&self, wish: Wish<'_>) -> Option<u32> {
        let is_due = 2 * self.looked < wish.ahead;
        let comes = self.looked < self.rest || self.next.is_some();
        (self.is_cold && is_due && comes).then_some(wish.ahead.saturating_sub(self.looked) as u32)
    }
}

/// Returns the fence behind a node, in the direction of a scan, or `None` if the scan ends before
/// it.
fn fence(node: Node<'_>, wish: Wish<'_>) -> Option<Vec<u8>> {
    let (upper, stop) = (wish.forward, wish.stop);
    let fence = if upper { node.upper_bytes() } else { Some(node.lower_bytes()) };
    fence.filter(|fence| match (stop, upper) {
        (Some(stop), true) => fence.as_slice() <= stop,
        (stop, false) => fence.as_slice() > stop.unwrap_or(&[]),
        (None, true) => true,
    })
}

/// Orders the children of a node that are not in memory. Returns the number of children that need
/// nothing more, and whether any were missing.
fn order<P: Pages>(node: &Read<'_, P>, children: impl Iterator<Item = usize>) -> (usize, bool) {
    let (mut places, mut count, mut missing) = ([0; AHEAD_MAX], 0, false);
    let inner = Node::inner(node.view());
    for (place, child) in places.iter_mut().zip(children) {
        *place = inner.child_at(child);
        let word = node.swip(*place);
        missing |= word.is_evicted() && !node.mtr().pages().is_resident(word);
        count += 1;
    }
    let places = places.get(..count).unwrap_or(&[]);
    if missing { (node.mtr().pages().prefetch(node, places), true) } else { (count, false) }
}

/// Returns at most `most` children of a node, from `first` on in the direction of a scan, after the
/// first `skip`.
fn children(
    node: Node<'_>,
    first: usize,
    forward: bool,
    skip: usize,
    most: usize,
) -> impl ExactSizeIterator<Item = usize> {
    let all = if forward { (node.count() + 1).saturating_sub(first) } else { first + 1 };
    let until = all.min(skip.saturating_add(most));
    let child = move |step| if forward { first + step } else { first.saturating_sub(step) };
    (skip.min(until)..until).map(child)
}

impl<P: Pages> BTree<P> {
    /// Makes frames for the pages that a scan will order next.
    pub(crate) fn make_ready(&self, ahead: &Ahead, wish: Wish<'_>) {
        if let Some(frames) = ahead.frames(wish) {
            // Without free frames, nothing is read ahead. The load meets the error, if any.
            let _ = self.pages.make_ready(frames);
        }
    }

    /// Orders the next parents of a scan whose leaves are missing, and their leaves once all leaves
    /// of its own parent were looked at.
    pub(crate) fn look_beyond(&self, ahead: &mut Ahead, wish: Wish<'_>) {
        if !ahead.is_cold || ahead.next.is_none() {
            return;
        }
        if !ahead.has_ordered {
            ahead.has_ordered = true;
            self.order_parents(ahead, wish);
        }
        if ahead.looked < ahead.rest || 2 * ahead.looked >= wish.ahead {
            return;
        }
        for _ in 0..PARENTS {
            let lack = wish.ahead.saturating_sub(ahead.looked);
            let Some((fence, skip)) = ahead.next.take().filter(|_| lack > 0) else { return };
            // The load meets the error, if any.
            let Ok(Some(look)) = self.look_at(&fence, skip, lack, wish) else { return };
            ahead.looked += look.passed;
            ahead.next = match look.fence {
                Some(behind) => behind.map(|fence| (fence, 0)),
                None => Some((fence, skip + look.passed)),
            };
            if look.passed < lack && ahead.next.as_ref().is_some_and(|(_, skip)| *skip > 0) {
                // There are no frames for more.
                return;
            }
        }
    }

    /// Orders leaves of the parent at `fence`.
    fn look_at(
        &self,
        fence: &[u8],
        skip: usize,
        most: usize,
        wish: Wish<'_>,
    ) -> Result<Option<Look>, PoolError> {
        let seek = if wish.forward { Seek::At(fence) } else { Seek::Below(fence) };
        self.pages.run(|mtr| {
            let Some(place) = self.place(mtr, seek, 1)? else { return Ok(None) };
            let inner = Node::inner(place.node.view());
            let first = seek.child(inner);
            let needed = wish.stop.map(|stop| inner.child_for(stop).abs_diff(first) + 1);
            let leaves = |most| children(inner, first, wish.forward, skip, most);
            let wanted = leaves(most.min(needed.unwrap_or(most + skip).saturating_sub(skip)));
            let is_last = leaves(usize::MAX).len() <= most;
            let count = wanted.len();
            let (passed, _) = order(&place.node, wanted);
            let behind = self::fence(inner, wish);
            place.node.validate()?;
            let fence = (is_last && passed == count).then_some(behind);
            Ok(Some(Look { passed, fence }))
        })
    }

    /// Orders the parents after the scan's own, as children of the level above.
    fn order_parents(&self, ahead: &Ahead, wish: Wish<'_>) {
        let Some((fence, _)) = &ahead.next else { return };
        let seek = if wish.forward { Seek::At(fence) } else { Seek::Below(fence) };
        // The load meets the error, if any.
        let _ = self.pages.run(|mtr| {
            if let Some(place) = self.place(mtr, seek, 2)? {
                let inner = Node::inner(place.node.view());
                let first = seek.child(inner);
                order(&place.node, children(inner, first, wish.forward, 0, PARENTS));
            }
            Ok(())
        });
    }
}
