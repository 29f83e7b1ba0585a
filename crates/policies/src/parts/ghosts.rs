//! Ghosts: evicted pages with a memory of them, and lists of ghosts.
//!
//! A slab of nodes, found by page. A policy keeps any number of [`List`]s over one `Ghosts`; a
//! ghost's memory records its list.

use millpond_base::PageId;

use super::list::{Links, List};
use super::map::PageSlots;

#[derive(Clone, Copy)]
struct Ghost<K> {
    page: PageId,
    memory: K,
}

/// A slab of ghosts, each with a memory `K`.
pub struct Ghosts<K> {
    slots: PageSlots,
    nodes: Vec<Ghost<K>>,
    free: Vec<u32>,
    /// Links of every ghost, for the policy's lists.
    pub links: Links,
}

impl<K: Copy> Ghosts<K> {
    /// Creates a slab with room for about `entries` ghosts, which grows if there are more.
    pub fn new(pages_dense: Option<u64>, entries: u64) -> Ghosts<K> {
        let entries = entries.min(1 << 24) as usize;
        Ghosts {
            slots: PageSlots::new(pages_dense, entries),
            nodes: Vec::with_capacity(entries),
            free: Vec::new(),
            links: Links::new(entries as u32),
        }
    }

    /// Returns the number of ghosts.
    pub fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Returns `true` if there is no ghost.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the ghost of `page`.
    #[inline(always)]
    pub fn find(&self, page: PageId) -> Option<u32> {
        self.slots.get(page)
    }

    /// Prefetches the entry of `page`, which will be looked up soon.
    #[inline(always)]
    pub fn prefetch(&self, page: PageId) {
        self.slots.prefetch(page);
    }

    /// Returns the memory of ghost `node`.
    #[inline(always)]
    pub fn memory(&self, node: u32) -> &K {
        &self.nodes[node as usize].memory
    }

    /// Returns the memory of ghost `node`, to be changed.
    #[inline(always)]
    pub fn memory_mut(&mut self, node: u32) -> &mut K {
        &mut self.nodes[node as usize].memory
    }

    /// Returns the page of ghost `node`.
    #[inline(always)]
    pub fn page(&self, node: u32) -> PageId {
        self.nodes[node as usize].page
    }

    /// Makes a ghost of `page`, which must have none, in no list yet.
    #[inline(always)]
    pub fn make(&mut self, page: PageId, memory: K) -> u32 {
        let ghost = Ghost { page, memory };
        let node = match self.free.pop() {
            Some(node) => {
                self.nodes[node as usize] = ghost;
                node
            }
            None => {
                self.nodes.push(ghost);
                let node = self.nodes.len() as u32 - 1;
                self.links.grow_to(node);
                node
            }
        };
        self.slots.enter(page, node);
        node
    }

    /// Makes a ghost of `page` at the back of `list`.
    #[inline(always)]
    pub fn push(&mut self, list: &mut List, page: PageId, memory: K) -> u32 {
        let node = self.make(page, memory);
        list.push_back(&mut self.links, node);
        node
    }

    /// Forgets ghost `node`, which is in `list`; returns its page and its memory.
    #[inline(always)]
    pub fn drop_from(&mut self, list: &mut List, node: u32) -> (PageId, K) {
        list.remove(&mut self.links, node);
        self.drop_loose(node)
    }

    /// Forgets ghost `node`, which is in no list.
    #[inline(always)]
    pub fn drop_loose(&mut self, node: u32) -> (PageId, K) {
        let Ghost { page, memory } = self.nodes[node as usize];
        self.slots.leave(page);
        self.free.push(node);
        (page, memory)
    }

    /// Forgets the first ghost of `list`.
    #[inline(always)]
    pub fn drop_front(&mut self, list: &mut List) -> Option<(PageId, K)> {
        let node = list.front()?;
        Some(self.drop_from(list, node))
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.slots.bytes()
            + self.nodes.capacity() * size_of::<Ghost<K>>()
            + self.free.capacity() * 4
            + self.links.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ghosts_leave_in_the_order_they_came_and_slots_are_used_again() {
        let mut ghosts: Ghosts<u8> = Ghosts::new(None, 2);
        let mut list = List::new();
        for page in 0..100 {
            ghosts.push(&mut list, PageId(page), page as u8);
            if list.len() > 3 {
                assert_eq!(ghosts.drop_front(&mut list), Some((PageId(page - 3), page as u8 - 3)));
            }
        }
        assert_eq!((ghosts.len(), ghosts.nodes.len()), (3, 4));
        let node = ghosts.find(PageId(98)).unwrap();
        assert_eq!((ghosts.page(node), *ghosts.memory(node)), (PageId(98), 98));
        ghosts.drop_from(&mut list, node);
        assert_eq!(ghosts.find(PageId(98)), None);
        list.check(&ghosts.links).unwrap();
    }
}
