//! Hints of a first tier with a request: the reason of the read or write, and the request that it
//! predicts.

use millpond_base::{Mark, Reason};

/// Type of a request to a second tier, in the order in which LRU-IO searches for clean victims:
/// from "a write will follow" to "a read will follow" (li 3.3.1, 5.5.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hint {
    /// The page moves up into the first tier: it will not be read here soon.
    Read,
    /// The page was written to bound recovery: it stays hot above.
    Recov,
    /// The page was written to make room: it will probably leave the first tier.
    Replace,
    /// The page was written because its frame was needed immediately: it leaves the first tier
    /// now.
    Synch,
}

impl Hint {
    /// Returns the hint of a request. A write without a reason counts as [`Hint::Replace`], since
    /// an untagged client writes back mostly to make room.
    #[inline(always)]
    pub fn of(mark: Mark) -> Hint {
        if !mark.is_write() {
            return Hint::Read;
        }
        match mark.reason() {
            Reason::Recov => Hint::Recov,
            Reason::Synch => Hint::Synch,
            Reason::None | Reason::Replace | Reason::Dsync => Hint::Replace,
        }
    }

    /// Returns `true` if the page will probably be read here next.
    #[inline(always)]
    pub fn is_positive(self) -> bool {
        self >= Hint::Replace
    }
}

/// The cold start of a cache, which ends when the cache is full. Hint-aware policies take every
/// page until then, and only well-recommended ones afterwards (li 3.3.2).
///
/// The cold start never returns: a frame that is freed later waits for a wanted page.
#[derive(Clone, Debug)]
pub struct ColdStart {
    resident: u32,
    frames: u32,
    is_over: bool,
}

impl ColdStart {
    /// Creates the cold start of an empty cache of `frames` frames.
    pub fn new(frames: u32) -> ColdStart {
        ColdStart { resident: 0, frames, is_over: false }
    }

    /// Returns `true` if the cache was full, or had to evict, before now.
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Counts an admitted page.
    #[inline(always)]
    pub fn came(&mut self) {
        self.resident += 1;
        self.is_over |= self.resident >= self.frames;
    }

    /// Counts an evicted page.
    #[inline(always)]
    pub fn went(&mut self) {
        self.resident = self.resident.saturating_sub(1);
    }

    /// Ends the cold start, since the host wants frames.
    #[inline(always)]
    pub fn evicting(&mut self) {
        self.is_over = true;
    }

    /// Returns the number of pages in the cache.
    pub fn resident(&self) -> u32 {
        self.resident
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_become_hints_and_untagged_writes_make_room() {
        let write = |reason| Hint::of(Mark::WRITE.with_reason(reason));
        assert_eq!(Hint::of(Mark::READ), Hint::Read);
        assert_eq!(write(Reason::Recov), Hint::Recov);
        assert_eq!(write(Reason::None), Hint::Replace);
        assert_eq!(write(Reason::Synch), Hint::Synch);
        assert!(Hint::Synch.is_positive() && Hint::Replace.is_positive());
        assert!(!Hint::Read.is_positive() && !Hint::Recov.is_positive());
    }

    #[test]
    fn a_cold_start_ends_once() {
        let mut start = ColdStart::new(2);
        start.came();
        assert!(!start.is_over());
        start.came();
        assert!(start.is_over());
        start.went();
        assert!(start.is_over() && start.resident() == 1);
        let mut ahead = ColdStart::new(9);
        ahead.evicting();
        assert!(ahead.is_over());
    }
}
