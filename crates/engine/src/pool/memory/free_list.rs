//! Free frames: a list per NUMA node, and the frames that wait for their epoch.
//!
//! Fresh frames are handed out in ascending order (rule 7 of the policy contract). Returned frames
//! are handed out last in, first out, since their headers are in the caches. Each thread keeps the
//! frames of a few pages that it deleted itself (leanstore IV-I). Its next new page gets one of
//! them, which disturbs neither the lists nor replacement.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use millpond_base::FrameId;
use millpond_base::sync::Mutex;

use crate::pool::memory::numa::Nodes;
use crate::pool::sync::locked::locked;
use crate::stats::thread_slot::SLOTS;

/// Number of frames of deleted pages that a thread keeps.
const DELETED_MAX: usize = 8;

#[derive(Default)]
struct Partition {
    /// Frames never handed out: `fresh..end`.
    fresh: u32,
    end: u32,
    back: Vec<FrameId>,
}

/// A frame and the epoch in which it was given up.
type Waiting = (u64, FrameId);

/// The free frames of a pool.
pub struct FreeLists {
    /// Number of frames of the pool; ids are below it.
    frames: u32,
    nodes: Nodes,
    /// One partition per NUMA node. A frame that may be reused at once is in the partition of its
    /// own node.
    partitions: Box<[Mutex<Partition>]>,
    /// Frames that wait for their epoch, in the order in which they were given up.
    waiting: Mutex<VecDeque<Waiting>>,
    /// Frames of pages that the thread of each slot deleted, at most [`DELETED_MAX`].
    deleted: Box<[Mutex<Vec<Waiting>>]>,
    /// Number of free frames, never below the number in the lists: frames are counted before they
    /// are listed.
    free: AtomicU32,
}

/// A frame to use, and whether it was never used before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// The frame.
    pub frame: FrameId,
    /// `true` if its header was never written.
    pub fresh: bool,
}

impl FreeLists {
    /// Returns lists with all of `frames` frames free, in as many equal parts as there are `nodes`.
    pub fn new(frames: u32, nodes: Nodes) -> FreeLists {
        let parts = nodes.count().clamp(1, frames.max(1));
        let part = |node: u32| {
            let bound = |n: u32| (u64::from(frames) * u64::from(n) / u64::from(parts)) as u32;
            Mutex::new(Partition { fresh: bound(node), end: bound(node + 1), back: Vec::new() })
        };
        FreeLists {
            frames,
            nodes,
            partitions: (0..parts).map(part).collect(),
            waiting: Mutex::default(),
            deleted: (0..SLOTS).map(|_| Mutex::default()).collect(),
            free: AtomicU32::new(frames),
        }
    }

    /// Returns the number of free frames, those that wait for their epoch included; a moment old.
    #[inline]
    pub fn len(&self) -> u32 {
        self.free.load(Ordering::Relaxed)
    }

    /// Returns whether no frame is free.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the frames that were ever handed out, as one range of ids per part.
    pub fn ever_used(&self) -> Vec<Range<u32>> {
        let mut begin = 0;
        let used = self.partitions.iter().map(|part| {
            let part = locked(part);
            std::mem::replace(&mut begin, part.end)..part.fresh
        });
        used.collect()
    }

    /// Returns the number of parts of the frames, one per NUMA node.
    pub fn parts(&self) -> usize {
        self.partitions.len()
    }

    /// Returns the NUMA node of frame `id`, which is also the index of its part.
    pub fn node_of(&self, id: FrameId) -> usize {
        let nodes = self.partitions.len() as u64;
        let node = (u64::from(id.0) * nodes) / u64::from(self.frames.max(1));
        // Bounds round down: the frame may belong to the next part.
        let bound = |n: u64| u64::from(self.frames) * n / nodes;
        let node = if u64::from(id.0) >= bound(node + 1) { node + 1 } else { node };
        (node as usize).min(self.partitions.len() - 1)
    }

    /// Takes a frame for the thread with slot `slot`: of a page that it deleted, else of its NUMA
    /// node, else any. Calls `oldest` only if a frame that was given up in an epoch is to be used.
    pub fn take(&self, slot: usize, oldest: impl Fn() -> u64) -> Option<Taken> {
        if self.is_empty() {
            return None;
        }
        let node = self.nodes.of_thread(slot);
        let taken = self
            .own_deleted(slot, &oldest)
            .or_else(|| self.listed(node))
            .or_else(|| self.waited(&oldest))
            .or_else(|| (0..SLOTS).find_map(|other| self.own_deleted(other, &oldest)));
        if let Some(taken) = taken {
            debug_assert!(taken.frame.0 < self.frames, "{:?} is no frame", taken.frame);
            let before = self.free.fetch_sub(1, Ordering::Relaxed);
            debug_assert_ne!(before, 0, "the count of free frames is never too low");
        }
        taken
    }

    fn own_deleted(&self, slot: usize, oldest: &impl Fn() -> u64) -> Option<Taken> {
        let mut mine = locked(&self.deleted[slot % SLOTS]);
        let (epoch, frame) = *mine.last()?;
        if epoch != 0 && epoch >= oldest() {
            return None;
        }
        mine.pop();
        Some(Taken { frame, fresh: false })
    }

    fn listed(&self, node: usize) -> Option<Taken> {
        let nodes = self.partitions.len();
        (0..nodes).find_map(|i| {
            let mut part = locked(&self.partitions[(node + i) % nodes]);
            if let Some(frame) = part.back.pop() {
                return Some(Taken { frame, fresh: false });
            }
            debug_assert!(part.fresh <= part.end, "fresh frames are of this part");
            if part.fresh == part.end {
                return None;
            }
            part.fresh += 1;
            Some(Taken { frame: FrameId(part.fresh - 1), fresh: true })
        })
    }

    fn waited(&self, oldest: &impl Fn() -> u64) -> Option<Taken> {
        let mut waiting = locked(&self.waiting);
        let &(epoch, frame) = waiting.front()?;
        if epoch >= oldest() {
            return None;
        }
        waiting.pop_front();
        Some(Taken { frame, fresh: false })
    }

    /// Puts `frames` on the lists. `epoch` is the one in which they were given up, or 0 if they may
    /// be reused at once.
    pub fn give(&self, frames: &[FrameId], epoch: u64) {
        let before = self.free.fetch_add(frames.len() as u32, Ordering::Relaxed);
        debug_assert!(before as usize + frames.len() <= self.frames as usize, "given back twice");
        debug_assert!(frames.iter().all(|frame| frame.0 < self.frames), "frames of this pool");
        if epoch != 0 {
            locked(&self.waiting).extend(frames.iter().map(|f| (epoch, *f)));
        } else if let [all_in_one] = &*self.partitions {
            locked(all_in_one).back.extend_from_slice(frames);
        } else {
            for frame in frames {
                locked(&self.partitions[self.node_of(*frame)]).back.push(*frame);
            }
        }
    }

    /// Keeps the frame of a page that the thread with slot `slot` deleted, for that thread; a
    /// surplus goes to the lists.
    pub fn give_deleted(&self, frame: FrameId, slot: usize, epoch: u64) {
        {
            let mut mine = locked(&self.deleted[slot % SLOTS]);
            if mine.len() < DELETED_MAX {
                let before = self.free.fetch_add(1, Ordering::Relaxed);
                debug_assert!(before < self.frames, "{frame:?} is given back twice");
                mine.push((epoch, frame));
                return;
            }
        }
        self.give(&[frame], epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a frame for a thread of node `node`: pretended nodes are dealt by slot.
    fn take(lists: &FreeLists, node: usize) -> Option<u32> {
        lists.take(node, || u64::MAX).map(|t| t.frame.0)
    }

    fn lists(frames: u32, nodes: u32) -> FreeLists {
        FreeLists::new(frames, Nodes::find(Some(nodes)))
    }

    #[test]
    fn fresh_frames_come_in_ascending_order_and_returned_ones_first() {
        let lists = lists(4, 1);
        assert_eq!((take(&lists, 0), take(&lists, 0)), (Some(0), Some(1)));
        lists.give(&[FrameId(0)], 0);
        assert_eq!(take(&lists, 0), Some(0));
        assert_eq!((take(&lists, 0), take(&lists, 0), take(&lists, 0)), (Some(2), Some(3), None));
    }

    #[test]
    fn a_node_gets_its_own_frames_and_then_those_of_others() {
        let lists = lists(10, 3);
        assert_eq!(lists.ever_used(), [0..0, 3..3, 6..6]);
        assert_eq!(take(&lists, 1), Some(3));
        assert_eq!(lists.ever_used(), [0..0, 3..4, 6..6]);
        let mut rest: Vec<u32> = std::iter::from_fn(|| take(&lists, 1)).collect();
        assert_eq!(rest.len(), 9);
        assert_eq!(&rest[..2], &[4, 5]);
        assert_eq!(lists.ever_used(), [0..3, 3..6, 6..10]);
        for frame in 0..10 {
            lists.give(&[FrameId(frame)], 0);
        }
        assert!((0..3).contains(&take(&lists, 0).unwrap()));
        assert!((6..10).contains(&take(&lists, 2).unwrap()));
        rest.clear();
    }

    #[test]
    fn what_was_given_up_in_an_epoch_waits_for_it() {
        let lists = lists(1, 1);
        assert_eq!(take(&lists, 0), Some(0));
        lists.give(&[FrameId(0)], 5);
        assert_eq!(lists.len(), 1);
        assert!(lists.take(0, || 5).is_none());
        assert!(lists.take(0, || 6).is_some());
        lists.give_deleted(FrameId(0), 7, 8);
        assert!(lists.take(7, || 8).is_none());
        assert!(lists.take(2, || 9).is_some(), "another thread's deleted page is better than none");
        assert_eq!(lists.len(), 0);
    }
}
