//! `lru-partitioned`: LRU whose list is cut into parts.
//!
//! **Idea** — One list means one latch for every hit of every thread. Cut the frames into parts,
//! each with its own list: hits contend less often, and victims are the oldest of a part instead
//! of the oldest of all.
//!
//! **Source** — watt 2.1, on Oracle.
//!
//! **State** — One list for each part, least recent at the front; the part that gives the next
//! victim.
//!
//! **Invariants** — (1) The lists together hold exactly the resident frames. (2) A frame is in the
//! list of its number modulo the number of parts.
//!
//! **Cost** — Hit: relink, central. Admit: link. Evict: unlink, O(parts) if parts are empty, else
//! O(1). 8 bytes per frame, no ghosts.
//!
//! **Deviations** — Only the choice of victims is reproduced; a policy host with one latch does
//! not gain from the parts. Parts give victims in turn, since watt does not describe Oracle's
//! choice among them. An empty part is skipped. With one part it is `lru`.
//!
//! **Defaults** — `parts=8`, as in the catalog; no more parts than frames.

use millpond_base::FrameId;

use crate::contract::{
    Access, CentralHook, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::list::check_holds;
use crate::parts::{Links, List, offer_in_turn};

config! {
    /// Parameters of [`LruPartitioned`].
    pub struct LruPartitionedConfig {
        /// Number of lists.
        parts: u32 = 8, in 1..=65_536;
    }
}

/// LRU in parts.
pub struct LruPartitioned {
    links: Links,
    lists: Vec<List>,
    turn: u32,
}

impl LruPartitioned {
    #[inline(always)]
    fn part_of(&self, frame: u32) -> usize {
        // A new policy has at least one list.
        (frame % self.lists.len() as u32) as usize
    }

    /// Returns the least recent frame of the next part that has one.
    #[inline(always)]
    fn victim(&mut self) -> Option<u32> {
        let parts = self.lists.len() as u32;
        for _ in 0..parts {
            let front = self.lists[self.turn as usize].front();
            self.turn = if self.turn + 1 == parts { 0 } else { self.turn + 1 };
            if front.is_some() {
                return front;
            }
        }
        None
    }
}

impl PolicySpec for LruPartitioned {
    const INFO: Info = Info {
        id: "lru-partitioned",
        summary: "LRU cut into parts, which give victims in turn",
        family: Family::Recency,
        class: Class::Two,
        age: Age::Last,
        references: References::Last,
        tier: Tier::First,
        live: true,
        frame_bytes: 8.0,
        ghost_bytes: 0.0,
        source: "watt 2.1",
    };
    type Hook = CentralHook;
    type Config = LruPartitionedConfig;

    fn new(config: &LruPartitionedConfig, shape: &Shape) -> LruPartitioned {
        let parts = config.parts.clamp(1, shape.frames.max(1));
        let lists = vec![List::new(); parts as usize];
        LruPartitioned { links: Links::new(shape.frames), lists, turn: 0 }
    }

    fn state_bytes(&self) -> usize {
        self.links.bytes() + self.lists.capacity() * size_of::<List>()
    }

    fn check(&self, _frames: Frames<'_, CentralHook>, resident: &[FrameId]) -> Result<(), String> {
        check_holds(&self.lists.iter().collect::<Vec<_>>(), &self.links, resident)?;
        for (part, list) in self.lists.iter().enumerate() {
            if let Some(stray) = list.iter(&self.links).find(|&f| self.part_of(f) != part) {
                return Err(format!("invariant 2: frame {stray} is in part {part}"));
            }
        }
        Ok(())
    }
}

impl Policy for LruPartitioned {
    #[inline(always)]
    fn hit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, _: &Access) {
        let part = self.part_of(frame.0);
        self.lists[part].move_to_back(&mut self.links, frame.0);
    }

    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, CentralHook>, frame: FrameId, _: &Access, _: GhostHit) {
        let part = self.part_of(frame.0);
        self.lists[part].push_back(&mut self.links, frame.0);
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        frames: Frames<'_, CentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        offer_in_turn(
            request,
            host,
            self,
            |lru| lru.victim().map(FrameId),
            |lru, frame, _page| lru.forget(frames, frame),
            |lru, frame, _why| {
                let part = lru.part_of(frame.0);
                lru.lists[part].move_to_back(&mut lru.links, frame.0);
            },
        )
    }

    #[inline(always)]
    fn forget(&mut self, _: Frames<'_, CentralHook>, frame: FrameId) {
        let part = self.part_of(frame.0);
        self.lists[part].remove(&mut self.links, frame.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NoConfig;
    use crate::policy::Lru;
    use crate::testing::{TestPool, skewed};

    #[test]
    fn one_part_is_lru() {
        let mut lru = TestPool::<Lru>::new(&NoConfig {}, 12);
        let mut one = TestPool::<LruPartitioned>::new(&LruPartitionedConfig { parts: 1 }, 12);
        for page in skewed(40, 2_000, 5) {
            assert_eq!(lru.reference(page), one.reference(page));
        }
    }

    #[test]
    fn parts_give_victims_in_turn_and_only_their_own_frames() {
        let mut pool = TestPool::<LruPartitioned>::new(&LruPartitionedConfig { parts: 2 }, 4);
        pool.run([0, 1, 2, 3]);
        // The oldest of all are 1 and 3, both of the odd part: the even one has its turn first.
        pool.run([0, 2, 10, 11]);
        assert_eq!(pool.pages(), [2, 3, 10, 11]);
    }

    #[test]
    fn refusals_drops_and_tiny_pools_leave_it_whole() {
        for spec in ["lru-partitioned", "lru-partitioned(parts=1000)"] {
            crate::testing::survives_everything::<LruPartitioned>(spec);
        }
    }
}
