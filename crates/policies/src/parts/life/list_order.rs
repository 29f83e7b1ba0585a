//! Lists in the order of a rate, for finding the list of the next victim.
//!
//! The order is rebuilt from time to time. In between, lists become empty, and others that were
//! empty are inserted at their place.
//!
//! Invariants: (1) a list in the order knows its place, (2) all lists before `first` are empty.

use std::cmp::Ordering;

/// Not in the order.
const NOWHERE: u32 = u32::MAX;

/// A rate, and its list.
pub type Rated = (f32, u32);

/// Lists by their rates, the least first.
pub struct ListOrder {
    order: Vec<Rated>,
    place: Vec<u32>,
    first: usize,
}

impl ListOrder {
    /// Creates an empty order for `lists` lists.
    pub fn new(lists: usize) -> ListOrder {
        ListOrder { order: Vec::new(), place: vec![NOWHERE; lists], first: 0 }
    }

    /// Rebuilds the order from these lists.
    pub fn renew(
        &mut self,
        lists: impl Iterator<Item = Rated>,
        mut compare: impl FnMut(&Rated, &Rated) -> Ordering,
    ) {
        self.place.fill(NOWHERE);
        self.order.clear();
        self.order.extend(lists);
        self.order.sort_unstable_by(|a, b| compare(a, b));
        self.number(0);
        self.first = 0;
    }

    /// Records that `list` has a frame now; `rated` returns its rate if it is not in the order
    /// yet.
    #[inline(always)]
    pub fn fill(
        &mut self,
        list: usize,
        rated: impl FnOnce() -> f32,
        compare: impl FnMut(&Rated, &Rated) -> Ordering,
    ) {
        if self.place[list] == NOWHERE {
            self.insert((rated(), list as u32), compare);
        }
        self.first = self.first.min(self.place[list] as usize);
    }

    fn insert(&mut self, entry: Rated, mut compare: impl FnMut(&Rated, &Rated) -> Ordering) {
        let at = self.order.partition_point(|other| compare(other, &entry) == Ordering::Less);
        self.order.insert(at, entry);
        self.number(at);
    }

    fn number(&mut self, from: usize) {
        for (place, (_, list)) in self.order.iter().enumerate().skip(from) {
            self.place[*list as usize] = place as u32;
        }
    }

    /// Returns the first list with frames, and its rate.
    #[inline(always)]
    pub fn first(&mut self, has_frames: impl Fn(usize) -> bool) -> Option<(f32, usize)> {
        while let Some((rate, list)) = self.order.get(self.first) {
            if has_frames(*list as usize) {
                return Some((*rate, *list as usize));
            }
            self.first += 1;
        }
        None
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.order.capacity() * size_of::<Rated>() + self.place.capacity() * 4
    }

    /// Verifies that a list with frames has its place and is not skipped.
    ///
    /// # Errors
    /// A description of the fault.
    pub fn check(&self, list: usize) -> Result<(), String> {
        let place = self.place[list] as usize;
        let is_there = self.order.get(place).is_some_and(|(_, at)| *at as usize == list);
        if is_there && place >= self.first {
            return Ok(());
        }
        Err(format!("list {list} is at {place}, of {} from {}", self.order.len(), self.first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_rate_comes_first_whenever_its_list_has_frames() {
        let compare = |a: &Rated, b: &Rated| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let mut order = ListOrder::new(5);
        let mut frames = [1, 1, 0, 1, 0];
        order.renew([(3.0, 0), (1.0, 1), (2.0, 3)].into_iter(), compare);
        let first = |order: &mut ListOrder, frames: &[i32; 5]| order.first(|l| frames[l] > 0);
        assert_eq!(first(&mut order, &frames), Some((1.0, 1)));
        frames[1] = 0;
        assert_eq!(first(&mut order, &frames), Some((2.0, 3)));
        order.check(3).unwrap();
        assert!(order.check(1).is_err() && order.check(4).is_err());
        // A list that was not in the order, before the first one, and a list that was skipped,
        // after it.
        frames[4] = 1;
        order.fill(4, || 0.5, compare);
        assert_eq!(first(&mut order, &frames), Some((0.5, 4)));
        frames[4] = 0;
        frames[1] = 1;
        order.fill(1, || unreachable!(), compare);
        assert_eq!(first(&mut order, &frames), Some((1.0, 1)));
        frames = [0; 5];
        assert_eq!(first(&mut order, &frames), None);
    }
}
