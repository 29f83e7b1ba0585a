//! `stated-lru-k`: the last K references of all pages in one list (gilbert 1.2.6.1).
//!
//! Reference `j` of frame `i` is node `i·K + j mod K`. A hit moves the frame's oldest reference to
//! the end (algorithm 1.7). The frame at the front is the candidate (1.9), and counts as referenced
//! if it cannot be evicted (1.11). A new page has K − 1 references that are infinitely old, after
//! all other infinitely old ones, and one at the end (1.12).

use millpond_base::FrameId;
use millpond_policies::config;
use millpond_policies::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use millpond_policies::info::{Age, Class, Family, Info, References, Tier};
use millpond_policies::parts::list::{Links, List};

config! {
    /// Parameters of [`LruK`].
    pub struct LruKConfig {
        /// Number of references kept per page.
        k: u8 = 2, in 1..=8;
    }
}

/// Evicts by the least recent K-th last reference, with a list of all references.
pub struct LruK {
    k: u32,
    links: Links,
    list: List,
    /// References of each frame since its page was loaded.
    counts: Vec<u32>,
    is_in: Vec<bool>,
    /// The least recent reference that is not infinitely old.
    first_finite: Option<u32>,
}

impl LruK {
    /// Returns the oldest reference of a frame, which is reused next.
    fn oldest(&self, frame: u32) -> u32 {
        frame * self.k + self.counts[frame as usize] % self.k
    }

    fn unlink(&mut self, reference: u32) {
        if self.first_finite == Some(reference) {
            self.first_finite = self.links.next(reference);
        }
        self.list.remove(&mut self.links, reference);
    }

    fn enqueue(&mut self, reference: u32) {
        self.list.push_back(&mut self.links, reference);
        self.first_finite = self.first_finite.or(Some(reference));
    }

    fn refer(&mut self, frame: u32) {
        let reference = self.oldest(frame);
        self.unlink(reference);
        self.enqueue(reference);
        self.counts[frame as usize] = self.counts[frame as usize].wrapping_add(1) % self.k;
    }

    fn insert(&mut self, frame: u32) {
        self.counts[frame as usize] = 0;
        for reference in frame * self.k..(frame + 1) * self.k - 1 {
            match self.first_finite {
                Some(finite) => self.list.insert_before(&mut self.links, finite, reference),
                None => self.list.push_back(&mut self.links, reference),
            }
        }
        self.enqueue((frame + 1) * self.k - 1);
        self.is_in[frame as usize] = true;
    }

    fn remove(&mut self, frame: u32) {
        if std::mem::take(&mut self.is_in[frame as usize]) {
            (frame * self.k..(frame + 1) * self.k).for_each(|reference| self.unlink(reference));
        }
    }
}

impl PolicySpec for LruK {
    const INFO: Info = Info {
        id: "stated-lru-k",
        summary: "the K-th last reference decides, in one list, as gilbert states it",
        family: Family::Mixed,
        class: Class::Two,
        age: Age::Some,
        references: References::Some,
        tier: Tier::First,
        live: true,
        frame_bytes: 69.0,
        ghost_bytes: 0.0,
        source: "gilbert 1.2.6.1",
    };
    type Hook = CentralHook;
    type Config = LruKConfig;

    fn new(config: &LruKConfig, shape: &Shape) -> LruK {
        let (k, frames) = (u32::from(config.k), shape.frames as usize);
        LruK {
            k,
            links: Links::new(shape.frames * k),
            list: List::new(),
            counts: vec![0; frames],
            is_in: vec![false; frames],
            first_finite: None,
        }
    }

    fn state_bytes(&self) -> usize {
        self.links.bytes() + self.counts.capacity() * 4 + self.is_in.capacity()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        self.list.check(&self.links)?;
        let all = resident.len() as u64 * u64::from(self.k);
        let is_known = resident.iter().all(|frame| self.is_in[frame.0 as usize]);
        match u64::from(self.list.len()) == all && is_known {
            true => Ok(()),
            false => Err(format!("{} references of {} pages", self.list.len(), resident.len())),
        }
    }
}

impl Policy for LruK {
    fn hit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, _: &Access) {
        self.refer(frame.0);
    }

    fn admit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, _: &Access, _: GhostHit) {
        self.insert(frame.0);
    }

    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        let (mut taken, mut steps) = (0, 0);
        while taken < request.frames && steps < request.steps_max {
            steps += 1;
            let Some(front) = self.list.front() else { break };
            let candidate = front / self.k;
            match host.take(FrameId(candidate)) {
                Ok((gone, _)) => {
                    self.remove(gone.0);
                    taken += 1;
                }
                Err(_) => self.refer(candidate),
            }
        }
        taken
    }

    fn forget(&mut self, _: Frames<'_, CentralHook>, frame: FrameId) {
        self.remove(frame.0);
    }
}
