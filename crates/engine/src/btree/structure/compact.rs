//! The background merge: neighbouring leaves are merged until they are well filled.
//!
//! Random inserts leave leaves about 69 % full. Two of them never fit into one page, but the
//! content of four fits into three. An *X-merge* packs the entries of a few neighbours below one
//! parent evenly into one page less, and frees the last page. A call visits a bounded number of
//! leaves and continues where the last call ended.
//!
//! Where a leaf has room for only a few entries, few groups can spare a page, though the space left
//! over in each may hold an entry or two. The entries of such a group are moved to its first
//! leaves. So the last leaf, with which the next group begins, has the free space of all.

use std::ops::Range;

use millpond_base::PageId;

use crate::btree::descend::{LocatedNode, Seek, ahead, sound};
use crate::btree::node::edit::{Edit, Payload, put_swip};
use crate::btree::node::layout::{LAST_CHILD, Node, common};
use crate::btree::node::split::separator;
use crate::btree::structure::merge::LOADS_MAX;
use crate::btree::structure::relink::{adopt_all, copy_body};
use crate::btree::tree::BTree;
use crate::page::{PAGE_HEADER, PageBuffer};
use crate::pool::{Jump, MiniTransaction, Pages, PoolError, Swip, Try, Write};

/// Maximum number of leaves to pack into one less.
const WIDTH_MAX: usize = 6;
/// Largest fill of the packed leaves, in percent.
const FILL_MAX: usize = 96;
/// Largest average number of entries per leaf at which a group's entries are moved to its first
/// leaves.
const FEW: usize = 8;

struct Step {
    /// Page of the leaf visited.
    page: PageId,
    /// Number of leaves visited.
    leaves: u32,
    merged: bool,
    /// The key at which to continue; `None` at the end of the tree.
    next: Option<Vec<u8>>,
}

/// Pieces of the old leaves that form one new leaf: the index of the old leaf, and the range of its
/// entries.
type Pieces = Vec<(usize, Range<usize>)>;

impl<P: Pages> BTree<P> {
    /// Visits about `leaves` leaves and packs those that are badly filled, continuing where the
    /// last call ended. Returns whether it reached the end of the tree. A background thread or the
    /// user should call it now and then.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn compact(&self, leaves: u32) -> Result<bool, PoolError> {
        let mut key = std::mem::take(&mut *self.compact_from());
        let mut looked = 0;
        while looked < leaves {
            let mut loads = 0;
            self.pages.make_log_room(4 * self.pages.page_size())?;
            let step = self.pages.run(|mtr| {
                let step = self.compact_step(mtr, &key, loads >= LOADS_MAX);
                loads += u32::from(step.as_ref().is_err_and(Jump::is_load));
                step
            })?;
            looked += step.leaves.max(1);
            if step.merged {
                self.merge_above(&key)?;
            }
            // After a merge, the next step may visit the same leaf once more: there is one leaf
            // less then.
            let next = if step.merged { step.next } else { ahead(step.page, &key, step.next)? };
            match next {
                Some(next) => key = next,
                None => return Ok(true),
            }
        }
        *self.compact_from() = key;
        Ok(false)
    }

    /// Packs the leaves from the leaf of `key` on. Moves on to the next leaf if there is nothing to
    /// pack, or if `alone` is set because its neighbours are not resident at the same time.
    fn compact_step<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        key: &[u8],
        alone: bool,
    ) -> Try<Step> {
        let mut done = Step { page: self.root(), leaves: 1, merged: false, next: None };
        let Some(place) = self.place(mtr, Seek::At(key), 0)? else { return Ok(done) };
        let LocatedNode { parent, index, node, depth } = place;
        let Some(parent) = parent else {
            node.validate()?;
            return Ok(done);
        };
        let next = Node::leaf(node.view()).upper_bytes();
        done.page = node.header().page().unwrap_or_default();
        node.validate()?;
        if alone {
            return Ok(Step { next, ..done });
        }
        drop(node);
        let mut parent = sound(parent.upgrade()?, 1)?;
        let last = Node::inner(parent.view()).count();
        let mut group = vec![self.child_held(&parent, index, 0, depth)?];
        let (mut used, mut entries) = (loose(&group[0]), Node::leaf(group[0].view()).count());
        let room = group[0].view().len() - Node::leaf(group[0].view()).slots();
        while index + group.len() <= last && group.len() < WIDTH_MAX {
            let leaf = self.child_held(&parent, index + group.len(), 0, depth)?;
            used += loose(&leaf);
            entries += Node::leaf(leaf.view()).count();
            group.push(leaf);
            let pages = group.len() - 1;
            let even = |group: &[_], prefix| plan(group, pages, prefix);
            if used * 100 <= room * pages * FILL_MAX
                && self.pack(mtr, &mut parent, index, &mut group, even)?
            {
                let leaves = pages as u32;
                return Ok(Step { leaves, merged: true, next: last_lower(&group), ..done });
            }
        }
        let few = entries <= FEW * group.len();
        let first = |group: &[_], prefix| plan_first(group, room * FILL_MAX / 100, prefix);
        if few && group.len() > 1 && self.pack(mtr, &mut parent, index, &mut group, first)? {
            let leaves = group.len() as u32 - 1;
            return Ok(Step { leaves, next: last_lower(&group), ..done });
        }
        Ok(Step { next, ..done })
    }

    /// Distributes the entries of `group`, whose leaves begin at child `index`, as `planned`: to
    /// the same number of leaves, or to one less. Returns `false`, and changes nothing, if there is
    /// no such plan, or the entries do not fit after all.
    fn pack<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        parent: &mut Write<'o, P>,
        index: usize,
        group: &mut Vec<Write<'o, P>>,
        planned: impl FnOnce(&[Write<'o, P>], usize) -> Option<Vec<Pieces>>,
    ) -> Try<bool> {
        debug_assert!(group.len() > 1, "a group has leaves to merge");
        debug_assert!(index + group.len() - 1 <= Node::inner(parent.view()).count());
        let Some((drafts, fences)) = draft_leaves(group, planned) else { return Ok(false) };
        let Some(above) = draft_parent(parent, index, group, &fences) else { return Ok(false) };
        let gone = if drafts.len() < group.len() { group.pop() } else { None };
        debug_assert_eq!(drafts.len(), group.len(), "one leaf is spared at most");
        for (leaf, draft) in group.iter_mut().zip(&drafts) {
            copy_body(draft.bytes(), leaf.page_mut());
            debug_assert!(Node::leaf(leaf.view()).is_sound(), "a merged leaf is sound");
        }
        for leaf in group.iter() {
            adopt_all(mtr, leaf);
        }
        copy_body(above.bytes(), parent.page_mut());
        if let Some(mut gone) = gone {
            if let Some(body) = gone.page_mut().get_mut(PAGE_HEADER..) {
                body.fill(0);
            }
            gone.free();
            self.tally.merged(true, 1);
        }
        Ok(true)
    }
}

/// Returns the lower fence of the last leaf, with which the next group begins.
fn last_lower<P: Pages>(group: &[Write<'_, P>]) -> Option<Vec<u8>> {
    group.last().map(|leaf| Node::leaf(leaf.view()).lower_bytes())
}

/// Returns the number of bytes of a leaf's entries with the leaf's own prefix, slots included.
fn loose<P: Pages>(leaf: &Write<'_, P>) -> usize {
    let node = Node::leaf(leaf.view());
    let prefix = node.prefix_len();
    (0..node.count()).map(|i| node.entry_len_under(i, prefix)).sum()
}

/// Plans the distribution of the entries to `pages` leaves, evenly by bytes under a common prefix.
fn plan<P: Pages>(group: &[Write<'_, P>], pages: usize, prefix: usize) -> Option<Vec<Pieces>> {
    let nodes: Vec<Node<'_>> = group.iter().map(|leaf| Node::leaf(leaf.view())).collect();
    let size = |node: &Node<'_>, i: usize| node.entry_len_under(i, prefix);
    let total: usize =
        nodes.iter().map(|node| (0..node.count()).map(|i| size(node, i)).sum::<usize>()).sum();
    let mut plan: Vec<Pieces> = vec![Vec::new(); pages];
    let (mut page, mut sum) = (0, 0);
    for (which, node) in nodes.iter().enumerate() {
        let mut from = 0;
        for i in 0..node.count() {
            sum += size(node, i);
            if sum * pages >= total * (page + 1) && page + 1 < pages {
                plan[page].push((which, from..i + 1));
                from = i + 1;
                page += 1;
            }
        }
        if from < node.count() {
            plan[page].push((which, from..node.count()));
        }
    }
    Some(plan)
}

/// Plans that the first leaves get as many entries as `room` allows, and the last one the rest.
/// Returns `None` if no entry would move, or none is left for the last leaf.
fn plan_first<P: Pages>(group: &[Write<'_, P>], room: usize, prefix: usize) -> Option<Vec<Pieces>> {
    let mut plan: Vec<Pieces> = vec![Vec::new(); group.len()];
    let (mut page, mut sum, mut moves) = (0, 0, false);
    for (which, leaf) in group.iter().enumerate() {
        let node = Node::leaf(leaf.view());
        let mut from = 0;
        for i in 0..node.count() {
            let size = node.entry_len_under(i, prefix);
            if sum + size > room && page + 1 < group.len() {
                plan[page].push((which, from..i));
                (from, sum, page) = (i, 0, page + 1);
            }
            sum += size;
            moves |= page < which;
            if page > which {
                // A leaf is fuller than `room` allows.
                return None;
            }
        }
        plan[page].push((which, from..node.count()));
    }
    for pieces in &mut plan {
        pieces.retain(|(_, range)| !range.is_empty());
    }
    (moves && page + 1 == group.len()).then_some(plan)
}

/// Returns drafts of the new leaves, and the fences between them.
fn draft_leaves<'o, P: Pages>(
    group: &[Write<'o, P>],
    planned: impl FnOnce(&[Write<'o, P>], usize) -> Option<Vec<Pieces>>,
) -> Option<(Vec<PageBuffer>, Vec<Vec<u8>>)> {
    let first = Node::leaf(group.first()?.view());
    let last = Node::leaf(group.last()?.view());
    let (lower, upper) = (first.lower_bytes(), last.upper_bytes());
    let prefix = upper.as_ref().map_or(0, |upper| common(&lower, upper));
    let plan = planned(group, prefix)?;
    let pages = plan.len();
    let key = |(which, i): (usize, usize)| {
        let mut key = Vec::new();
        Node::leaf(group[which].view()).key_to(i, &mut key);
        key
    };
    let mut fences = Vec::new();
    for pair in plan.windows(2) {
        let (which, range) = pair[0].last()?;
        let before = key((*which, range.end.checked_sub(1)?));
        let (which, range) = pair[1].first()?;
        fences.push(separator(&before, &key((*which, range.start))).to_vec());
    }
    let mut drafts = Vec::new();
    for (i, pieces) in plan.into_iter().enumerate() {
        let mut draft = PageBuffer::new(first.view.len());
        let mut edit = Edit::leaf(draft.bytes_mut());
        let low = if i == 0 { &lower } else { &fences[i - 1] };
        let high = if i + 1 == pages { upper.as_ref() } else { fences.get(i) };
        edit.init(low, high.map(Vec::as_slice));
        for (which, range) in pieces {
            if !edit.push_range(group[which].page(), range) {
                return None;
            }
        }
        edit.finish();
        drafts.push(draft);
    }
    Some((drafts, fences))
}

/// Returns a draft of the parent with new separators, `fences`, between the remaining leaves of the
/// group.
fn draft_parent<P: Pages>(
    parent: &Write<'_, P>,
    index: usize,
    group: &[Write<'_, P>],
    fences: &[Vec<u8>],
) -> Option<PageBuffer> {
    let node = Node::inner(parent.view());
    let behind = index + group.len() - 1;
    let mut draft = PageBuffer::new(node.view.len());
    let mut edit = Edit::inner(draft.bytes_mut());
    edit.init(&node.lower_bytes(), node.upper_bytes().as_deref());
    let mut whole = edit.push_range(parent.page(), 0..index);
    for (leaf, fence) in group.iter().zip(fences) {
        whole &= edit.push(fence, &Payload::Child(leaf.swip()));
    }
    let last_kept = group.get(fences.len())?.swip();
    let mut last_child = last_kept;
    if behind < node.count() {
        let mut key = Vec::new();
        node.key_to(behind, &mut key);
        whole &= edit.push(&key, &Payload::Child(last_kept));
        whole &= edit.push_range(parent.page(), behind + 1..node.count());
        last_child = Swip(node.view.u64(LAST_CHILD));
    }
    edit.finish();
    put_swip(draft.bytes_mut(), LAST_CHILD, last_child);
    whole.then_some(draft)
}
