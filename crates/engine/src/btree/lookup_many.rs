//! Looks up several keys at once, so that their cache misses and their reads overlap.
//!
//! A look-up in memory spends most of its time waiting for memory. Each level costs a miss or two,
//! and the next cache line is known only once the last one has arrived. Here a group of keys
//! descends level by level, side by side. The next node of each key is found and its lines are
//! prefetched before any of them is used. The leaf's entry is prefetched in the same way.
//!
//! A key whose path leaves memory, or meets a writer, drops out of its group. The read of the
//! missing page is ordered, and the key is looked up by itself once all groups are done. So the
//! reads of a batch are in flight together. References to the pages that the key had passed are
//! neither counted nor delivered to the policy twice.

use millpond_base::AccessKind;

use crate::btree::lookup::Lookup;
use crate::btree::node::layout::{Node, Value};
use crate::btree::tree::{BTree, mark};
use crate::page::Scratch;
use crate::pool::{MiniTransaction, Pages, PoolError, Read, Try};

/// Number of keys that descend side by side. It is more than the misses that a processor has in
/// flight, and small enough that prefetched lines are still in the first cache when they are used.
const GROUP: usize = 16;

/// Number of keys whose reads are in flight together.
const BATCH: usize = 64;

/// Number of bytes of a leaf to prefetch: its header and the slots of a typical one.
const LEAF_LINES: usize = 384;

/// Number of bytes of an inner node to prefetch: its header and the hints, which show where the
/// slots needed next are.
const INNER_LINES: usize = 128;

/// Number of bytes of an entry to prefetch; the processor itself prefetches the rest.
const ENTRY: usize = 256;

/// A key that dropped out of its group.
#[derive(Clone, Copy)]
struct Left {
    key: usize,
    /// Number of references on its path that the policy was notified of.
    notified: u64,
    /// True if the page that it needs is not in memory, and its read could not be ordered.
    lacks_frame: bool,
}

impl<P: Pages> BTree<P> {
    /// Stores the value of each of `keys` in its place in `values`, `None` for a missing key.
    /// Each value was current at some moment of the call.
    ///
    /// # Errors
    /// The memory behind the tree failed.
    pub fn get_many(
        &self,
        keys: &[&[u8]],
        values: &mut [Option<Vec<u8>>],
    ) -> Result<(), PoolError> {
        debug_assert_eq!(keys.len(), values.len(), "each key has a place for its value");
        for (keys, values) in keys.chunks(BATCH).zip(values.chunks_mut(BATCH)) {
            self.get_batch(keys, values)?;
        }
        Ok(())
    }

    fn get_batch(&self, keys: &[&[u8]], values: &mut [Option<Vec<u8>>]) -> Result<(), PoolError> {
        let alone = |key| Left { key, notified: 0, lacks_frame: false };
        let mut left: Vec<Left> = (0..keys.len()).map(alone).collect();
        if P::OVERLAPS && keys.len() > 1 {
            left = self.descend_in_groups(0, keys, &left, values)?;
            let (lacking, mut others): (Vec<Left>, Vec<Left>) =
                left.into_iter().partition(|left| left.lacks_frame);
            if !lacking.is_empty() {
                // With frames for all of them, their reads are ordered, too. The policy was
                // notified of the pages on their way.
                self.pages.make_ready(lacking.len() as u32)?;
                let again = self.descend_in_groups(u64::MAX, keys, &lacking, values)?;
                let still = lacking.iter().filter(|left| again.iter().any(|a| a.key == left.key));
                others.extend(still.copied());
            }
            left = others;
        }
        for Left { key, notified, .. } in left {
            if let (Some(key), Some(value)) = (keys.get(key), values.get_mut(key)) {
                *value = self.get_alone(key, notified)?;
            }
        }
        Ok(())
    }

    /// Looks up the `keys` that `wanted` names, group by group; returns the ones that dropped out.
    /// The policy was already notified of the first `notified` references of each group.
    fn descend_in_groups(
        &self,
        notified: u64,
        keys: &[&[u8]],
        wanted: &[Left],
        values: &mut [Option<Vec<u8>>],
    ) -> Result<Vec<Left>, PoolError> {
        let mut left = Vec::new();
        for wanted in wanted.chunks(GROUP) {
            let from = left.len();
            self.pages.run_after(notified, |mtr| {
                left.truncate(from);
                self.descend_together(mtr, keys, wanted, values, &mut left)
            })?;
        }
        Ok(left)
    }

    /// Looks up `key`; the policy was already notified of the first `notified` references of its
    /// path.
    fn get_alone(&self, key: &[u8], notified: u64) -> Result<Option<Vec<u8>>, PoolError> {
        let mut scratch = Scratch::default();
        match self.look_after(notified, key, &mut scratch)? {
            Lookup::Missing => Ok(None),
            Lookup::Inline => Ok(Some(scratch.bytes().to_vec())),
            Lookup::Overflow(reference) => match self.read_whole(key, reference)? {
                // The value was replaced in the meantime.
                None => self.get_owned(key),
                value => Ok(value),
            },
        }
    }

    /// Looks up the `keys` that `wanted` names side by side, at most [`GROUP`] of them. Keys that
    /// drop out go to `left`.
    fn descend_together(
        &self,
        mtr: &MiniTransaction<'_, P>,
        keys: &[&[u8]],
        wanted: &[Left],
        values: &mut [Option<Vec<u8>>],
        left: &mut Vec<Left>,
    ) -> Try<()> {
        let (root, height) = self.root_node(mtr, AccessKind::Read)?;
        let descents = wanted.iter().filter_map(|wanted| {
            let key = keys.get(wanted.key)?;
            Some(Descent { key, at: wanted.key, node: None, place: 0, is_out: false })
        });
        let mut group = Group { mtr, root, descents: descents.collect(), left };
        let mut ordered = 0;
        for level in (0..height).rev() {
            ordered += group.approach(level, height - level);
            group.step(level, height - level);
        }
        if ordered > 0 {
            mtr.pages().begin_reads();
        }
        group.approach_entries();
        group.read(height, values);
        Ok(())
    }
}

/// A key on its way down.
struct Descent<'k, 'o, P: Pages> {
    key: &'k [u8],
    /// Index of the key among all keys.
    at: usize,
    /// The node that the look-up has reached; `None` before it has read the root.
    node: Option<Read<'o, P>>,
    /// Offset of the swip that the look-up follows next.
    place: usize,
    is_out: bool,
}

/// Keys that descend side by side.
struct Group<'g, 'k, 'o, P: Pages> {
    mtr: &'o MiniTransaction<'o, P>,
    root: Read<'o, P>,
    descents: Vec<Descent<'k, 'o, P>>,
    left: &'g mut Vec<Left>,
}

/// The state of a key when it drops out.
struct DropOut {
    /// Number of references below the root that it made.
    made: u8,
    /// True if the last of them was to a leaf.
    of_leaf: bool,
    /// Number of references that the policy was notified of, including the root's.
    notified: u8,
    lacks_frame: bool,
}

impl<'k, P: Pages> Descent<'k, '_, P> {
    /// Takes the key out of its group.
    fn drop_out(&mut self, mtr: &MiniTransaction<'_, P>, left: &mut Vec<Left>, how: DropOut) {
        mtr.uncount(u64::from(how.made), u64::from(how.of_leaf));
        (self.is_out, self.node) = (true, None);
        let (notified, lacks_frame) = (u64::from(how.notified), how.lacks_frame);
        left.push(Left { key: self.at, notified, lacks_frame });
    }
}

impl<P: Pages> Group<'_, '_, '_, P> {
    /// Finds the child of each key, a node of `level`, which is `depth` levels below the root.
    /// Prefetches its cache lines or, if it is not in memory, orders its read. Returns the number
    /// of reads ordered.
    fn approach(&mut self, level: u8, depth: u8) -> u32 {
        let lines = if level == 0 { LEAF_LINES } else { INNER_LINES };
        let Group { mtr, root, descents, left } = self;
        let mut ordered = 0;
        for descent in descents.iter_mut().filter(|descent| !descent.is_out) {
            let node = descent.node.as_ref().unwrap_or(root);
            let inner = Node::inner(node.view());
            descent.place = inner.child_at(inner.child_for(descent.key));
            let word = node.swip(descent.place);
            if !word.is_evicted() {
                mtr.pages().approach(word, lines);
                continue;
            }
            let reads = mtr.pages().order_reads(node, &[descent.place]).reads;
            ordered += reads;
            let (made, lacks_frame) = (depth - 1, reads == 0);
            let how = DropOut { made, of_leaf: false, notified: depth, lacks_frame };
            descent.drop_out(mtr, left, how);
        }
        ordered
    }

    /// Moves each key to its child, which is a node of `level`.
    fn step(&mut self, level: u8, depth: u8) {
        let Group { mtr, root, descents, left } = self;
        let (mark, of_leaf) = (mark(AccessKind::Read, level == 0, depth), level == 0);
        for descent in descents.iter_mut().filter(|descent| !descent.is_out) {
            let child = descent.node.as_ref().unwrap_or(root).child(descent.place, mark);
            let how = DropOut { made: depth, of_leaf, notified: depth, lacks_frame: false };
            match child {
                Ok(child) if Node::is_node(child.view(), level) => {
                    if !of_leaf {
                        Node::inner(child.view()).prefetch_slots(descent.key);
                    }
                    descent.node = Some(child);
                }
                // The look-up of the key by itself finds the fault.
                Ok(_) => {
                    let notified = depth.saturating_add(1);
                    descent.drop_out(mtr, left, DropOut { notified, ..how });
                }
                Err(_) => descent.drop_out(mtr, left, how),
            }
        }
    }

    /// Prefetches the cache lines of the entries.
    fn approach_entries(&self) {
        for descent in self.descents.iter().filter(|descent| !descent.is_out) {
            let leaf = descent.node.as_ref().unwrap_or(&self.root);
            Node::leaf(leaf.view()).prefetch_entry(descent.key, ENTRY);
        }
    }

    /// Reads the values; `height` is the root's level.
    fn read(&mut self, height: u8, values: &mut [Option<Vec<u8>>]) {
        let Group { mtr, root, descents, left } = self;
        for descent in descents.iter_mut().filter(|descent| !descent.is_out) {
            let found = read_value(descent.node.as_ref().unwrap_or(root), descent.key);
            if let (Some(found), Some(value)) = (found, values.get_mut(descent.at)) {
                *value = found;
                continue;
            }
            let (of_leaf, notified) = (height > 0, height.saturating_add(1));
            let how = DropOut { made: height, of_leaf, notified, lacks_frame: false };
            descent.drop_out(mtr, left, how);
        }
    }
}

/// Returns the entry of `key` in `leaf`, or `None` if it cannot be known here: the leaf has
/// changed, or the value is in overflow pages.
#[inline(always)]
fn read_value<P: Pages>(leaf: &Read<'_, P>, key: &[u8]) -> Option<Option<Vec<u8>>> {
    let node = Node::leaf(leaf.view());
    let (at, is_there) = node.lower_bound(key);
    let mut value = None;
    if is_there {
        let Value::Inline(span) = node.value(at) else { return None };
        let mut bytes = Vec::with_capacity(span.len);
        if !node.view.copy_to(span.at, span.len, &mut bytes) {
            return None;
        }
        value = Some(bytes);
    }
    leaf.validate().ok().map(|()| value)
}
