//! A heap of frames ordered by a key, in which a frame's key can change or the frame can leave.
//!
//! The heap is four-ary, since sifting down then touches one cache line of children per level.
//! Only the key breaks ties: a policy that needs an order among equals puts it into the key.

/// Place of a frame that is not in the heap; zero, so that unused places cost nothing.
const OUT: u32 = 0;
const ARITY: usize = 4;

/// A min-heap over frames `0..frames`.
pub struct Heap<K> {
    items: Vec<(K, u32)>,
    /// Position of each frame in `items`, counted from one.
    place: Vec<u32>,
}

impl<K: Ord + Copy> Heap<K> {
    /// Creates an empty heap for frames below `frames`.
    pub fn new(frames: u32) -> Heap<K> {
        Heap { items: Vec::new(), place: vec![OUT; frames as usize] }
    }

    /// Makes room for frames below `frames`.
    pub fn grow_to(&mut self, frames: u32) {
        if frames as usize > self.place.len() {
            self.place.resize(frames as usize, OUT);
        }
    }

    /// Returns the number of frames in the heap.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns `true` if the heap is empty.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the key of `frame`, if it is in the heap.
    pub fn key(&self, frame: u32) -> Option<K> {
        match self.place[frame as usize] {
            OUT => None,
            at => Some(self.items[at as usize - 1].0),
        }
    }

    /// Returns the frame with the least key.
    pub fn least(&self) -> Option<(K, u32)> {
        self.items.first().copied()
    }

    /// Puts `frame` in, or changes its key.
    #[inline]
    pub fn set(&mut self, frame: u32, key: K) {
        match self.place[frame as usize] {
            OUT => {
                self.items.push((key, frame));
                self.sift_up(self.items.len() - 1);
            }
            at => {
                let at = at as usize - 1;
                let less = key < self.items[at].0;
                self.items[at].0 = key;
                if less { self.sift_up(at) } else { self.sift_down(at) }
            }
        }
    }

    /// Removes `frame`, if it is in.
    pub fn remove(&mut self, frame: u32) -> Option<K> {
        let at = self.place[frame as usize];
        if at == OUT {
            return None;
        }
        let at = at as usize - 1;
        self.place[frame as usize] = OUT;
        let (key, _) = self.items.swap_remove(at);
        if at < self.items.len() {
            self.place[self.items[at].1 as usize] = at as u32 + 1;
            // Only one of the two moves anything: after a sift down, the item at `at` is no
            // less than its parent.
            self.sift_up(at);
            self.sift_down(at);
        }
        Some(key)
    }

    /// Removes the frame with the least key.
    pub fn pop(&mut self) -> Option<(K, u32)> {
        let (key, frame) = self.least()?;
        self.remove(frame);
        Some((key, frame))
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.items.capacity() * size_of::<(K, u32)>() + self.place.capacity() * 4
    }

    fn sift_up(&mut self, mut at: usize) {
        let item = self.items[at];
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.items[parent].0 <= item.0 {
                break;
            }
            self.put(at, self.items[parent]);
            at = parent;
        }
        self.put(at, item);
    }

    fn sift_down(&mut self, mut at: usize) {
        let item = self.items[at];
        loop {
            let first = at * ARITY + 1;
            let last = (first + ARITY).min(self.items.len());
            let Some(child) = (first..last).min_by_key(|&i| self.items[i].0) else { break };
            if item.0 <= self.items[child].0 {
                break;
            }
            self.put(at, self.items[child]);
            at = child;
        }
        self.put(at, item);
    }

    #[inline(always)]
    fn put(&mut self, at: usize, item: (K, u32)) {
        self.place[item.1 as usize] = at as u32 + 1;
        self.items[at] = item;
    }

    /// Verifies order and places.
    ///
    /// # Errors
    /// A description of the disorder.
    pub fn check(&self) -> Result<(), String> {
        for (at, (key, frame)) in self.items.iter().enumerate() {
            if self.place[*frame as usize] != at as u32 + 1 {
                return Err(format!("frame {frame} is not where the heap thinks"));
            }
            if at > 0 && self.items[(at - 1) / ARITY].0 > *key {
                return Err(format!("item {at} is less than its parent"));
            }
        }
        let inside = self.place.iter().filter(|&&p| p != OUT).count();
        if inside != self.items.len() {
            return Err(format!("{inside} places for {} items", self.items.len()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn random_operations_agree_with_a_sorted_map() {
        let mut rng = fastrand::Rng::with_seed(11);
        let (mut heap, mut model) = (Heap::new(50), BTreeMap::new());
        for _ in 0..30_000 {
            let frame = rng.u32(0..50);
            match rng.u8(0..4) {
                0 => assert_eq!(heap.remove(frame), model.remove(&frame)),
                1 => {
                    let least = model.iter().map(|(f, k)| (*k, *f)).min();
                    assert_eq!(heap.least().map(|(k, _)| k), least.map(|(k, _)| k));
                    if let Some((_, f)) = heap.pop() {
                        model.remove(&f);
                    }
                }
                _ => {
                    let key = (rng.u32(0..20), frame);
                    heap.set(frame, key);
                    model.insert(frame, key);
                }
            }
            heap.check().unwrap();
            assert_eq!(heap.len(), model.len());
            assert_eq!(heap.key(frame), model.get(&frame).copied());
        }
    }
}
