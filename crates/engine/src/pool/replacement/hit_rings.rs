//! Hits that wait to be delivered: a ring for each thread, so that a central policy's mutex is
//! locked once per batch and not once per hit (the batched host of the policy contract).
//!
//! A thread puts its hits into its own ring. Once the ring holds [`BATCH`] of them, the thread
//! tries to enter the policy host, and delivers them all if that is possible at once. Otherwise it
//! continues, and hits while the ring is full are lost: a hit never waits for the policy. The order
//! among threads is therefore by the batch. A policy receives a hit up to [`ROOM`] hits of that
//! thread late, and some hits not at all.
//!
//! Invariants:
//! 1. A ring is written by the owner of its slot only ([`thread_slot`](crate::stats::thread_slot),
//!    invariant 1), hence plain loads and stores. They are atomic, so that a violation would lead
//!    to wrong hits, but no undefined behaviour. Threads without a slot of their own have no ring,
//!    and deliver at once.
//! 2. A hit is delivered only if its frame still holds its page, hot, inside the policy host.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use millpond_base::{FrameId, PageId};
use millpond_policies::contract::Access;

use crate::pool::recording::recorder::Reference;
use crate::stats::thread_slot::OWNED;

/// Number of hits at which a thread tries to deliver them.
pub const BATCH: u32 = 32;
/// Number of hits that a ring has room for.
pub const ROOM: u32 = 64;

/// A page reference, with its frame and its time.
#[derive(Default)]
struct Cell {
    reference: AtomicU64,
    frame_and_now: AtomicU64,
}

/// One thread's hits, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Ring {
    /// Number of hits in `cells`, from the first on; at most [`ROOM`].
    noted: AtomicU32,
    cells: OnceLock<Box<[Cell]>>,
}

/// The rings of all threads.
pub struct HitRings(Box<[Ring]>);

impl Default for HitRings {
    fn default() -> HitRings {
        HitRings((0..OWNED).map(|_| Ring::default()).collect())
    }
}

/// Outcome for a hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noted {
    /// The hit waits.
    Kept,
    /// The hit waits, and so do enough hits that the thread should try to deliver them.
    Due,
    /// There was no room for it.
    Lost,
    /// The thread has no ring.
    NoRing,
}

impl HitRings {
    /// Puts a hit of the thread with slot `slot` into its ring.
    #[inline]
    pub fn note(&self, slot: usize, frame: FrameId, access: &Access) -> Noted {
        let Some(ring) = self.0.get(slot) else { return Noted::NoRing };
        let cells = ring.cells.get_or_init(|| (0..ROOM).map(|_| Cell::default()).collect());
        let noted = ring.noted.load(Ordering::Relaxed);
        let Some(cell) = cells.get(noted as usize) else { return Noted::Lost };
        let reference = Reference::new(access.page, access.mark);
        cell.reference.store(u64::from_le_bytes(reference.to_bytes()), Ordering::Relaxed);
        let frame_and_now = u64::from(frame.0) << 32 | u64::from(access.now);
        cell.frame_and_now.store(frame_and_now, Ordering::Relaxed);
        ring.noted.store(noted + 1, Ordering::Relaxed);
        if noted + 1 >= BATCH { Noted::Due } else { Noted::Kept }
    }

    /// Removes the hits of the thread with slot `slot`, and calls `deliver` with each, in their
    /// order.
    pub fn drain(&self, slot: usize, mut deliver: impl FnMut(FrameId, &Access)) {
        let Some(ring) = self.0.get(slot) else { return };
        let Some(cells) = ring.cells.get() else { return };
        let noted = ring.noted.load(Ordering::Relaxed);
        debug_assert!(noted <= ROOM, "a ring holds {ROOM} hits");
        for cell in cells.iter().take(noted as usize) {
            let bits = cell.reference.load(Ordering::Relaxed).to_le_bytes();
            let reference = Reference::from_bytes(bits);
            let frame_and_now = cell.frame_and_now.load(Ordering::Relaxed);
            let (page, mark): (PageId, _) = (reference.page(), reference.mark());
            let access = Access { page, mark, now: frame_and_now as u32, next: 0, next_read: 0 };
            deliver(FrameId((frame_and_now >> 32) as u32), &access);
        }
        ring.noted.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::{Mark, PageKind};

    use super::*;

    fn access(page: u64, now: u32) -> Access {
        let mark = Mark::WRITE.with_kind(PageKind::BTREE_LEAF, 3);
        Access { page: PageId(page), mark, now, next: 0, next_read: 0 }
    }

    #[test]
    fn hits_come_out_as_they_went_in_each_thread_its_own() {
        let rings = HitRings::default();
        for i in 0..5 {
            assert_eq!(rings.note(0, FrameId(i), &access(u64::from(i) << 30, 9 * i)), Noted::Kept);
        }
        assert_eq!(rings.note(1, FrameId(77), &access(7, 7)), Noted::Kept);
        let mut delivered = Vec::new();
        rings.drain(0, |frame, access| {
            delivered.push((frame.0, access.page.0, access.now, access.mark))
        });
        let mark = access(0, 0).mark;
        let expected: Vec<_> = (0..5).map(|i| (i, u64::from(i) << 30, 9 * i, mark)).collect();
        assert_eq!(delivered, expected);
        rings.drain(0, |_, _| panic!("delivered twice"));
        rings.drain(1, |frame, _| assert_eq!(frame, FrameId(77)));
    }

    #[test]
    fn a_ring_is_due_before_it_is_full_and_then_loses() {
        let rings = HitRings::default();
        let noted: Vec<Noted> =
            (0..ROOM + 2).map(|i| rings.note(3, FrameId(i), &access(1, i))).collect();
        let count = |what| noted.iter().filter(|n| **n == what).count() as u32;
        assert_eq!((count(Noted::Kept), count(Noted::Due)), (BATCH - 1, ROOM - BATCH + 1));
        assert_eq!(count(Noted::Lost), 2);
        assert_eq!(rings.note(OWNED, FrameId(0), &access(1, 1)), Noted::NoRing);
    }
}
