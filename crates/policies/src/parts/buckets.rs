//! Frames ordered by use count: one list per count, the lists in order of counts.
//!
//! All operations of a frequency policy on a hit or an eviction take constant time. Within a count,
//! frames are in the order in which they reached it.
//!
//! Invariants: (1) a frame is in at most one bucket; (2) buckets ascend by count and none is
//! empty; (3) each bucket's list is sound; (4) `len` and `sum` are those of the frames' counts.

use crate::contract::{EvictRequest, Host, RefusalReason};
use millpond_base::{FrameId, PageId};

use super::list::{Links, List, NIL};

/// A count that no page reaches by references alone: for pages that can never be evicted.
const FOREVER: u32 = 1 << 31;

#[derive(Clone, Copy)]
struct Bucket {
    count: u32,
    list: List,
    lower: u32,
    higher: u32,
}

/// The order of eviction among the frames with the least count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Oldest {
    /// The frame that reached the count first.
    First,
    /// The frame that reached the count last.
    Last,
}

/// Frames by count.
pub struct Buckets {
    links: Links,
    bucket_of: Vec<u32>,
    buckets: Vec<Bucket>,
    free: Vec<u32>,
    least: u32,
    most: u32,
    len: u32,
    sum: u64,
    refused: Vec<(u32, RefusalReason)>,
}

impl Buckets {
    /// Creates empty buckets with room for frames below `frames`.
    pub fn new(frames: u32) -> Buckets {
        Buckets {
            links: Links::new(frames),
            bucket_of: vec![NIL; frames as usize],
            buckets: Vec::new(),
            free: Vec::new(),
            least: NIL,
            most: NIL,
            len: 0,
            sum: 0,
            refused: Vec::new(),
        }
    }

    /// Returns the number of frames.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns `true` if there is no frame.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the sum of all frames' counts.
    #[inline(always)]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the count of `frame`, if it is in.
    pub fn count(&self, frame: u32) -> Option<u32> {
        match self.bucket_of[frame as usize] {
            NIL => None,
            bucket => Some(self.buckets[bucket as usize].count),
        }
    }

    /// Adds `frame`, which is not in, with `count`; quick if few counts are less.
    #[inline]
    pub fn add(&mut self, frame: u32, count: u32) {
        self.count_in(count);
        let mut lower = NIL;
        let mut at = self.least;
        while at != NIL && self.buckets[at as usize].count < count {
            lower = at;
            at = self.buckets[at as usize].higher;
        }
        self.place(frame, count, lower, at);
    }

    /// Adds `frame` with `count`, searching from the greatest count down; quick if few counts are
    /// greater.
    fn add_high(&mut self, frame: u32, count: u32) {
        self.count_in(count);
        let mut higher = NIL;
        let mut at = self.most;
        while at != NIL && self.buckets[at as usize].count > count {
            higher = at;
            at = self.buckets[at as usize].lower;
        }
        if at != NIL && self.buckets[at as usize].count == count {
            return self.push(frame, at);
        }
        self.place(frame, count, at, higher);
    }

    #[inline(always)]
    fn count_in(&mut self, count: u32) {
        self.len += 1;
        self.sum += u64::from(count);
    }

    /// Puts `frame` into bucket `at` if that has `count`, else into a new bucket between the two.
    #[inline]
    fn place(&mut self, frame: u32, count: u32, lower: u32, at: u32) {
        if at != NIL && self.buckets[at as usize].count == count {
            return self.push(frame, at);
        }
        let bucket = Bucket { count, list: List::new(), lower, higher: at };
        let new = match self.free.pop() {
            Some(free) => {
                self.buckets[free as usize] = bucket;
                free
            }
            None => {
                self.buckets.push(bucket);
                self.buckets.len() as u32 - 1
            }
        };
        match lower {
            NIL => self.least = new,
            lower => self.buckets[lower as usize].higher = new,
        }
        match at {
            NIL => self.most = new,
            at => self.buckets[at as usize].lower = new,
        }
        self.push(frame, new);
    }

    #[inline(always)]
    fn push(&mut self, frame: u32, bucket: u32) {
        self.bucket_of[frame as usize] = bucket;
        self.buckets[bucket as usize].list.push_back(&mut self.links, frame);
    }

    /// Removes `frame`, if it is in, and returns its count.
    #[inline]
    pub fn remove(&mut self, frame: u32) -> Option<u32> {
        let at = std::mem::replace(&mut self.bucket_of[frame as usize], NIL);
        if at == NIL {
            return None;
        }
        let count = self.unlink(frame, at);
        self.len -= 1;
        self.sum -= u64::from(count);
        Some(count)
    }

    /// Removes `frame` from bucket `at`, and the bucket if it becomes empty; returns the count.
    #[inline]
    fn unlink(&mut self, frame: u32, at: u32) -> u32 {
        let bucket = &mut self.buckets[at as usize];
        bucket.list.remove(&mut self.links, frame);
        let Bucket { count, list, lower, higher } = *bucket;
        if list.is_empty() {
            match lower {
                NIL => self.least = higher,
                lower => self.buckets[lower as usize].higher = higher,
            }
            match higher {
                NIL => self.most = lower,
                higher => self.buckets[higher as usize].lower = lower,
            }
            self.free.push(at);
        }
        count
    }

    /// Counts one more reference to `frame`, up to `max`; returns `true` if the count grew. The
    /// frame becomes the last of its count in either case. A frame that is not in is ignored.
    #[inline]
    pub fn raise(&mut self, frame: u32, max: u32) -> bool {
        let at = self.bucket_of[frame as usize];
        if at == NIL {
            return false;
        }
        let Bucket { count, list, higher, .. } = self.buckets[at as usize];
        if count >= max {
            self.buckets[at as usize].list.move_to_back(&mut self.links, frame);
            return false;
        }
        self.sum += 1;
        let next_is_one_more = higher != NIL && self.buckets[higher as usize].count == count + 1;
        if list.len() == 1 && !next_is_one_more {
            self.buckets[at as usize].count += 1;
            return true;
        }
        if list.len() > 1 {
            self.buckets[at as usize].list.remove(&mut self.links, frame);
            self.place(frame, count + 1, at, higher);
        } else {
            self.unlink(frame, at);
            self.push(frame, higher);
        }
        true
    }

    /// Returns the frame to evict first.
    fn first(&self, oldest: Oldest) -> Option<u32> {
        if self.least == NIL { None } else { self.end(self.least, oldest) }
    }

    fn end(&self, bucket: u32, oldest: Oldest) -> Option<u32> {
        let list = &self.buckets[bucket as usize].list;
        if oldest == Oldest::First { list.front() } else { list.back() }
    }

    /// Returns the frame to evict after `frame`.
    fn after(&self, frame: u32, oldest: Oldest) -> Option<u32> {
        let beside = match oldest {
            Oldest::First => self.links.next(frame),
            Oldest::Last => self.links.prev(frame),
        };
        beside.or_else(|| {
            let bucket = self.bucket_of[frame as usize];
            match self.buckets[bucket as usize].higher {
                NIL => None,
                higher => self.end(higher, oldest),
            }
        })
    }

    /// Evicts by least count until `request` is met, and calls `taken` with each page and its
    /// count.
    ///
    /// A temporary refusal counts as a reference (gilbert 1.2.13), and a permanent one as more
    /// references than can occur. Both apply after the eviction, which offers no frame twice.
    pub fn evict<H: Host + ?Sized>(
        &mut self,
        oldest: Oldest,
        request: &EvictRequest,
        host: &mut H,
        mut taken: impl FnMut(PageId, u32),
    ) -> u32 {
        let (mut done, mut steps) = (0, 0);
        let mut at = self.first(oldest);
        while let Some(offered) = at
            && done < request.frames
            && steps < request.steps_max
        {
            steps += 1;
            match host.take(FrameId(offered)) {
                Ok((FrameId(frame), page)) => {
                    if frame == offered {
                        at = self.after(offered, oldest);
                    }
                    if let Some(count) = self.remove(frame) {
                        taken(page, count);
                    }
                    done += 1;
                }
                Err(why) => {
                    at = self.after(offered, oldest);
                    self.refused.push((offered, why));
                }
            }
        }
        self.settle();
        done
    }

    /// Applies the effects of refusals.
    #[inline]
    fn settle(&mut self) {
        while let Some((frame, why)) = self.refused.pop() {
            if why.is_temporary() {
                self.raise(frame, u32::MAX);
            } else if let Some(count) = self.remove(frame) {
                self.add_high(frame, count.max(FOREVER));
            }
        }
    }

    /// Halves every count, rounding up. Where two counts become one, the frames of the lesser count
    /// come first.
    pub fn halve(&mut self) {
        let mut frames: Vec<(u32, u32)> = Vec::new();
        let mut at = self.least;
        while at != NIL {
            let bucket = self.buckets[at as usize];
            frames.extend(bucket.list.iter(&self.links).map(|f| (f, bucket.count.div_ceil(2))));
            at = bucket.higher;
        }
        self.buckets.clear();
        self.free.clear();
        (self.least, self.most, self.len, self.sum) = (NIL, NIL, 0, 0);
        for (frame, count) in frames {
            self.add_high(frame, count);
        }
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.links.bytes()
            + self.bucket_of.capacity() * 4
            + self.buckets.capacity() * size_of::<Bucket>()
            + self.free.capacity() * 4
            + self.refused.capacity() * size_of::<(u32, RefusalReason)>()
    }

    /// Verifies the module's invariants, and that exactly `resident` are in.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        let (mut at, mut last, mut frames, mut sum) = (self.least, None, 0, 0);
        while at != NIL {
            let bucket = &self.buckets[at as usize];
            if last >= Some(bucket.count) || bucket.list.is_empty() {
                return Err(format!("bucket {} follows {last:?} or is empty", bucket.count));
            }
            bucket.list.check(&self.links)?;
            if bucket.list.iter(&self.links).any(|f| self.bucket_of[f as usize] != at) {
                return Err(format!("a frame of bucket {} thinks otherwise", bucket.count));
            }
            frames += bucket.list.len() as usize;
            sum += u64::from(bucket.list.len()) * u64::from(bucket.count);
            (last, at) = (Some(bucket.count), bucket.higher);
        }
        if frames != resident.len() || resident.iter().any(|f| self.count(f.0).is_none()) {
            return Err(format!("{frames} frames are counted, {} resident", resident.len()));
        }
        if (self.len as usize, self.sum) != (frames, sum) {
            return Err(format!("{frames} counts sum to {sum}, not {} to {}", self.len, self.sum));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_operations_agree_with_a_sorted_vector() {
        let mut rng = fastrand::Rng::with_seed(13);
        let mut buckets = Buckets::new(30);
        // Frames in order of eviction, with their counts.
        let mut model: Vec<(u32, u32)> = Vec::new();
        let put = |model: &mut Vec<(u32, u32)>, frame: u32, count: u32| {
            let at = model.iter().position(|&(_, c)| c > count).unwrap_or(model.len());
            model.insert(at, (frame, count));
        };
        for _ in 0..20_000 {
            let frame = rng.u32(0..30);
            match model.iter().position(|&(f, _)| f == frame) {
                None => {
                    let count = rng.u32(1..9);
                    if rng.bool() {
                        buckets.add(frame, count);
                    } else {
                        buckets.add_high(frame, count);
                    }
                    put(&mut model, frame, count);
                }
                Some(at) if rng.u8(0..3) == 0 => {
                    assert_eq!(buckets.remove(frame), Some(model.remove(at).1));
                }
                Some(at) => {
                    let count = model.remove(at).1;
                    let max = rng.u32(4..12);
                    assert_eq!(buckets.raise(frame, max), count < max);
                    put(&mut model, frame, if count < max { count + 1 } else { count });
                }
            }
            if rng.u8(0..200) == 0 {
                model.iter_mut().for_each(|(_, c)| *c = c.div_ceil(2));
                buckets.halve();
            }
            let resident: Vec<FrameId> = model.iter().map(|&(f, _)| FrameId(f)).collect();
            buckets.check(&resident).unwrap();
            let order = |first, oldest| {
                std::iter::successors(first, |&f| buckets.after(f, oldest)).collect::<Vec<u32>>()
            };
            let forward = order(buckets.first(Oldest::First), Oldest::First);
            assert_eq!(forward, model.iter().map(|&(f, _)| f).collect::<Vec<_>>());
            let mut by_count = order(buckets.first(Oldest::Last), Oldest::Last);
            by_count.reverse();
            by_count.sort_by_key(|&f| buckets.count(f));
            assert_eq!(by_count, forward);
        }
    }
}
