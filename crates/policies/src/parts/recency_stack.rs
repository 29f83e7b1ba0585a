//! The recency stack of the LIRS family: hot frames, cold frames and ghosts in one order of use.
//!
//! A node is a frame, or a ghost that replaced the frame of its page. So no pointers between them
//! are needed, and a hit finds its node without a lookup. The cold nodes, ghosts included, also
//! form a chain in the same order, so the oldest one is found at once.
//!
//! Invariants: (1) the cold chain holds exactly the cold nodes and ghosts of the stack, in the
//! stack's order; (2) `hot` counts the others; (3) exactly the ghosts are found by their pages.

use millpond_base::{FrameId, PageId};

use super::list::{Links, List};
use super::map::PageSlots;

/// The state of a frame in a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heat {
    /// Not in the stack.
    Out,
    /// In the stack, hot.
    Hot,
    /// In the stack, cold.
    Cold,
}

/// Frames and ghosts in the order of their last use, the oldest at the bottom.
pub struct RecencyStack {
    frames: u32,
    links: Links,
    list: List,
    cold_links: Links,
    cold: List,
    heat: Vec<Heat>,
    hot: u32,
    slots: PageSlots,
    pages: Vec<PageId>,
    free: Vec<u32>,
}

impl RecencyStack {
    /// Creates an empty stack for frames below `frames` and about `ghosts` ghosts.
    pub fn new(frames: u32, pages_dense: Option<u64>, ghosts: u64) -> RecencyStack {
        RecencyStack {
            frames,
            links: Links::new(frames),
            list: List::new(),
            cold_links: Links::new(frames),
            cold: List::new(),
            heat: vec![Heat::Out; frames as usize],
            hot: 0,
            slots: PageSlots::new(pages_dense, ghosts.min(1 << 24) as usize),
            pages: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Returns the number of nodes.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.list.len()
    }

    /// Returns `true` if there is no node.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the number of hot frames.
    #[inline(always)]
    pub fn hot(&self) -> u32 {
        self.hot
    }

    /// Returns the number of ghosts.
    #[inline(always)]
    pub fn ghosts(&self) -> u32 {
        (self.pages.len() - self.free.len()) as u32
    }

    /// Returns the state of `frame`.
    #[inline(always)]
    pub fn heat(&self, frame: FrameId) -> Heat {
        self.heat[frame.index()]
    }

    /// Returns the bottom of the stack, if it is a hot frame. After [`RecencyStack::prune`] it is
    /// one, or the stack is empty.
    #[inline(always)]
    pub fn bottom(&self) -> Option<FrameId> {
        let node = self.list.front()?;
        (node < self.frames && self.heat[node as usize] == Heat::Hot).then_some(FrameId(node))
    }

    /// Puts `frame`, which is not in the stack, on top, hot.
    #[inline(always)]
    pub fn push_hot(&mut self, frame: FrameId) {
        self.heat[frame.index()] = Heat::Hot;
        self.hot += 1;
        self.list.push_back(&mut self.links, frame.0);
    }

    /// Puts `frame`, which is not in the stack, on top, cold.
    #[inline(always)]
    pub fn push_cold(&mut self, frame: FrameId) {
        self.heat[frame.index()] = Heat::Cold;
        self.list.push_back(&mut self.links, frame.0);
        self.cold.push_back(&mut self.cold_links, frame.0);
    }

    /// Moves the hot `frame` to the top; then prunes, if it was the bottom.
    #[inline(always)]
    pub fn touch_hot(&mut self, frame: FrameId) {
        let was_bottom = self.list.front() == Some(frame.0);
        self.list.move_to_back(&mut self.links, frame.0);
        if was_bottom {
            self.prune();
        }
    }

    /// Removes `frame`, hot or cold, from the stack, and may leave a cold bottom.
    #[inline(always)]
    pub fn remove(&mut self, frame: FrameId) {
        match self.heat(frame) {
            Heat::Hot => self.hot -= 1,
            _ => self.cold.remove(&mut self.cold_links, frame.0),
        }
        self.heat[frame.index()] = Heat::Out;
        self.list.remove(&mut self.links, frame.0);
    }

    /// Removes cold nodes, and forgets ghosts, from the bottom until a hot node is there.
    #[inline(always)]
    pub fn prune(&mut self) {
        while let Some(node) = self.list.front()
            && (node >= self.frames || self.heat[node as usize] == Heat::Cold)
        {
            self.drop_cold(node);
        }
    }

    /// Removes the oldest cold node; returns `true` if there was one.
    #[inline(always)]
    pub fn drop_oldest_cold(&mut self) -> bool {
        let Some(node) = self.cold.front() else { return false };
        self.drop_cold(node);
        true
    }

    fn drop_cold(&mut self, node: u32) {
        self.cold.remove(&mut self.cold_links, node);
        self.list.remove(&mut self.links, node);
        if node < self.frames {
            self.heat[node as usize] = Heat::Out;
        } else {
            let slot = node - self.frames;
            self.slots.leave(self.pages[slot as usize]);
            self.free.push(slot);
        }
    }

    /// Replaces the cold `frame`, which lost `page`, by a ghost.
    #[inline]
    pub fn leave_ghost(&mut self, frame: FrameId, page: PageId) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.pages[slot as usize] = page;
                slot
            }
            None => {
                self.pages.push(page);
                self.pages.len() as u32 - 1
            }
        };
        let node = self.frames + slot;
        self.links.grow_to(node);
        self.cold_links.grow_to(node);
        self.list.replace(&mut self.links, frame.0, node);
        self.cold.replace(&mut self.cold_links, frame.0, node);
        self.heat[frame.index()] = Heat::Out;
        self.slots.enter(page, slot);
    }

    /// Forgets the ghost of `page`; returns `true` if there was one.
    #[inline(always)]
    pub fn take_ghost(&mut self, page: PageId) -> bool {
        let Some(slot) = self.slots.get(page) else { return false };
        self.drop_cold(self.frames + slot);
        true
    }

    /// Prefetches the ghost's entry of `page`, which will be looked up soon.
    #[inline(always)]
    pub fn prefetch(&self, page: PageId) {
        self.slots.prefetch(page);
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.links.bytes()
            + self.cold_links.bytes()
            + self.heat.capacity()
            + self.slots.bytes()
            + self.pages.capacity() * size_of::<PageId>()
            + self.free.capacity() * 4
    }

    /// Verifies the invariants of the module.
    ///
    /// # Errors
    /// The broken invariant.
    pub fn check(&self) -> Result<(), String> {
        self.list.check(&self.links)?;
        self.cold.check(&self.cold_links)?;
        let is_cold = |node: &u32| *node >= self.frames || self.heat[*node as usize] == Heat::Cold;
        if !self.list.iter(&self.links).filter(is_cold).eq(self.cold.iter(&self.cold_links)) {
            return Err("the cold chain is not the stack's cold part".to_string());
        }
        if self.hot + self.cold.len() != self.list.len() {
            return Err(format!("{} hot and {} cold nodes", self.hot, self.cold.len()));
        }
        let nodes = self.list.iter(&self.links).filter(|node| *node >= self.frames);
        let ghosts: Vec<u32> = nodes.map(|node| node - self.frames).collect();
        let is_found = |slot: &&u32| self.slots.get(self.pages[**slot as usize]) == Some(**slot);
        let found = ghosts.iter().filter(is_found).count();
        if ghosts.len() != found || found != self.ghosts() as usize {
            return Err(format!("{} ghosts of {}, {found} are found", ghosts.len(), self.ghosts()));
        }
        Ok(())
    }
}
