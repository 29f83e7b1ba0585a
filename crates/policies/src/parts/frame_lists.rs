//! Lists that partition the resident frames: each frame is in exactly one of them.
//!
//! Most policies with several queues need the lists and the list of each frame, so that a frame
//! can be removed by its number.

use millpond_base::FrameId;

use super::list::{Links, List};

/// `N` lists over the resident frames.
pub struct FrameLists<const N: usize> {
    links: Links,
    lists: [List; N],
    list_of: Vec<u8>,
}

impl<const N: usize> FrameLists<N> {
    /// Creates empty lists for frames below `frames`.
    pub fn new(frames: u32) -> FrameLists<N> {
        FrameLists {
            links: Links::new(frames),
            lists: [List::new(); N],
            list_of: vec![0; frames as usize],
        }
    }

    /// Returns the length of list `list`.
    #[inline(always)]
    pub fn len(&self, list: usize) -> u32 {
        self.lists[list].len()
    }

    /// Returns `true` if list `list` is empty.
    #[inline(always)]
    pub fn is_empty(&self, list: usize) -> bool {
        self.lists[list].is_empty()
    }

    /// Returns the list of `frame`, which is in one.
    #[inline(always)]
    pub fn list_of(&self, frame: FrameId) -> usize {
        usize::from(self.list_of[frame.index()])
    }

    /// Returns the first frame of list `list`.
    #[inline(always)]
    pub fn front(&self, list: usize) -> Option<FrameId> {
        self.lists[list].front().map(FrameId)
    }

    /// Appends `frame`, which is in no list.
    #[inline(always)]
    pub fn push_back(&mut self, list: usize, frame: FrameId) {
        self.list_of[frame.index()] = list as u8;
        self.lists[list].push_back(&mut self.links, frame.0);
    }

    /// Removes `frame`; returns its list.
    #[inline(always)]
    pub fn remove(&mut self, frame: FrameId) -> usize {
        let list = self.list_of(frame);
        self.lists[list].remove(&mut self.links, frame.0);
        list
    }

    /// Moves `frame` to the back of its list.
    #[inline(always)]
    pub fn move_to_back(&mut self, frame: FrameId) {
        let list = self.list_of(frame);
        self.lists[list].move_to_back(&mut self.links, frame.0);
    }

    /// Moves `frame` to the back of list `list`.
    #[inline(always)]
    pub fn move_to(&mut self, list: usize, frame: FrameId) {
        let from = self.list_of(frame);
        if from == list {
            self.lists[list].move_to_back(&mut self.links, frame.0);
        } else {
            self.lists[from].remove(&mut self.links, frame.0);
            self.push_back(list, frame);
        }
    }

    /// Moves the refused `frame` to the back of its list, which counts the refusal.
    #[inline(always)]
    pub fn pass_over(&mut self, frame: FrameId, refused: &mut [u32; N]) {
        refused[self.list_of(frame)] += 1;
        self.move_to_back(frame);
    }

    /// Returns the frames of list `list` from front to back.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = FrameId> + '_ {
        self.lists[list].iter(&self.links).map(FrameId)
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.links.bytes() + self.list_of.capacity()
    }

    /// Verifies that each resident frame is in one list, and that its list is recorded.
    ///
    /// # Errors
    /// A description of the fault.
    pub fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        let mut listed = 0;
        for (number, list) in self.lists.iter().enumerate() {
            list.check(&self.links)?;
            listed += list.len() as usize;
            if let Some(frame) = self.iter(number).find(|f| self.list_of(*f) != number) {
                return Err(format!("frame {} does not know that it is in list {number}", frame.0));
            }
        }
        if listed != resident.len() {
            return Err(format!("{listed} frames are listed, {} are resident", resident.len()));
        }
        Ok(())
    }
}

impl FrameLists<2> {
    /// Returns the list from which to offer a victim: `wanted`, or the other one if all its
    /// frames were refused already, or none.
    #[inline(always)]
    pub fn source(&self, wanted: usize, refused: &[u32; 2]) -> Option<usize> {
        [wanted, 1 - wanted].into_iter().find(|&list| refused[list] < self.len(list))
    }

    /// Returns the next victim, the front of that list.
    #[inline(always)]
    pub fn front_of(&self, wanted: usize, refused: &[u32; 2]) -> Option<FrameId> {
        self.front(self.source(wanted, refused)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_moves_agree_with_plain_vectors() {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut lists = FrameLists::<3>::new(20);
        let mut model: [Vec<u32>; 3] = Default::default();
        for _ in 0..20_000 {
            let (frame, list) = (rng.u32(0..20), rng.usize(0..3));
            let place = (0..3).find(|&l| model[l].contains(&frame));
            match (place, rng.u8(0..3)) {
                (None, _) => {
                    lists.push_back(list, FrameId(frame));
                    model[list].push(frame);
                }
                (Some(at), 0) => {
                    assert_eq!(lists.remove(FrameId(frame)), at);
                    model[at].retain(|&f| f != frame);
                }
                (Some(at), kind) => {
                    let to = if kind == 1 { at } else { list };
                    if kind == 1 {
                        lists.move_to_back(FrameId(frame));
                    } else {
                        lists.move_to(list, FrameId(frame));
                    }
                    model[at].retain(|&f| f != frame);
                    model[to].push(frame);
                }
            }
            for (number, expected) in model.iter().enumerate() {
                assert!(lists.iter(number).map(|f| f.0).eq(expected.iter().copied()));
                assert_eq!(lists.front(number).map(|f| f.0), expected.first().copied());
            }
            let resident: Vec<FrameId> = model.iter().flatten().map(|&f| FrameId(f)).collect();
            lists.check(&resident).unwrap();
        }
    }
}
