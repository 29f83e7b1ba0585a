//! Frames in the order of eviction, and the loop that offers them to the host.

use millpond_base::{FrameId, PageId};

use super::heap::Heap;
use crate::contract::{EvictRequest, Host};

/// A heap of victims. The frame with the least key is evicted first.
///
/// A refused frame is set aside until the end of the eviction and keeps its key. Each eviction
/// therefore offers a frame at most once, and finds an evictable one anywhere in the order.
pub struct Ranking<K> {
    heap: Heap<K>,
    aside: Vec<(K, u32)>,
}

impl<K: Ord + Copy> Ranking<K> {
    /// Creates an empty ranking for `frames` frames.
    pub fn new(frames: u32) -> Ranking<K> {
        Ranking { heap: Heap::new(frames), aside: Vec::new() }
    }

    /// Returns the number of ranked frames.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns `true` if no frame is ranked.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Ranks `frame`, or re-ranks it.
    #[inline(always)]
    pub fn set(&mut self, frame: u32, key: K) {
        self.heap.set(frame, key);
    }

    /// Returns the key of `frame`, if it is ranked.
    #[inline(always)]
    pub fn key(&self, frame: u32) -> Option<K> {
        self.heap.key(frame)
    }

    /// Removes `frame`, if it is in.
    #[inline(always)]
    pub fn remove(&mut self, frame: u32) -> Option<K> {
        self.heap.remove(frame)
    }

    /// Returns the first victim and its key, if there is any.
    #[inline(always)]
    pub fn first(&self) -> Option<(K, u32)> {
        self.heap.least()
    }

    /// Offers frames in order until the request is met; returns the numbers of taken and examined
    /// frames. `gone` receives each taken frame with its page; a frame taken instead of its parent
    /// may not be ranked.
    #[inline]
    pub fn evict<H: Host + ?Sized>(
        &mut self,
        request: &EvictRequest,
        host: &mut H,
        mut gone: impl FnMut(FrameId, PageId),
    ) -> (u32, u32) {
        let (mut taken, mut steps) = (0, 0);
        while taken < request.frames && steps < request.steps_max {
            let Some((key, victim)) = self.heap.least() else { break };
            steps += 1;
            match host.take(FrameId(victim)) {
                Ok((frame, page)) => {
                    if self.heap.remove(frame.0).is_none() {
                        self.aside.retain(|(_, f)| *f != frame.0);
                    }
                    taken += 1;
                    gone(frame, page);
                }
                Err(_why) => {
                    self.heap.remove(victim);
                    self.aside.push((key, victim));
                }
            }
        }
        for (key, frame) in self.aside.drain(..) {
            self.heap.set(frame, key);
        }
        (taken, steps)
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.heap.bytes() + self.aside.capacity() * size_of::<(K, u32)>()
    }

    /// Verifies the order of the heap.
    ///
    /// # Errors
    /// A description of the disorder.
    pub fn check(&self) -> Result<(), String> {
        self.heap.check()
    }

    /// Verifies that exactly the `resident` frames are ranked.
    ///
    /// # Errors
    /// A description of the disorder.
    pub fn check_holds(&self, resident: &[FrameId]) -> Result<(), String> {
        self.check()?;
        let missing = resident.iter().any(|f| self.key(f.0).is_none());
        let (ranked, there) = (self.len(), resident.len());
        if missing || ranked != there {
            return Err(format!("invariant 1: {ranked} frames are ranked, {there} are resident"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{OfferOutcome, RefusalReason};

    /// Takes odd frames only; frame 4 names frame 7 instead of itself.
    struct Odd(Vec<u32>);
    impl Host for Odd {
        fn offer(&mut self, frame: FrameId) -> OfferOutcome {
            self.0.push(frame.0);
            match frame.0 {
                4 => OfferOutcome::EvictChildFirst(FrameId(7)),
                f if f % 2 == 1 => OfferOutcome::Taken(PageId(100 + u64::from(f))),
                _ => OfferOutcome::Refused(RefusalReason::Pinned),
            }
        }
    }

    #[test]
    fn refused_frames_are_passed_and_stay_ranked() {
        let mut ranking = Ranking::new(8);
        for frame in [0, 2, 4, 5, 7] {
            ranking.set(frame, frame);
        }
        let mut request = EvictRequest { frames: 1, steps_max: 9, now: 0, incoming: None };
        let (mut host, mut gone) = (Odd(Vec::new()), Vec::new());
        assert_eq!(ranking.evict(&request, &mut host, |f, p| gone.push((f.0, p.0))), (1, 3));
        assert_eq!((gone.pop(), &host.0[..]), (Some((7, 107)), &[0, 2, 4, 7][..]));
        // Frame 7 has left the ranking, and this host takes it all the same.
        request.frames = 2;
        assert_eq!(ranking.evict(&request, &mut Odd(Vec::new()), |_, _| ()), (2, 4));
        assert_eq!(ranking.len(), 4);
        ranking.check().unwrap();
    }
}
