//! A heap of frames whose keys may rise without updating the heap.
//!
//! Policies whose hits only raise a key need not touch a heap on a hit. The key is written beside
//! the heap, and a frame that reaches the top with an old key then sinks to its place. At least
//! one hit pays for each such repair, and the least frame is exact.
//!
//! Invariant: (1) the heap's key of a frame is no greater than its present key.

use crate::contract::{EvictRequest, Host, RefusalReason};
use millpond_base::{FrameId, PageId};

use super::heap::Heap;

/// A min-heap over frames with keys that rise outside the heap.
pub struct LateHeap<K> {
    heap: Heap<K>,
    keys: Vec<K>,
    refused: Vec<(u32, RefusalReason)>,
}

impl<K: Ord + Copy + Default + std::fmt::Debug> LateHeap<K> {
    /// Creates an empty heap for frames below `frames`.
    pub fn new(frames: u32) -> LateHeap<K> {
        LateHeap {
            heap: Heap::new(frames),
            keys: vec![K::default(); frames as usize],
            refused: Vec::new(),
        }
    }

    /// Adds `frame`, which is not in.
    #[inline]
    pub fn add(&mut self, frame: u32, key: K) {
        self.keys[frame as usize] = key;
        self.heap.set(frame, key);
    }

    /// Returns the present key of `frame`.
    #[inline(always)]
    pub fn key(&self, frame: u32) -> K {
        self.keys[frame as usize]
    }

    /// Raises the key of `frame`; it must not be less than it was.
    #[inline(always)]
    pub fn raise(&mut self, frame: u32, key: K) {
        self.keys[frame as usize] = key;
    }

    /// Returns the frame with the least key.
    #[inline]
    pub fn least(&mut self) -> Option<(K, u32)> {
        loop {
            let (old, frame) = self.heap.least()?;
            let key = self.keys[frame as usize];
            if key == old {
                return Some((key, frame));
            }
            self.heap.set(frame, key);
        }
    }

    /// Removes `frame`, if it is in, and returns its key.
    #[inline]
    pub fn remove(&mut self, frame: u32) -> Option<K> {
        self.heap.remove(frame).map(|_| self.keys[frame as usize])
    }

    /// Evicts by least key until `request` is met, and calls `taken` with each page and its key.
    /// A refused frame is not offered twice. It then gets the key that `refused` computes from
    /// its old one, which must not be less.
    pub fn evict<H: Host + ?Sized>(
        &mut self,
        request: &EvictRequest,
        host: &mut H,
        mut taken: impl FnMut(PageId, K),
        mut refused: impl FnMut(RefusalReason, K) -> K,
    ) -> u32 {
        let (mut done, mut steps) = (0, 0);
        while done < request.frames && steps < request.steps_max {
            let Some((_, offered)) = self.least() else { break };
            steps += 1;
            match host.take(FrameId(offered)) {
                Ok((FrameId(frame), page)) => {
                    // A child that was refused before is not in the heap now.
                    if self.remove(frame).is_none() {
                        self.refused.retain(|&(f, _)| f != frame);
                    }
                    taken(page, self.keys[frame as usize]);
                    done += 1;
                }
                Err(why) => {
                    self.heap.remove(offered);
                    self.refused.push((offered, why));
                }
            }
        }
        while let Some((frame, why)) = self.refused.pop() {
            self.add(frame, refused(why, self.keys[frame as usize]));
        }
        done
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.heap.bytes()
            + self.keys.capacity() * size_of::<K>()
            + self.refused.capacity() * size_of::<(u32, RefusalReason)>()
    }

    /// Verifies the invariant, and that exactly `resident` are in.
    ///
    /// # Errors
    /// A description of the fault.
    pub fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        self.heap.check()?;
        if self.heap.len() != resident.len() {
            return Err(format!(
                "{} frames in the heap, {} resident",
                self.heap.len(),
                resident.len()
            ));
        }
        for frame in resident {
            let (known, key) = (self.heap.key(frame.0), self.keys[frame.index()]);
            if known.is_none_or(|known| known > key) {
                return Err(format!("frame {} is at {known:?}, above its key {key:?}", frame.0));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_the_least_though_keys_rise_behind_the_heap() {
        let mut rng = fastrand::Rng::with_seed(17);
        let mut late = LateHeap::new(25);
        let mut model = [None::<(u32, u32)>; 25];
        for _ in 0..20_000 {
            let frame = rng.u32(0..25);
            match model[frame as usize] {
                None => {
                    let key = (rng.u32(0..50), frame);
                    late.add(frame, key);
                    model[frame as usize] = Some(key);
                }
                Some(key) if rng.u8(0..4) == 0 => {
                    assert_eq!(late.remove(frame), Some(key));
                    model[frame as usize] = None;
                }
                Some((key, _)) => {
                    let key = (key + rng.u32(0..20), frame);
                    late.raise(frame, key);
                    model[frame as usize] = Some(key);
                }
            }
            assert_eq!(late.least().map(|(key, _)| key), model.iter().flatten().min().copied());
            let resident: Vec<FrameId> =
                (0..25).filter(|&f| model[f as usize].is_some()).map(FrameId).collect();
            late.check(&resident).unwrap();
        }
    }
}
