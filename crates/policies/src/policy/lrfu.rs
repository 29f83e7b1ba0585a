//! `lrfu`: least recently/frequently used, one scale from LRU to LFU.
//!
//! **Idea** — Every past reference has a weight that falls with its age: (1/2)^(λx) for x
//! references ago. The page with the least sum is evicted. λ = 0 is LFU, λ = 1 is LRU.
//!
//! **Source** — luan 4.7, after Lee et al., IEEE Transactions on Computers (2001).
//!
//! **State** — A key and the time of the last reference per frame; a heap of frames by key.
//!
//! **Invariants** — (1) Exactly the resident frames are in the heap. (2) Frames are offered
//! in the order of their sums. (3) A frame's key never falls.
//!
//! **Cost** — Hit: two transcendental functions and a write, O(1), central. Admit and evict:
//! O(log frames). 44 bytes per frame, no ghosts.
//!
//! **Deviations** — All sums shrink at one rate, so their order needs no time: the key,
//! log₂(sum) + λ·(time of the last reference), is constant between references, and the heap is
//! exact where the original recomputes. Ties go by recency. A correlated reference replaces the
//! one before it, as in the original: the sum becomes 1 + F(δ)·(sum − 1). Refusals count as
//! references, permanent ones as very many. WATT's LRFU is no oracle: it evicts the greatest
//! sum.
//!
//! **Defaults** — `lambda=0.005`, `correlated=25%`: luan's. The original tunes λ per size.

use millpond_base::FrameId;

use crate::config::Part;
use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::LateHeap;

config! {
    /// Parameters of [`Lrfu`].
    pub struct LrfuConfig {
        /// λ: rate at which references lose their weight; 0 is LFU, 1 is LRU.
        lambda: f64 = 0.005, in 0.0..=1.0, per reference;
        /// Distance up to which references to the same page count as one: a number, or a part of
        /// the frames.
        correlated: Part = Part::Times(0.25);
    }
}

/// Bits of a key that is not negative, which ascend like the keys, and the last reference.
type Key = (u64, u64);

/// Amount that a permanent refusal adds to a key, which equals 2 to that power of references.
const FOREVER: f64 = 1e12;

/// Rule of the decay and growth of sums.
#[derive(Clone, Copy)]
struct Decay {
    lambda: f64,
    correlated: u64,
    /// References so far.
    time: u64,
}

/// Least recently/frequently used.
pub struct Lrfu {
    heap: LateHeap<Key>,
    decay: Decay,
}

impl Decay {
    /// Returns the key after one more reference now.
    #[inline(always)]
    fn referred(&self, key: Key) -> Key {
        let (old, last) = key;
        let (lambda, now) = (self.lambda, self.time as f64);
        // log2 of the remaining sum. Sums may be huge (λ = 0, refusals), but logarithms are not.
        let left = f64::from_bits(old) - lambda * now;
        let gap = self.time - last;
        let sum = if left > 60.0 {
            left
        } else if gap <= self.correlated {
            (1.0 + left.exp2() - (-lambda * gap as f64).exp2()).max(1.0).log2()
        } else {
            (1.0 + left.exp2()).log2()
        };
        // Rounding must not let a key fall.
        ((sum + lambda * now).to_bits().max(old), self.time)
    }
}

impl PolicySpec for Lrfu {
    const INFO: Info = Info {
        id: "lrfu",
        summary: "every reference counts, less and less: from LRU to LFU by lambda",
        family: Family::Mixed,
        class: Class::Two,
        age: Age::Some,
        references: References::All,
        tier: Tier::First,
        live: true,
        frame_bytes: 44.0,
        ghost_bytes: 0.0,
        source: "luan 4.7; Lee et al. 2001",
    };
    type Hook = CentralHook;
    type Config = LrfuConfig;

    fn new(config: &LrfuConfig, shape: &Shape) -> Lrfu {
        Lrfu {
            heap: LateHeap::new(shape.frames),
            decay: Decay {
                lambda: config.lambda,
                correlated: config.correlated.of(shape.frames),
                time: 0,
            },
        }
    }

    fn state_bytes(&self) -> usize {
        self.heap.bytes()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.heap.check(resident)
    }
}

impl Policy for Lrfu {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, _access: &Access) {
        self.decay.time += 1;
        let key = self.decay.referred(self.heap.key(frame.0));
        self.heap.raise(frame.0, key);
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        _access: &Access,
        _recall: GhostHit,
    ) {
        self.decay.time += 1;
        let key = self.decay.lambda * self.decay.time as f64;
        self.heap.add(frame.0, (key.to_bits(), self.decay.time));
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let decay = self.decay;
        let refused = |why: crate::contract::RefusalReason, key: Key| {
            if why.is_temporary() {
                return decay.referred(key);
            }
            let high = f64::from_bits(key.0) + FOREVER;
            (high.min(f64::MAX).to_bits(), key.1)
        };
        self.heap.evict(request, host, |_, _| {}, refused)
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.heap.remove(frame.0);
    }
}
