//! Populates the memory of frames a little ahead of their first use.
//!
//! The first thread that touches memory waits until the system has found and zeroed it. For a huge
//! page that is a tenth of a millisecond, and several where a hypervisor has to find the memory,
//! too. A growing store would spend a good part of its time in these waits. A thread of the pool
//! waits instead, one huge page at a time, and stays ahead by a quarter of the used memory: a small
//! store stays small.
//!
//! # Invariants
//! 1. The frames of a part are first used in ascending order. A thread that takes a frame at or
//!    behind the part's `due` requests more memory; at most one request is open per part.
//! 2. No thread depends on populated memory. If the system cannot populate it, the populating
//!    thread ends, and memory is found when it is touched.

use std::ops::Range;

use millpond_base::FrameId;
use millpond_base::sync::atomic::{AtomicU32, Ordering};

use crate::pool::memory::region::FrameMemory;

/// Bytes per step: a huge page.
const STEP: u64 = 2 << 20;

/// Divisor of the used bytes: the quotient is the distance by which the thread stays ahead.
const SHARE: u64 = 4;

/// Greatest distance, in bytes, by which the thread stays ahead.
const MOST: u64 = 16 << 20;

/// Value of `due` while a request is open.
const ASKED: u32 = u32::MAX;

/// Tracks the populated part of the pool's memory.
pub struct Ahead {
    /// For each part of the free lists, the first frame whose use requests more memory.
    due: Box<[AtomicU32]>,
}

/// Progress of one part, in bytes from the start of the first frame.
struct Part {
    begin: u64,
    end: u64,
    populated: u64,
}

impl Part {
    /// Returns the end of the memory to populate, once the bytes before `used` are in use.
    fn target(&self, used: u64) -> u64 {
        let ahead = ((used - self.begin) / SHARE).min(MOST);
        let target = used + ahead;
        if target >= self.end { self.end } else { target / STEP * STEP }
    }

    /// Returns the least end of used bytes at which to populate further.
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

    /// Returns whether a request is open.
    pub fn is_asked(&self) -> bool {
        self.due.iter().any(|due| due.load(Ordering::Relaxed) == ASKED)
    }

    /// Ends all requests.
    pub fn end(&self) {
        // No frame has this number, and it differs from `ASKED`.
        self.due.iter().for_each(|due| due.store(ASKED - 1, Ordering::Relaxed));
    }
}

/// Progress of the thread that populates memory.
pub struct Populating<'a> {
    memory: &'a FrameMemory,
    ahead: &'a Ahead,
    parts: Vec<Part>,
}

impl<'a> Populating<'a> {
    /// Returns the progress for `memory`, of which the frames in `used`, one range per part, are in
    /// use.
    pub fn new(memory: &'a FrameMemory, ahead: &'a Ahead, used: &[Range<u32>]) -> Populating<'a> {
        let stride = memory.stride() as u64;
        let ends = used.iter().skip(1).map(|next| next.start).chain([memory.frames()]);
        let parts = used.iter().zip(ends).map(|(used, end)| {
            let begin = u64::from(used.start) * stride;
            Part { begin, end: u64::from(end) * stride, populated: begin }
        });
        Populating { memory, ahead, parts: parts.collect() }
    }

    /// Does one step of the requested work in each part; returns `false` once all memory is
    /// populated, or if the system cannot do it.
    pub fn advance(&mut self, used: &[Range<u32>]) -> bool {
        let stride = self.memory.stride() as u64;
        for ((part, used), due) in self.parts.iter_mut().zip(used).zip(&self.ahead.due) {
            let used = u64::from(used.end) * stride;
            // Memory in use is populated by its use.
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
                // The frame whose use reaches that end.
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

    /// Uses the frames of one part after the other; returns, after each, the used and the populated
    /// bytes of its part.
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
