//! Doubly linked lists whose nodes are indices: frames, or ghosts in a slab.
//!
//! Many lists share one [`Links`], since a node is in at most one of them. The front is the end
//! from which policies evict; new nodes go to the back, unless a policy decides otherwise.
//!
//! Invariants: (1) a node is in at most one list, (2) `len` counts a list's nodes, (3) following
//! `next` from the front meets the same nodes as following `prev` from the back, reversed.

use millpond_base::FrameId;

use super::offers::offer_in_turn;
use crate::contract::{EvictRequest, Host};
use crate::zeroed::zeroed;

/// No node.
pub const NIL: u32 = u32::MAX;

/// A node or none, stored as its complement. Zero is none, so that zeroed links are in no list.
#[derive(Clone, Copy, Debug)]
struct Node(u32);

zeros!(Node(u32));

impl Node {
    const NONE: Node = Node(!NIL);

    #[inline(always)]
    fn of(node: u32) -> Node {
        Node(!node)
    }

    #[inline(always)]
    fn get(self) -> Option<u32> {
        some(!self.0)
    }
}

#[derive(Clone, Copy, Debug)]
struct Link {
    prev: Node,
    next: Node,
}

zeros!(Link { prev, next });

const LOOSE: Link = Link { prev: Node::NONE, next: Node::NONE };

/// Links of every node that may be in a list.
#[derive(Clone, Debug, Default)]
pub struct Links {
    links: Vec<Link>,
}

impl Links {
    /// Creates links for nodes `0..len`.
    pub fn new(len: u32) -> Links {
        Links { links: zeroed(len as usize) }
    }

    /// Makes room for node `node`.
    pub fn grow_to(&mut self, node: u32) {
        if node as usize >= self.links.len() {
            self.links.resize(node as usize + 1, LOOSE);
        }
    }

    /// Returns the node after `node`, towards the back.
    #[inline(always)]
    pub fn next(&self, node: u32) -> Option<u32> {
        self.links[node as usize].next.get()
    }

    /// Returns the node before `node`, towards the front.
    #[inline(always)]
    pub fn prev(&self, node: u32) -> Option<u32> {
        self.links[node as usize].prev.get()
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.links.capacity() * size_of::<Link>()
    }
}

#[inline(always)]
fn some(node: u32) -> Option<u32> {
    if node == NIL { None } else { Some(node) }
}

/// One list over a [`Links`].
#[derive(Clone, Copy, Debug)]
pub struct List {
    front: u32,
    back: u32,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        List { front: NIL, back: NIL, len: 0 }
    }
}

impl List {
    /// Creates an empty list.
    pub fn new() -> List {
        List::default()
    }

    /// Returns the number of nodes.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns `true` if there is no node.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the first node.
    #[inline(always)]
    pub fn front(&self) -> Option<u32> {
        some(self.front)
    }

    /// Returns the last node.
    #[inline(always)]
    pub fn back(&self) -> Option<u32> {
        some(self.back)
    }

    /// Appends `node`, which must be in no list.
    #[inline]
    pub fn push_back(&mut self, links: &mut Links, node: u32) {
        links.links[node as usize] = Link { prev: Node::of(self.back), next: Node::NONE };
        match some(self.back) {
            Some(back) => links.links[back as usize].next = Node::of(node),
            None => self.front = node,
        }
        self.back = node;
        self.len += 1;
    }

    /// Prepends `node`, which must be in no list.
    #[inline]
    pub fn push_front(&mut self, links: &mut Links, node: u32) {
        links.links[node as usize] = Link { prev: Node::NONE, next: Node::of(self.front) };
        match some(self.front) {
            Some(front) => links.links[front as usize].prev = Node::of(node),
            None => self.back = node,
        }
        self.front = node;
        self.len += 1;
    }

    /// Inserts `node`, which must be in no list, before `at`, which is in this one.
    #[inline]
    pub fn insert_before(&mut self, links: &mut Links, at: u32, node: u32) {
        match links.prev(at) {
            None => self.push_front(links, node),
            Some(prev) => {
                links.links[node as usize] = Link { prev: Node::of(prev), next: Node::of(at) };
                links.links[prev as usize].next = Node::of(node);
                links.links[at as usize].prev = Node::of(node);
                self.len += 1;
            }
        }
    }

    /// Removes `node`, which must be in this list.
    #[inline]
    pub fn remove(&mut self, links: &mut Links, node: u32) {
        let Link { prev, next } = links.links[node as usize];
        match prev.get() {
            Some(prev) => links.links[prev as usize].next = next,
            None => self.front = !next.0,
        }
        match next.get() {
            Some(next) => links.links[next as usize].prev = prev,
            None => self.back = !prev.0,
        }
        links.links[node as usize] = LOOSE;
        self.len -= 1;
    }

    /// Replaces `old`, which is in this list, by `new`, which must be in no list.
    #[inline]
    pub fn replace(&mut self, links: &mut Links, old: u32, new: u32) {
        let link = std::mem::replace(&mut links.links[old as usize], LOOSE);
        links.links[new as usize] = link;
        match link.prev.get() {
            Some(prev) => links.links[prev as usize].next = Node::of(new),
            None => self.front = new,
        }
        match link.next.get() {
            Some(next) => links.links[next as usize].prev = Node::of(new),
            None => self.back = new,
        }
    }

    /// Moves `node`, which is in this list, to the back.
    #[inline]
    pub fn move_to_back(&mut self, links: &mut Links, node: u32) {
        let Some(back) = self.back().filter(|back| *back != node) else { return };
        // Like removing and appending, with the certainty that a node follows and one stays.
        let Link { prev, next } = links.links[node as usize];
        match prev.get() {
            Some(prev) => links.links[prev as usize].next = next,
            None => self.front = !next.0,
        }
        links.links[(!next.0) as usize].prev = prev;
        links.links[node as usize] = Link { prev: Node::of(back), next: Node::NONE };
        links.links[back as usize].next = Node::of(node);
        self.back = node;
    }

    /// Moves `node`, which is in this list, to the front.
    #[inline]
    pub fn move_to_front(&mut self, links: &mut Links, node: u32) {
        if self.front != node {
            self.remove(links, node);
            self.push_front(links, node);
        }
    }

    /// Removes the first node.
    #[inline]
    pub fn pop_front(&mut self, links: &mut Links) -> Option<u32> {
        let node = self.front()?;
        self.remove(links, node);
        Some(node)
    }

    /// Removes the last node.
    #[inline]
    pub fn pop_back(&mut self, links: &mut Links) -> Option<u32> {
        let node = self.back()?;
        self.remove(links, node);
        Some(node)
    }

    /// Appends all nodes of `other`, which is empty afterwards.
    #[inline]
    pub fn append(&mut self, links: &mut Links, other: &mut List) {
        let moved = std::mem::take(other);
        let (Some(back), Some(front)) = (self.back(), moved.front()) else {
            if self.is_empty() {
                *self = moved;
            }
            return;
        };
        links.links[back as usize].next = Node::of(front);
        links.links[front as usize].prev = Node::of(back);
        self.back = moved.back;
        self.len += moved.len;
    }

    /// Offers the frames of this list from the front until the request is met; returns the number
    /// taken. A taken frame is unlinked and passed to `gone`, a refused one moves to the back.
    #[inline(always)]
    pub fn evict<H: Host + ?Sized>(
        &mut self,
        links: &mut Links,
        request: &EvictRequest,
        host: &mut H,
        mut gone: impl FnMut(FrameId),
    ) -> u32 {
        offer_in_turn(
            request,
            host,
            &mut (self, links),
            |(list, _)| list.front().map(FrameId),
            |(list, links), frame, _page| {
                list.remove(links, frame.0);
                gone(frame);
            },
            |(list, links), frame, _why| list.move_to_back(links, frame.0),
        )
    }

    /// Returns the nodes from front to back.
    pub fn iter<'a>(&self, links: &'a Links) -> impl Iterator<Item = u32> + use<'a> {
        std::iter::successors(self.front(), move |&node| links.next(node))
    }

    /// Verifies the invariants of the module for this list.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self, links: &Links) -> Result<(), String> {
        let (mut count, mut last) = (0u32, None);
        for node in self.iter(links) {
            if links.prev(node) != last {
                return Err(format!("node {node} does not point back to {last:?}"));
            }
            last = Some(node);
            count += 1;
            if count > self.len {
                return Err(format!("the list is longer than its length {}", self.len));
            }
        }
        if count != self.len || last != self.back() {
            return Err(format!(
                "{count} nodes end at {last:?}, not {} at {:?}",
                self.len,
                self.back()
            ));
        }
        Ok(())
    }
}

/// Verifies that `lists`, together, hold each frame of `resident` once and nothing else.
///
/// # Errors
/// A description of the disorder.
pub fn check_holds(lists: &[&List], links: &Links, resident: &[FrameId]) -> Result<(), String> {
    let mut listed = Vec::with_capacity(resident.len());
    for list in lists {
        list.check(links)?;
        listed.extend(list.iter(links));
    }
    listed.sort_unstable();
    if !listed.iter().eq(resident.iter().map(|f| &f.0)) {
        return Err(format!("frames {listed:?} are listed, {resident:?} are resident"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_operations_agree_with_a_deque() {
        let mut rng = fastrand::Rng::with_seed(7);
        let (mut links, mut list) = (Links::new(40), List::new());
        let mut model: Vec<u32> = Vec::new();
        for _ in 0..20_000 {
            let node = rng.u32(0..40);
            match model.iter().position(|&n| n == node) {
                None if !model.is_empty() && rng.u8(0..3) == 0 => {
                    let at = rng.usize(0..model.len());
                    list.insert_before(&mut links, model[at], node);
                    model.insert(at, node);
                }
                None if !model.is_empty() && rng.u8(0..4) == 0 => {
                    let at = rng.usize(0..model.len());
                    list.replace(&mut links, model[at], node);
                    model[at] = node;
                }
                None if rng.bool() => {
                    list.push_back(&mut links, node);
                    model.push(node);
                }
                None => {
                    list.push_front(&mut links, node);
                    model.insert(0, node);
                }
                Some(at) => {
                    model.remove(at);
                    match rng.u8(0..3) {
                        0 => list.remove(&mut links, node),
                        1 => {
                            list.move_to_back(&mut links, node);
                            model.push(node);
                        }
                        _ => {
                            list.move_to_front(&mut links, node);
                            model.insert(0, node);
                        }
                    }
                }
            }
            list.check(&links).unwrap();
            assert_eq!(list.iter(&links).collect::<Vec<_>>(), model);
        }
        while let Some(node) = list.pop_front(&mut links) {
            assert_eq!(node, model.remove(0));
        }
        assert!(model.is_empty() && list.is_empty() && list.pop_back(&mut links).is_none());
    }
}
