//! Frames by a state and by the age of their last request.
//!
//! Time is counted in *epochs* of a few requests. A list holds the frames of one state that were
//! requested in one *group* of epochs. The last eight epochs have a group each; older ones share
//! groups of two, four, eight …, with four to eight groups for each width. A group that is too old
//! for its width is appended as a whole to the next wider one. So the passage of time costs a few
//! operations per state and epoch, independent of the number of frames.
//!
//! Invariants: (1) a resident frame is in the list that its state and its epoch name.

use crate::parts::list::{Links, List};

/// Widths of groups: 1, 2, 4, … epochs.
const LEVELS: usize = 8;
/// Groups of a width.
const GROUPS: u64 = 8;
const LISTS: usize = LEVELS * GROUPS as usize;

/// First epoch of the lists; the number of epochs before it is the maximum age of a group.
pub const FIRST_EPOCH: u64 = GROUPS << LEVELS;

/// Number of buckets of ages: one for each of the first eight epochs, then four to an octave.
pub const BUCKETS: usize = GROUPS as usize + 4 * (LEVELS - 1);

/// Returns the bucket of an age.
#[inline(always)]
pub fn bucket(age: u64) -> usize {
    if age < GROUPS {
        return age as usize;
    }
    let level = 61 - age.leading_zeros() as usize;
    let bucket = 8 + (level - 1) * 4 + ((age >> level) - 4) as usize;
    bucket.min(BUCKETS - 1)
}

/// Returns the number of epochs in a bucket.
#[inline(always)]
pub fn width(bucket: usize) -> u64 {
    if bucket < GROUPS as usize { 1 } else { 1 << ((bucket - 8) / 4 + 1) }
}

/// Lists of frames by state and age.
pub struct AgedLists {
    links: Links,
    /// The `LISTS` lists of each state.
    lists: Vec<List>,
    epoch: u64,
    len: u32,
}

impl AgedLists {
    /// Creates empty lists of `states` states for frames below `frames`.
    pub fn new(states: usize, frames: u32) -> AgedLists {
        AgedLists {
            links: Links::new(frames),
            lists: vec![List::new(); states * LISTS],
            epoch: FIRST_EPOCH,
            len: 0,
        }
    }

    /// Returns the present epoch.
    #[inline(always)]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the number of frames in all lists.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns `true` if no list has a frame.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of lists.
    pub fn lists(&self) -> usize {
        self.lists.len()
    }

    /// Returns the list of a frame in `state` whose last request was in `epoch`.
    #[inline(always)]
    pub fn list_of(&self, state: usize, epoch: u64) -> usize {
        let age = self.epoch - epoch.min(self.epoch);
        let mut level = if age < GROUPS { 0 } else { 61 - age.leading_zeros() as usize };
        // Groups of a width are aligned, so a frame may have moved on a little earlier.
        while level > 0 && (self.epoch >> (level - 1)) - (epoch >> (level - 1)) < GROUPS {
            level -= 1;
        }
        while level < LEVELS - 1 && (self.epoch >> level) - (epoch >> level) >= GROUPS {
            level += 1;
        }
        let level = level.min(LEVELS - 1);
        let oldest = (self.epoch >> level).saturating_sub(GROUPS - 1);
        let group = (epoch >> level).max(oldest);
        state * LISTS + level * GROUPS as usize + (group % GROUPS) as usize
    }

    /// Returns the state of a list, and the age of its youngest frames, in epochs.
    #[inline]
    pub fn of_list(&self, list: usize) -> (usize, u64) {
        let (state, list) = (list / LISTS, list % LISTS);
        let (level, slot) = (list / GROUPS as usize, (list as u64) % GROUPS);
        let newest = self.epoch >> level;
        let group = newest - (newest.wrapping_sub(slot) % GROUPS);
        let last = ((group + 1) << level) - 1;
        (state, self.epoch.saturating_sub(last))
    }

    /// Returns `true` if frames that are requested now enter this list.
    #[inline(always)]
    pub fn is_newest(&self, list: usize) -> bool {
        (list % LISTS) as u64 == self.epoch % GROUPS
    }

    /// Returns the number of frames in a list.
    #[inline(always)]
    pub fn len_of(&self, list: usize) -> u32 {
        self.lists[list].len()
    }

    /// Returns the frame at the front of a list, which has been in it longest.
    #[inline(always)]
    pub fn front(&self, list: usize) -> Option<u32> {
        self.lists[list].front()
    }

    /// Appends a frame, which is in no list, and returns its list.
    #[inline(always)]
    pub fn push(&mut self, state: usize, epoch: u64, frame: u32) -> usize {
        let list = self.list_of(state, epoch);
        self.lists[list].push_back(&mut self.links, frame);
        self.len += 1;
        list
    }

    /// Removes a frame, which is in the list of this state and epoch.
    #[inline(always)]
    pub fn remove(&mut self, state: usize, epoch: u64, frame: u32) {
        let list = self.list_of(state, epoch);
        self.lists[list].remove(&mut self.links, frame);
        self.len -= 1;
    }

    /// Starts the next epoch: groups that are too old for their width join a wider one.
    pub fn next_epoch(&mut self) {
        self.epoch += 1;
        for level in 0..LEVELS {
            if self.epoch & ((1 << level) - 1) != 0 {
                break;
            }
            let expired = (self.epoch >> level) - GROUPS;
            let from = level * GROUPS as usize + (expired % GROUPS) as usize;
            let to = if level + 1 < LEVELS {
                (level + 1) * GROUPS as usize + ((expired >> 1) % GROUPS) as usize
            } else {
                level * GROUPS as usize + ((expired + 1) % GROUPS) as usize
            };
            for state in (0..self.lists.len()).step_by(LISTS) {
                let mut moved = std::mem::take(&mut self.lists[state + from]);
                self.lists[state + to].append(&mut self.links, &mut moved);
            }
        }
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.links.bytes() + self.lists.capacity() * size_of::<List>()
    }

    /// Verifies the lists, and that each of these frames is in the list of its state and epoch.
    ///
    /// # Errors
    /// A description of the fault.
    pub fn check(&self, frames: impl Iterator<Item = (usize, u64, u32)>) -> Result<(), String> {
        let mut list_of = Vec::new();
        let mut listed = 0;
        for (number, list) in self.lists.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            list.check(&self.links)?;
            listed += list.len();
            for frame in list.iter(&self.links) {
                list_of.resize(list_of.len().max(frame as usize + 1), usize::MAX);
                list_of[frame as usize] = number;
            }
        }
        let mut found = 0;
        for (state, epoch, frame) in frames {
            if list_of.get(frame as usize) != Some(&self.list_of(state, epoch)) {
                return Err(format!("1: frame {frame} is not in its list"));
            }
            found += 1;
        }
        if listed != self.len || found != self.len {
            return Err(format!("1: {listed} frames are listed, {found} resident"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_have_their_widths() {
        let (mut age, mut at) = (0, 0);
        while at + 1 < BUCKETS {
            let next = age + width(at);
            assert_eq!((bucket(age), bucket(next - 1), bucket(next)), (at, at, at + 1));
            (age, at) = (next, at + 1);
        }
        assert_eq!(bucket(u64::MAX >> 4), BUCKETS - 1);
    }

    #[test]
    fn frames_are_found_again_at_any_age_and_lists_know_it() {
        let mut lists = AgedLists::new(2, 3_000);
        let mut born = Vec::new();
        for frame in 0..3_000 {
            let (state, epoch) = ((frame % 2) as usize, lists.epoch());
            lists.push(state, epoch, frame);
            born.push((state, epoch, frame));
            let steps = if frame % 50 == 0 { 40 } else { frame % 3 };
            (0..steps).for_each(|_| lists.next_epoch());
            if frame % 500 == 499 {
                lists.check(born.iter().copied()).unwrap();
            }
        }
        for (state, epoch, _) in &born {
            let age = lists.epoch() - epoch;
            let (of, youngest) = lists.of_list(lists.list_of(*state, *epoch));
            // A group of width w is 4 to 8 widths old, or at the end of all levels.
            assert!(of == *state && youngest <= age, "{age} in a list of {youngest}");
            let is_told = (8..(GROUPS - 1) << (LEVELS - 1)).contains(&age);
            assert!(!is_told || youngest * 4 >= age * 3 - 3, "{age} in a list of {youngest}");
        }
        let (state, epoch, frame) = born.swap_remove(7);
        lists.remove(state, epoch, frame);
        assert_eq!(lists.len(), 2_999);
        lists.check(born.iter().copied()).unwrap();
        assert!(lists.check(born.iter().copied().skip(1)).is_err());
    }
}
