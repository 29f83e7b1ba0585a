//! `lfuda`: LFU with dynamic ageing.
//!
//! **Idea** — A cache age grows to the key of each evicted page, and is added to the counts of used
//! pages: pages used now overtake pages used much long ago.
//!
//! **Source** — gilbert 1.2.14; Arlitt, Cherkasova, Dilley, Friedrich, Jin (2000).
//!
//! **State** — A key and a count per frame; a heap of frames by key, then by recency; the age.
//!
//! **Invariants** — (1) Exactly the resident frames are in the heap. (2) No offered frame has a
//! greater key than one not yet offered. (3) The age never falls.
//!
//! **Cost** — Hit: write a key, O(1), central. Admit and evict: O(log frames). 48 bytes per frame,
//! no ghosts.
//!
//! **Deviations** — gilbert's text gives a loaded page the age as its count and adds 1 per
//! reference afterwards: `age_on=insert`; the original adds the *present* age to the count on every
//! reference. libCacheSim adds its age to the *key* on every hit, so that hits before the first
//! eviction count nothing: `age_on=add`, which gives its hits in 23 of 30 golden cells and within
//! 0.3 % in the others. The rest is its search for the least key after a hit, which goes upward
//! only: a page whose new key is lesser is skipped and stays forever, which is no definition to
//! follow. gilbert searches all frames for each victim; the heap gives the same, with ties by
//! recency. Refusals as in `lfu`.
//!
//! **Defaults** — `age_on=hit`, the original.

use millpond_base::FrameId;

use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::LateHeap;

choice! {
    /// Events on which the age is added.
    pub enum AgeOn {
        /// Every reference: key = references + age.
        Hit = "hit",
        /// Only the load: key = age, and 1 more per hit.
        Insert = "insert",
        /// Every hit, to the old key, as in libCacheSim.
        Add = "add",
    }
}

config! {
    /// Parameters of [`Lfuda`].
    pub struct LfudaConfig {
        /// Events on which the cache's age is added to a page's key.
        age_on: AgeOn = AgeOn::Hit;
    }
}

/// A key that no page reaches by references alone: for pages that can never be evicted.
const FOREVER: u64 = 1 << 62;

/// LFU with dynamic ageing.
pub struct Lfuda {
    heap: LateHeap<(u64, u64)>,
    references: Vec<u32>,
    age_on: AgeOn,
    age: u64,
    clock: u64,
}

impl PolicySpec for Lfuda {
    const INFO: Info = Info {
        id: "lfuda",
        summary: "LFU with dynamic ageing: counts grow from the last victim's",
        family: Family::Frequency,
        class: Class::Two,
        age: Age::First,
        references: References::All,
        tier: Tier::First,
        live: true,
        frame_bytes: 48.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.14",
    };
    type Hook = CentralHook;
    type Config = LfudaConfig;

    fn new(config: &LfudaConfig, shape: &Shape) -> Lfuda {
        Lfuda {
            heap: LateHeap::new(shape.frames),
            references: vec![0; shape.frames as usize],
            age_on: config.age_on,
            age: 0,
            clock: 0,
        }
    }

    fn state_bytes(&self) -> usize {
        self.heap.bytes() + self.references.capacity() * 4
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.heap.check(resident)
    }
}

impl Policy for Lfuda {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, _access: &Access) {
        self.clock += 1;
        let references = &mut self.references[frame.index()];
        *references = references.saturating_add(1);
        let old = self.heap.key(frame.0).0;
        let key = match self.age_on {
            AgeOn::Hit => u64::from(*references) + self.age,
            AgeOn::Insert => old.saturating_add(1),
            AgeOn::Add => old.saturating_add(self.age),
        };
        self.heap.raise(frame.0, (key.max(old), self.clock));
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        _access: &Access,
        _recall: GhostHit,
    ) {
        self.clock += 1;
        self.references[frame.index()] = 1;
        let key = match self.age_on {
            AgeOn::Insert => self.age.max(1),
            AgeOn::Hit | AgeOn::Add => self.age + 1,
        };
        self.heap.add(frame.0, (key, self.clock));
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let age = &mut self.age;
        let taken = |_, (key, _): (u64, u64)| {
            // A child evicted instead may have any key; the age never takes the key of a page that
            // cannot be evicted.
            if key < FOREVER {
                *age = (*age).max(key);
            }
        };
        self.heap.evict(request, host, taken, |why, (key, recency)| match why.is_temporary() {
            true => (key.saturating_add(1), recency),
            false => (key.max(FOREVER), recency),
        })
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        self.heap.remove(frame.0);
    }
}
