//! `tide-io`: the page that saves least per time in the cache is evicted first, by hints, writes
//! and age.
//!
//! **Idea** — Ours; one policy combines the topics that li 7.2 leaves separate: hints, predicted
//! reads, the cost of writes, and ageing. Keeping a page saves a read if it is read next, and a
//! write if it is dirty and written next, unless a dsync comes before. The policy learns the
//! likelihood and the time of both. Pages are classed by the reason of their last request (the
//! hint), by their wait after the last request of that kind, and by their number of requests. For
//! each class a life table counts the ends of waits at each age, including those of evicted pages.
//! The page with the least savings per time is evicted, assuming the best time of keeping from its
//! present age on. A page whose predicted time has passed sinks by itself.
//!
//! **Source** — Ours. It answers li 7.2, and his remark on TQ's missing ageing in 3.3.4; hit
//! density is after LHD (Beckmann, Chen & Cidon, NSDI 2018); the best stopping time is Gittins'
//! (1979).
//!
//! **State** — Per page the position of its last request, its class, the lengths of its last waits
//! after a read and after a write, its requests; the same for ghosts, in the order of eviction;
//! life tables by class and age; lists of frames by class, dirty state and age, and their order.
//!
//! **Invariants** — (1) A resident frame is in the list of its class, its dirty state and its age.
//! (2) The ghosts never exceed the frames. (3) Every list with frames has its place in the order.
//!
//! **Cost** — Hit, admit: O(1), and if their list was empty, its place is found in O(lists). Evict:
//! O(1). Lists are sorted every 1/32 of the cache's size in requests (at least 16). Tables are
//! renewed every half of the cache's size in requests (at least 1,024), in a time that depends on
//! the number of classes, and one step for each ghost. 24 bytes per frame, 36 per ghost, 0.4 MB for
//! tables.
//!
//! **Deviations** — None: there is no source to deviate from. A refused frame moves to the back of
//! its list.
//!
//! **Defaults** — `price=1`: a write costs a read. Classes, the tables' memory and the number of
//! ghosts were chosen on the tuning half of docs/reports/second-tier/tide-io/split.csv, before the
//! other half was run; the number of ghosts is that of `tq`. A write without a reason counts as
//! REPLACE.
//!
//! The file is long because one policy is one file, including its variants.

use std::cmp::Ordering;

use millpond_base::{FrameId, PageId};

use crate::contract::{
    Access, EvictRequest, Frames, GhostHit, Host, Policy, PolicySpec, Shape, TimedCentralHook,
};
use crate::info::{Age, Class, Family, Info, References, Tier};
use crate::parts::life::{
    AgedLists, BUCKETS, End, FIRST_EPOCH, LifeTables, ListOrder, Rated, bucket,
};
use crate::parts::{ColdStart, Ghosts, Hint, List, Position};

config! {
    /// The parameter of [`TideIo`].
    pub struct TideIoConfig {
        /// Cost of a write, in reads.
        price: f64 = 1.0, in 0.0..=1_000_000.0;
    }
}

/// Parts that a variant leaves out, to measure their benefit.
pub trait Ablation: Send + 'static {
    /// Id of the variant.
    const ID: &'static str;
    /// `true` if the reasons of writes are known.
    const HINTS: bool = true;
    /// `true` if a page's rate changes with its age.
    const AGES: bool = true;
}

/// Nothing is left out.
pub struct Whole;

impl Ablation for Whole {
    const ID: &'static str = "tide-io";
}

/// All writes are alike.
pub struct WithoutHints;

impl Ablation for WithoutHints {
    const ID: &'static str = "tide-io-no-hints";
    const HINTS: bool = false;
}

/// Pages keep their rate at the request; among equals the oldest is evicted.
pub struct WithoutAges;

impl Ablation for WithoutAges {
    const ID: &'static str = "tide-io-no-ages";
    const AGES: bool = false;
}

const HINTS: usize = 4;
/// Number of distinguished lengths of waits, including the unknown one.
const WAITS: usize = 8;
/// Number of distinguished request counts.
const SEEN: usize = 4;
const PER_HINT: usize = WAITS * SEEN;
/// Number of epochs in which the cache has as many requests as frames.
const EPOCHS: u32 = 32;
/// Requests, in multiples of the frames, after which counts weigh 1/e.
const MEMORY: f64 = 12.0;
/// Minimum number of frames for the length of that memory.
const MEMORY_FRAMES: u32 = 4096;
/// Number of recent victims over which their rate is averaged.
const VICTIMS: f32 = 64.0;
/// The record of a page's requests.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    /// Position of the last request.
    at: u64,
    class: u8,
    /// Lengths of the last waits after a read and after a write; 0 for none.
    waits: [u8; 2],
    requests: u8,
    is_dirty: bool,
    is_resident: bool,
}

impl Past {
    fn class(&self) -> usize {
        usize::from(self.class)
    }

    /// Returns the class and the dirty state as a number.
    fn state(&self) -> usize {
        self.class() * 2 + usize::from(self.is_dirty)
    }

    fn was_written(&self) -> bool {
        self.class() / PER_HINT != Hint::Read as usize
    }
}

/// Evicts the page that saves least per time.
pub struct TideIo<A = Whole> {
    pages: Vec<Past>,
    lists: AgedLists,
    tables: LifeTables,
    order: ListOrder,
    /// Mean rate of recent victims.
    least: f32,
    ghosts: Ghosts<Past>,
    left: List,
    start: ColdStart,
    position: Position,
    frames: u32,
    renewed: u64,
    renew_at: u64,
    ablation: std::marker::PhantomData<A>,
}

impl<A: Ablation> TideIo<A> {
    /// Returns the number of requests in an epoch.
    fn epoch_len(&self) -> u64 {
        u64::from((self.frames / EPOCHS).max(16))
    }

    fn epoch_of(&self, past: &Past) -> u64 {
        FIRST_EPOCH + past.at / self.epoch_len()
    }

    fn bucket_of(&self, past: &Past) -> usize {
        bucket(self.lists.epoch() - self.epoch_of(past))
    }

    /// Returns the code of a wait's length: up to an eighth of the frames, a quarter, a half …,
    /// more than four times.
    fn code(&self, wait: u64) -> u8 {
        let eighths = wait / self.epoch_len() / 4;
        1 + (64 - eighths.leading_zeros()).min(6) as u8
    }

    fn hint(access: &Access) -> Hint {
        let hint = Hint::of(access.mark);
        if A::HINTS || hint == Hint::Read { hint } else { Hint::Replace }
    }

    /// Returns the record of a page with this past, if any, after its request at `now`.
    fn after(&self, past: Option<&Past>, access: &Access, now: u64) -> Past {
        let hint = TideIo::<A>::hint(access);
        let mut next = Past { at: now, ..Past::default() };
        if let Some(past) = past {
            next.waits = past.waits;
            next.waits[usize::from(past.was_written())] = self.code(now.saturating_sub(past.at));
            next.requests = past.requests.saturating_add(1);
        }
        let wait = usize::from(next.waits[usize::from(hint != Hint::Read)]);
        let seen = match next.requests {
            0..=1 => 0,
            2..=3 => 1,
            4..=7 => 2,
            _ => 3,
        };
        next.class = (hint as usize * PER_HINT + wait * SEEN + seen) as u8;
        next
    }

    /// Counts the end of the wait of a page with this past by a request.
    fn count(&mut self, past: &Past, access: &Access) {
        let end = if access.mark.is_write() { End::Write } else { End::Read };
        self.tables.ended(past.class(), self.bucket_of(past), end);
    }

    /// Counts a dirty page that is durable now, or whose wait in the cache is over.
    fn count_dirty(&mut self, past: &Past, is_durable: bool) {
        if past.is_dirty {
            self.tables.was_dirty(past.class(), self.bucket_of(past), is_durable);
        }
    }

    /// Puts a frame into its list, and the list into the order.
    fn link(&mut self, frame: u32) {
        let past = &self.pages[frame as usize];
        let list = self.lists.push(past.state(), self.epoch_of(past), frame);
        let (lists, tables) = (&self.lists, &self.tables);
        let rate = || TideIo::<A>::rate(lists, tables, list);
        self.order.fill(list, rate, |a, b| TideIo::<A>::compare(lists, a, b));
    }

    fn unlink(&mut self, frame: u32) {
        let past = &self.pages[frame as usize];
        self.lists.remove(past.state(), self.epoch_of(past), frame);
    }

    fn rate(lists: &AgedLists, tables: &LifeTables, list: usize) -> f32 {
        let (state, age) = lists.of_list(list);
        tables.rate(state / 2, state % 2 == 1, if A::AGES { bucket(age) } else { 0 })
    }

    /// Orders lists by their savings, and among equals the list with younger pages first. If no
    /// page returns while it is remembered, some pages must stay for the policy to learn that they
    /// return later.
    fn compare(lists: &AgedLists, a: &Rated, b: &Rated) -> Ordering {
        let age = |list: u32| lists.of_list(list as usize).1;
        let by_age = || match A::AGES {
            true => age(a.1).cmp(&age(b.1)),
            false => age(b.1).cmp(&age(a.1)),
        };
        a.0.total_cmp(&b.0).then_with(by_age).then(a.1.cmp(&b.1))
    }

    /// Advances the time to `now`: epochs pass, and lists and tables are updated when due.
    #[inline]
    fn advance(&mut self, access_now: millpond_base::Tick) -> u64 {
        let now = self.position.at(access_now);
        let epoch = FIRST_EPOCH + now / self.epoch_len();
        if epoch > self.lists.epoch() {
            self.pass_to(epoch, now);
        }
        now
    }

    #[cold]
    fn pass_to(&mut self, epoch: u64, now: u64) {
        while self.lists.epoch() < epoch {
            self.lists.next_epoch();
        }
        if now >= self.renew_at {
            let memory = MEMORY * f64::from(self.frames.max(MEMORY_FRAMES));
            let fade = (-((now - self.renewed) as f64) / memory).exp();
            let waiting = self.waiting();
            self.tables.renew(fade as f32, &waiting, self.least);
            self.renewed = now;
            // More often at the start.
            let each = u64::from(self.frames / 2).max(1024);
            self.renew_at = now + each.min(now);
        }
        self.sort();
    }

    /// Returns the pages that wait for their next request, by class and bucket.
    fn waiting(&self) -> Vec<u32> {
        let mut waiting = vec![0; HINTS * PER_HINT * BUCKETS];
        for list in (0..self.lists.lists()).filter(|list| self.lists.len_of(*list) > 0) {
            let (state, age) = self.lists.of_list(list);
            waiting[state / 2 * BUCKETS + bucket(age)] += self.lists.len_of(list);
        }
        for node in self.left.iter(&self.ghosts.links) {
            let past = self.ghosts.memory(node);
            waiting[past.class() * BUCKETS + self.bucket_of(past)] += 1;
        }
        waiting
    }

    /// Sorts the lists: all with frames, and those that the next requests enter.
    fn sort(&mut self) {
        let (lists, tables) = (&self.lists, &self.tables);
        let listed =
            (0..lists.lists()).filter(|list| lists.len_of(*list) > 0 || lists.is_newest(*list));
        let rated = listed.map(|list| (TideIo::<A>::rate(lists, tables, list), list as u32));
        self.order.renew(rated, |a, b| TideIo::<A>::compare(lists, a, b));
    }

    /// Returns the first list with frames, and its rate.
    fn worst(&mut self) -> Option<(f32, usize)> {
        self.order.first(|list| self.lists.len_of(list) > 0)
    }

    /// Remembers a page that was evicted or bypassed the cache.
    fn remember(&mut self, page: PageId, past: Past) {
        let past = Past { is_dirty: false, is_resident: false, ..past };
        self.ghosts.push(&mut self.left, page, past);
        while self.left.len() > self.frames {
            let Some((_, past)) = self.ghosts.drop_front(&mut self.left) else { break };
            self.tables.ended(past.class(), self.bucket_of(&past), End::Unseen);
        }
    }

    /// Returns the record of a page that is not resident, and removes its ghost.
    fn recall(&mut self, page: PageId) -> Option<Past> {
        let node = self.ghosts.find(page)?;
        Some(self.ghosts.drop_from(&mut self.left, node).1)
    }

    /// Removes a page from its frame.
    fn went(&mut self, frame: u32) -> Past {
        self.start.went();
        let past = std::mem::take(&mut self.pages[frame as usize]);
        self.count_dirty(&past, false);
        past
    }
}

impl<A: Ablation> PolicySpec for TideIo<A> {
    const INFO: Info = Info {
        id: A::ID,
        summary: "second tier: what saves least for its time goes, by hints, writes and age",
        family: Family::SecondTier,
        class: Class::Three,
        age: Age::Last,
        references: References::Some,
        tier: Tier::Second,
        live: false,
        frame_bytes: 24.0,
        ghost_bytes: 36.0,
        source: "ours, after li 7.2",
    };
    type Hook = TimedCentralHook;
    type Config = TideIoConfig;

    fn new(config: &TideIoConfig, shape: &Shape) -> TideIo<A> {
        let lists = AgedLists::new(HINTS * PER_HINT * 2, shape.frames);
        let order = ListOrder::new(lists.lists());
        let mut policy = TideIo {
            pages: vec![Past::default(); shape.frames as usize],
            lists,
            tables: LifeTables::new(HINTS, PER_HINT, config.price),
            order,
            least: 0.0,
            ghosts: Ghosts::new(shape.pages_dense, u64::from(shape.frames)),
            left: List::new(),
            start: ColdStart::new(shape.frames),
            position: Position::default(),
            frames: shape.frames,
            renewed: 0,
            renew_at: 64,
            ablation: std::marker::PhantomData,
        };
        policy.sort();
        policy
    }

    fn ghosts_max(_config: &TideIoConfig, frames: u32) -> u64 {
        u64::from(frames)
    }

    fn state_bytes(&self) -> usize {
        self.pages.capacity() * size_of::<Past>()
            + self.lists.bytes()
            + self.tables.bytes()
            + self.ghosts.bytes()
            + self.order.bytes()
    }

    fn check(&self, _: Frames<'_, TimedCentralHook>, resident: &[FrameId]) -> Result<(), String> {
        let here = self.pages.iter().filter(|past| past.is_resident).count();
        if here != resident.len() {
            return Err(format!("invariant 1: {here} pages, {} resident", resident.len()));
        }
        self.lists
            .check(resident.iter().map(|frame| {
                let past = &self.pages[frame.index()];
                (past.state(), self.epoch_of(past), frame.0)
            }))
            .map_err(|error| format!("invariant 1: {error}"))?;
        self.left.check(&self.ghosts.links)?;
        if self.left.len() > self.frames || self.left.len() as usize != self.ghosts.len() {
            return Err(format!("invariant 2: {} ghosts", self.left.len()));
        }
        for list in 0..self.lists.lists() {
            if self.lists.len_of(list) > 0 {
                self.order.check(list).map_err(|error| format!("invariant 3: {error}"))?;
            }
        }
        Ok(())
    }
}

impl<A: Ablation> Policy for TideIo<A> {
    #[inline(always)]
    fn hit(&mut self, _frames: Frames<'_, TimedCentralHook>, frame: FrameId, access: &Access) {
        let now = self.advance(access.now);
        self.unlink(frame.0);
        let past = self.pages[frame.index()];
        self.count_dirty(&past, false);
        self.count(&past, access);
        let is_dirty = past.is_dirty || access.mark.is_write();
        let next = self.after(Some(&past), access, now);
        self.pages[frame.index()] = Past { is_dirty, is_resident: true, ..next };
        self.link(frame.0);
    }

    #[inline(always)]
    fn wants(&mut self, access: &Access) -> bool {
        let now = self.advance(access.now);
        let node = self.ghosts.find(access.page);
        let past = node.map(|node| *self.ghosts.memory(node));
        let next = self.after(past.as_ref(), access, now);
        let least = self.worst().map_or(0.0, |(rate, _)| rate);
        // A host that bypasses the cache writes through, so the pages that it takes are clean.
        if !self.start.is_over() || self.tables.rate(next.class(), false, 0) > least {
            return true;
        }
        if let Some(past) = self.recall(access.page) {
            self.count(&past, access);
        }
        self.remember(access.page, next);
        false
    }

    #[inline(always)]
    fn admit(&mut self, _: Frames<'_, TimedCentralHook>, frame: FrameId, a: &Access, _: GhostHit) {
        let now = self.advance(a.now);
        let past = self.recall(a.page);
        if let Some(past) = &past {
            self.count(past, a);
        }
        let next = self.after(past.as_ref(), a, now);
        let is_dirty = a.mark.is_write();
        self.pages[frame.index()] = Past { is_dirty, is_resident: true, ..next };
        self.link(frame.0);
        self.start.came();
    }

    #[inline(always)]
    fn evict<H: Host + ?Sized>(
        &mut self,
        _frames: Frames<'_, TimedCentralHook>,
        request: &EvictRequest,
        host: &mut H,
    ) -> u32 {
        self.start.evicting();
        self.advance(request.now);
        let (mut taken, mut steps) = (0, 0);
        let mut refused = Vec::new();
        while taken < request.frames && steps < request.steps_max {
            let Some((rate, list)) = self.worst() else { break };
            let Some(victim) = self.lists.front(list) else { break };
            steps += 1;
            match host.take(FrameId(victim)) {
                Ok((frame, page)) => {
                    match refused.iter().position(|other| *other == frame.0) {
                        Some(at) => drop(refused.swap_remove(at)),
                        None => self.unlink(frame.0),
                    }
                    self.least += (rate - self.least) / VICTIMS;
                    let past = self.went(frame.0);
                    self.remember(page, past);
                    taken += 1;
                }
                Err(_why) => {
                    self.unlink(victim);
                    refused.push(victim);
                }
            }
        }
        refused.into_iter().for_each(|frame| self.link(frame));
        taken
    }

    fn forget(&mut self, _frames: Frames<'_, TimedCentralHook>, frame: FrameId) {
        if self.pages[frame.index()].is_resident {
            self.unlink(frame.0);
            self.went(frame.0);
        }
    }

    #[inline(always)]
    fn cleaned(&mut self, _frames: Frames<'_, TimedCentralHook>, frame: FrameId) {
        let past = self.pages[frame.index()];
        if past.is_resident && past.is_dirty {
            self.count_dirty(&past, true);
            self.unlink(frame.0);
            self.pages[frame.index()].is_dirty = false;
            self.link(frame.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::{Mark, Reason};

    use super::*;
    use crate::testing::{TestPool, survives_everything};

    fn written(reason: Reason) -> Mark {
        Mark::WRITE.with_reason(reason)
    }

    /// Returns the late hits of pages 0 to 9, which are read a while after each write, among pages
    /// that are read once.
    fn hits_among_scans(price: f64) -> usize {
        let mut pool = TestPool::<TideIo>::of(&format!("tide-io(price={price})"), 20);
        let mut found = 0;
        for round in 0..400u64 {
            (0..10).for_each(|page| {
                pool.access(page, written(Reason::Replace), 0);
            });
            let scan = 1_000 + round * 20;
            (scan..scan + 20).for_each(|page| {
                pool.reference(page);
            });
            let hits = (0..10).filter(|page| pool.reference(*page)).count();
            found += if round >= 300 { hits } else { 0 };
        }
        found
    }

    #[test]
    fn what_is_read_after_its_write_stays_and_scans_pass_by() {
        let found = hits_among_scans(1.0);
        assert!(found > 900, "{found} of 1000");
    }

    #[test]
    fn pages_that_are_only_written_stay_for_what_a_write_costs() {
        // Ten pages are written again and again, twenty are read in turn: all in a pool of twelve.
        let rewrites = |price: f64| {
            let mut pool = TestPool::<TideIo>::of(&format!("tide-io(price={price})"), 12);
            let (mut found, mut read) = (0, 0);
            for round in 0..2_000u64 {
                let (write, reads) = (round % 10, [100 + round % 20, 100 + (round + 7) % 20]);
                let hit = pool.access(write, written(Reason::Recov), 0);
                let hits = reads.into_iter().filter(|page| pool.reference(*page)).count();
                if round >= 1_000 {
                    found += usize::from(hit);
                    read += hits;
                }
            }
            (found, read)
        };
        let (free, dear) = (rewrites(0.0), rewrites(100.0));
        assert!(dear.0 > 900, "{dear:?} where writes are dear");
        assert!(free.0 < 100 && free.1 > dear.1, "{free:?} where they are free, {dear:?} else");
    }

    #[test]
    fn pages_whose_time_has_passed_are_given_up() {
        let mut pool = TestPool::<TideIo>::of("tide-io", 20);
        for round in 0..300u64 {
            (0..10).for_each(|page| {
                pool.access(page, written(Reason::Replace), 0);
            });
            (1_000 + round * 10..1_010 + round * 10).for_each(|page| {
                pool.reference(page);
            });
            (0..10).for_each(|page| {
                pool.reference(page);
            });
        }
        (0..10).for_each(|page| {
            pool.access(page, written(Reason::Replace), 0);
        });
        // Nobody reads them any more; other pages are read soon after their writes.
        for round in 0..60u64 {
            let pages = 20 + round % 2 * 10..30 + round % 2 * 10;
            pages.clone().for_each(|page| {
                pool.access(page, written(Reason::Replace), 0);
            });
            pages.for_each(|page| {
                pool.reference(page);
            });
        }
        let left = pool.pages().into_iter().filter(|page| *page < 10).count();
        assert_eq!(left, 0, "{:?}", pool.pages());
    }

    #[test]
    fn refusals_drops_and_tiny_pools_keep_the_invariants() {
        survives_everything::<TideIo>("tide-io");
        survives_everything::<TideIo>("tide-io(price=0)");
        survives_everything::<TideIo<WithoutHints>>("tide-io");
        survives_everything::<TideIo<WithoutAges>>("tide-io");
    }
}
