//! `lfu`: least frequently used.
//!
//! **Idea** — Often used pages will be used again: the page with the fewest references is evicted.
//!
//! **Source** — gilbert 1.2.13, algorithm 1.15.
//!
//! **State** — A reference count per frame: with ties by recency, one list of frames per count;
//! otherwise a heap. With `count=perfect`, also the counts of evicted pages.
//!
//! **Invariants** — (1) Exactly the resident frames are ordered. (2) No offered frame has a greater
//! count than one not yet offered.
//!
//! **Cost** — Hit: O(1), central. Admit and evict: O(1) by lists, O(log frames) by heap. 12 bytes
//! per frame and a little per distinct count; 44 by heap. A ghost is 4 bytes, with `count=perfect`
//! only.
//!
//! **Deviations** — gilbert searches all frames for each victim; the lists hold the same order.
//! A refused frame is offered once per eviction: temporary counts as a reference, permanent as 2³¹
//! of them. Agrees with libCacheSim, Caffeine and the reference model hit for hit.
//!
//! **Defaults** — `tie=recency`, the least recent first; `frame` is gilbert's scan, which meets the
//! lowest frame first. `count=cached`: a page that was evicted restarts at zero.

use millpond_base::FrameId;

use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::{Buckets, LateHeap, Oldest, PageMap};

choice! {
    /// Order of eviction among the pages with the least count.
    pub enum LfuTie {
        /// The least recently used page first.
        Recency = "recency",
        /// The page in the lowest frame first.
        Frame = "frame",
        /// The most recently used page first.
        Mru = "mru",
    }
}

choice! {
    /// Span over which a page's references are counted.
    pub enum LfuCount {
        /// References since the page was loaded.
        Cached = "cached",
        /// All references since the beginning.
        Perfect = "perfect",
    }
}

config! {
    /// Parameters of [`Lfu`].
    pub struct LfuConfig {
        /// Order of eviction among the pages with the least count.
        tie: LfuTie = LfuTie::Recency;
        /// Fate of a page's count at its eviction: it is lost (cached) or kept (perfect).
        count: LfuCount = LfuCount::Cached;
    }
}

/// Count first, then the tie breaker.
type Key = (u32, u64);

enum Order {
    Lists(Buckets, Oldest),
    Heap(LateHeap<Key>),
}

/// Least frequently used.
pub struct Lfu {
    order: Order,
    tie: LfuTie,
    clock: u64,
    /// Counts of evicted pages, with `count=perfect`.
    past: Option<PageMap>,
}

impl Lfu {
    #[inline(always)]
    fn key(&mut self, frame: FrameId, count: u32) -> Key {
        self.clock += 1;
        match self.tie {
            LfuTie::Recency => (count, self.clock),
            LfuTie::Mru => (count, u64::MAX - self.clock),
            LfuTie::Frame => (count, u64::from(frame.0)),
        }
    }
}

impl PolicySpec for Lfu {
    const INFO: Info = Info {
        id: "lfu",
        summary: "least frequently used",
        family: Family::Frequency,
        class: Class::Two,
        age: Age::Ignored,
        references: References::All,
        tier: Tier::First,
        live: true,
        frame_bytes: 12.0,
        ghost_bytes: 4.0,
        source: "gilbert 1.2.13",
    };
    type Hook = CentralHook;
    type Config = LfuConfig;

    fn new(config: &LfuConfig, shape: &Shape) -> Lfu {
        let lists = |oldest| Order::Lists(Buckets::new(shape.frames), oldest);
        // With lists, a page's new place must be near its old one, or at the low end.
        let order = match (config.count, config.tie) {
            (LfuCount::Cached, LfuTie::Recency) => lists(Oldest::First),
            (LfuCount::Cached, LfuTie::Mru) => lists(Oldest::Last),
            _ => Order::Heap(LateHeap::new(shape.frames)),
        };
        let past = match config.count {
            LfuCount::Cached => None,
            LfuCount::Perfect => Some(PageMap::new(shape.pages_dense, shape.frames as usize)),
        };
        Lfu { order, tie: config.tie, clock: 0, past }
    }

    fn ghosts_max(config: &LfuConfig, _frames: u32) -> u64 {
        match config.count {
            LfuCount::Cached => 0,
            LfuCount::Perfect => u64::MAX,
        }
    }

    fn state_bytes(&self) -> usize {
        let order = match &self.order {
            Order::Lists(lists, _) => lists.bytes(),
            Order::Heap(heap) => heap.bytes(),
        };
        order + self.past.as_ref().map_or(0, PageMap::bytes)
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        match &self.order {
            Order::Lists(lists, _) => lists.check(resident),
            Order::Heap(heap) => heap.check(resident),
        }
    }
}

impl Policy for Lfu {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId, _access: &Access) {
        if let Order::Lists(lists, _) = &mut self.order {
            lists.raise(frame.0, u32::MAX);
            return;
        }
        let count = match &self.order {
            Order::Heap(heap) => heap.key(frame.0).0.saturating_add(1),
            Order::Lists(..) => return,
        };
        let key = self.key(frame, count);
        if let Order::Heap(heap) = &mut self.order {
            // With `tie=mru`, a full count would let the key fall.
            heap.raise(frame.0, key.max(heap.key(frame.0)));
        }
    }

    #[inline(always)]
    fn miss(&mut self, access: &Access) -> GhostHit {
        match &mut self.past {
            Some(past) => GhostHit(past.remove(access.page).unwrap_or(0)),
            None => GhostHit::NONE,
        }
    }

    #[inline(always)]
    fn admit(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        frame: FrameId,
        _access: &Access,
        ghost_hit: GhostHit,
    ) {
        let key = self.key(frame, ghost_hit.0.saturating_add(1));
        match &mut self.order {
            Order::Lists(lists, _) => lists.add(frame.0, key.0),
            Order::Heap(heap) => heap.add(frame.0, key),
        }
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let past = &mut self.past;
        match &mut self.order {
            Order::Lists(lists, oldest) => lists.evict(*oldest, request, host, |_, _| {}),
            Order::Heap(heap) => heap.evict(
                request,
                host,
                |page, (count, _)| {
                    if let Some(past) = past {
                        past.remove(page);
                        past.insert(page, count.min(u32::MAX - 1));
                    }
                },
                |why, (count, tie)| match why.is_temporary() {
                    true => (count.saturating_add(1), tie),
                    false => (count.max(1 << 31), tie),
                },
            ),
        }
    }

    fn forget(&mut self, _frames: Frames<'_, CentralHook>, frame: FrameId) {
        match &mut self.order {
            Order::Lists(lists, _) => drop(lists.remove(frame.0)),
            Order::Heap(heap) => drop(heap.remove(frame.0)),
        }
    }
}
