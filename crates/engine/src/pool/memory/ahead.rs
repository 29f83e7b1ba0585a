//! Memory of frames that were never used, populated a little ahead of their first use.
//!
//! A thread that touches memory first waits until the system has found and zeroed it. For a huge
//! page that is a tenth of a millisecond, and several where a hypervisor has to find it, too: a
//! store that grows would spend a good part of its time there. A thread of the pool takes these
//! waits upon itself, by steps of a huge page, and stays ahead by a quarter of what is used: a
//! small store stays small.
//!
//! # Invariants
//! 1. Frames of a part are used first in ascending order: a thread that takes one at or behind the
//!    part's `due` asks, and one ask is open per part at most.
//! 2. Nothing needs a frame's memory to be populated: where the system cannot do it, the thread
//!    ends, and memory comes when it is touched.

use std::ops::Range;

use millpond_base::FrameId;
use millpond_base::sync::atomic::{AtomicU32, Ordering};

use crate::pool::memory::region::FrameMemory;

/// Bytes of a step.
const STEP: u64 = 2 << 20;

/// The thread stays ahead by the used bytes divided by this …
const SHARE: u64 = 4;

/// … and by this number of bytes at most.
const MOST: u64 = 16 << 20;

/// In place of a due frame: the thread was asked, and has not answered yet.
const ASKED: u32 = u32::MAX;

/// Tracks the populated part of the pool's memory.
pub struct Ahead {
    /// Per part of the free lists, the first frame whose use is a reason to populate more.
    due: Box<[AtomicU32]>,
}

/// Progress of one part, in bytes behind the first frame.
struct Part {
    begin: u64,
    end: u64,
    populated: u64,
}

impl Part {
    /// Returns the end up to which to populate, once frames before `used` were used.
    fn target(&self, used: u64) -> u64 {
        let ahead = ((used - self.begin) / SHARE).min(MOST);
        let target = used + ahead;
        if target >= self.end { self.end } else { target / STEP * STEP }
    }

    /// Returns the least number of used bytes at which to populate further.
    fn due(&self) -> u64 {
        let next = ((self.populated / STEP + 1) * STEP).min(self.end);
        let by_share = self.begin + (next - self.begin) * SHARE / (SHARE + 1);
        by_share.max(next.saturating_sub(MOST))
    }
}

impl Ahead {
    /// Returns a tracker of memory in `parts` parts, with nothing populated.
    pub fn new(parts: usize) -> Ahead {
        Ahead { due: (0..parts).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Records that a frame of part `part` was taken for the first time; returns whether to signal
    /// the thread.
    #[inline]
    pub fn taken(&self, part: usize, frame: FrameId) -> bool {
        let Some(due) = self.due.get(part) else { return false };
        let known = due.load(Ordering::Relaxed);
        frame.0 >= known
            && due.compare_exchange(known, ASKED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Returns whether the thread was asked.
    pub fn is_asked(&self) -> bool {
        self.due.iter().any(|due| due.load(Ordering::Relaxed) == ASKED)
    }

    /// Ends all asking.
    pub fn end(&self) {
        // No frame has this number, and it is not the mark either.
        self.due.iter().for_each(|due| due.store(ASKED - 1, Ordering::Relaxed));
    }
}

/// The thread's side.
pub struct Populating<'a> {
    memory: &'a FrameMemory,
    ahead: &'a Ahead,
    parts: Vec<Part>,
}

impl<'a> Populating<'a> {
    /// Begins with memory of which `used`, a range of frames per part, was used so far.
    pub fn new(memory: &'a FrameMemory, ahead: &'a Ahead, used: &[Range<u32>]) -> Populating<'a> {
        let stride = memory.stride() as u64;
        let ends = used.iter().skip(1).map(|next| next.start).chain([memory.frames()]);
        let parts = used.iter().zip(ends).map(|(used, end)| {
            let begin = u64::from(used.start) * stride;
            Part { begin, end: u64::from(end) * stride, populated: begin }
        });
        Populating { memory, ahead, parts: parts.collect() }
    }

    /// Does one step of the requested work in each part; `false` once all is populated, or the
    /// system cannot.
    pub fn advance(&mut self, used: &[Range<u32>]) -> bool {
        let stride = self.memory.stride() as u64;
        for ((part, used), due) in self.parts.iter_mut().zip(used).zip(&self.ahead.due) {
            let used = u64::from(used.end) * stride;
            // The used part is populated by its use.
            part.populated = part.populated.max((used / STEP * STEP).min(part.end));
            let target = part.target(used);
            if part.populated < target {
                let to = ((part.populated / STEP + 1) * STEP).min(target);
                if let Err(error) = self.memory.populate(part.populated as usize..to as usize) {
                    tracing::debug!(%error, "memory is not populated ahead of its use");
                    return false;
                }
                part.populated = to;
            }
            let next = match part.populated {
                populated if populated >= part.end => ASKED - 1,
                // The frame with which so much is used.
                _ => (part.due().div_ceil(stride) as u32).saturating_sub(1),
            };
            due.store(next, Ordering::Relaxed);
        }
        self.parts.iter().any(|part| part.populated < part.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::frame::FRAME_HEADER_BYTES;

    const FRAMES: u32 = 20_000;
    const FRAME: u64 = 4096 + FRAME_HEADER_BYTES as u64;

    /// Returns how far the memory is populated, as the asks of one part after the other would have
    /// it.
    fn fill(parts: &[Range<u32>]) -> Vec<(u64, u64)> {
        let memory = FrameMemory::map(FRAMES, 4096).unwrap();
        let ahead = Ahead::new(parts.len());
        let mut used: Vec<_> = parts.iter().map(|part| part.start..part.start).collect();
        let mut populating = Populating::new(&memory, &ahead, &used);
        let mut seen = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            for frame in part.clone() {
                used[i].end = frame + 1;
                if ahead.taken(i, FrameId(frame)) {
                    assert!(ahead.is_asked());
                    assert!(!ahead.taken(i, FrameId(frame)), "one ask is open");
                    populating.advance(&used);
                    assert!(!ahead.is_asked());
                }
                let part = &populating.parts[i];
                seen.push((
                    u64::from(frame + 1 - parts[i].start) * FRAME,
                    part.populated - part.begin,
                ));
            }
            let part = &populating.parts[i];
            assert_eq!(part.populated, part.end, "all of it, once all is used");
        }
        assert!(!populating.advance(&used), "it is over");
        seen
    }

    #[test]
    fn memory_is_populated_ahead_of_its_use_by_a_share_of_it() {
        let seen = fill(std::slice::from_ref(&(0..FRAMES)));
        for (used, populated) in seen {
            assert!(populated <= used + used / SHARE + STEP && populated <= used + MOST);
            // At most one step behind the target.
            let wanted = used + (used / SHARE).min(MOST);
            assert!(populated + STEP > wanted.min(u64::from(FRAMES) * FRAME), "{used} {populated}");
        }
    }

    #[test]
    fn each_part_is_populated_for_itself() {
        assert_eq!(fill(&[0..7_000, 7_000..13_000, 13_000..FRAMES]).len(), FRAMES as usize);
    }

    #[test]
    fn nobody_asks_once_it_is_over() {
        let ahead = Ahead::new(2);
        ahead.end();
        assert!(!ahead.taken(1, FrameId(u32::MAX - 2)) && !ahead.is_asked());
    }
}
