//! A set of frames from which one can be drawn by number, for policies that choose at random.
//!
//! The members are stored densely in an array, in arbitrary order. Each frame knows its place
//! there, so inserting, removing and drawing are O(1) with any number of members.

/// Position of a frame that is not in the set.
const OUT: u32 = u32::MAX;

/// A set over frames `0..frames`.
pub struct FrameSet {
    members: Vec<u32>,
    place: Vec<u32>,
}

impl FrameSet {
    /// Creates the empty set over frames below `frames`.
    pub fn new(frames: u32) -> FrameSet {
        FrameSet { members: Vec::with_capacity(frames as usize), place: vec![OUT; frames as usize] }
    }

    /// Returns the number of members.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.members.len() as u32
    }

    /// Returns `true` if there is no member.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns `true` if `frame` is a member.
    #[inline(always)]
    pub fn has(&self, frame: u32) -> bool {
        self.place[frame as usize] != OUT
    }

    /// Returns the member with number `index`; numbers change with every insertion and
    /// removal.
    #[inline(always)]
    pub fn at(&self, index: u32) -> Option<u32> {
        self.members.get(index as usize).copied()
    }

    /// Adds `frame`; returns `true` if it was out.
    #[inline(always)]
    pub fn insert(&mut self, frame: u32) -> bool {
        let was_out = !self.has(frame);
        if was_out {
            self.place[frame as usize] = self.len();
            self.members.push(frame);
        }
        was_out
    }

    /// Removes `frame`; returns `true` if it was in.
    #[inline(always)]
    pub fn remove(&mut self, frame: u32) -> bool {
        let at = std::mem::replace(&mut self.place[frame as usize], OUT);
        if at == OUT {
            return false;
        }
        self.members.swap_remove(at as usize);
        if let Some(&moved) = self.members.get(at as usize) {
            self.place[moved as usize] = at;
        }
        true
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        (self.members.capacity() + self.place.capacity()) * 4
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn random_operations_agree_with_a_std_set() {
        let mut rng = fastrand::Rng::with_seed(23);
        let (mut set, mut model) = (FrameSet::new(40), BTreeSet::new());
        for _ in 0..20_000 {
            let frame = rng.u32(0..40);
            match rng.bool() {
                true => assert_eq!(set.insert(frame), model.insert(frame)),
                false => assert_eq!(set.remove(frame), model.remove(&frame)),
            }
            assert_eq!(set.has(frame), model.contains(&frame));
            let members: BTreeSet<u32> = (0..set.len()).filter_map(|i| set.at(i)).collect();
            assert_eq!(members, model);
            assert_eq!(set.at(set.len()), None);
        }
    }
}
