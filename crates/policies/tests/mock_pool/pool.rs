//! The pool: table, frames, free list, policy host. A page is loaded once however many threads ask.

use millpond_base::sync::atomic::Ordering::SeqCst;
use std::collections::HashMap;

use millpond_base::sync::atomic::{AtomicU32, AtomicU64};
use millpond_base::sync::{Mutex, thread};
use millpond_base::{FrameId, Mark, PageId};
use millpond_policies::contract::{Access, EvictRequest, Frames, Hit, HitHook, HitOn, TickSource};

use super::header::{Header, NO_PAGE};
use super::host::LiveHost;
use super::policy_host::{PolicyHost, Told};

/// Pages form a tree: page `p`'s parent is `p / FAN_OUT`. Page 0, the root, is permanent.
const FAN_OUT: u64 = 4;

/// Tries before a thread gives up for good: far more than any schedule needs.
const TRIES_MAX: u32 = 200_000;

/// The place of a page according to the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TableEntry {
    Loading,
    In(FrameId),
}

/// The parts of a pool.
pub struct Setup<T: HitHook> {
    pub frames: u32,
    pub params: T::Params,
    pub policy_host: PolicyHost<T>,
}

/// The pool.
pub struct Pool<T: HitHook> {
    pub headers: Vec<Header>,
    metas: Vec<T::Meta>,
    params: T::Params,
    pub policy_host: PolicyHost<T>,
    hit_on: HitOn,
    table: Mutex<HashMap<u64, TableEntry>>,
    free: Mutex<Vec<FrameId>>,
    now: AtomicU32,
    evictions: AtomicU64,
    evictions_per_tick: u64,
}

/// The retry loop's end: nothing the schedule does can make a correct policy wait so long.
fn stalled(what: &str) -> ! {
    panic!("{what}: still not after {TRIES_MAX} tries");
}

impl<T: HitHook> Pool<T> {
    pub fn new(setup: Setup<T>) -> Pool<T> {
        let Setup { frames, params, policy_host } = setup;
        let mut metas = Vec::new();
        metas.resize_with(frames as usize, Default::default);
        let headers: Vec<Header> = (0..frames).map(|_| Header::default()).collect();
        headers.iter().for_each(|h| h.page.store(NO_PAGE, SeqCst));
        Pool {
            headers,
            metas,
            params,
            hit_on: policy_host.hit_on(),
            evictions_per_tick: u64::from(policy_host.evictions_per_tick()),
            policy_host,
            table: Mutex::new(HashMap::new()),
            free: Mutex::new((0..frames).rev().map(FrameId).collect()),
            now: AtomicU32::new(0),
            evictions: AtomicU64::new(0),
        }
    }

    pub fn frames(&self) -> Frames<'_, T> {
        Frames::of(&self.metas)
    }

    fn access(&self, page: u64, mark: Mark, advance: bool) -> Access {
        let now = match T::TICK {
            TickSource::None => 0,
            TickSource::PerAccess if advance => self.now.fetch_add(1, SeqCst).wrapping_add(1),
            TickSource::PerAccess | TickSource::PerEviction => self.now.load(SeqCst),
        };
        Access { page: PageId(page), mark, now, next: 0, next_read: 0 }
    }

    fn find(&self, page: u64) -> Option<TableEntry> {
        self.table.lock().expect("no thread panicked").get(&page).copied()
    }

    /// References `page`, loading it if need be. A write fixes it, a read is optimistic.
    pub fn reference(&self, page: u64, mark: Mark, ring: &mut Vec<Told>) {
        let access = self.access(page, mark, true);
        for _ in 0..TRIES_MAX {
            let place = {
                let mut table = self.table.lock().expect("no thread panicked");
                let place = table.get(&page).copied();
                if place.is_none() {
                    table.insert(page, TableEntry::Loading);
                }
                place
            };
            let done = match place {
                None => {
                    self.load(&access);
                    true
                }
                Some(TableEntry::Loading) => false,
                Some(TableEntry::In(frame)) if mark.is_write() => self.write(frame, &access, ring),
                Some(TableEntry::In(frame)) => self.read(frame, &access, ring),
            };
            if done {
                return;
            }
            thread::yield_now();
        }
        stalled("a page could not be had");
    }

    /// An optimistic read: nothing keeps the frame from changing while the hot half is touched.
    fn read(&self, frame: FrameId, access: &Access, ring: &mut Vec<Told>) -> bool {
        let header = &self.headers[frame.index()];
        let Some(version) = header.version() else { return false };
        if header.page.load(SeqCst) != access.page.0 {
            return false;
        }
        let Some(version) = self.warm(frame, version) else { return false };
        self.touched(frame, version, access, ring);
        true
    }

    /// A write: fixed meanwhile, so that the page cannot go.
    fn write(&self, frame: FrameId, access: &Access, ring: &mut Vec<Told>) -> bool {
        let header = &self.headers[frame.index()];
        let Some(version) = header.version() else { return false };
        header.pins.fetch_add(1, SeqCst);
        let is_ours = header.is_still(version) && header.page.load(SeqCst) == access.page.0;
        let warmed = if is_ours { self.warm(frame, version) } else { None };
        if let Some(version) = warmed {
            header.dirty.store(true, SeqCst);
            self.touched(frame, version, access, ring);
            thread::yield_now();
            let page = header.page.load(SeqCst);
            assert_eq!(page, access.page.0, "the page in a fixed frame was replaced");
            assert!(header.resident.load(SeqCst), "a fixed page went");
        }
        header.pins.fetch_sub(1, SeqCst);
        warmed.is_some()
    }

    /// Makes a cooling frame hot again. Says its version then, or None if it changed meanwhile.
    fn warm(&self, frame: FrameId, version: u64) -> Option<u64> {
        let header = &self.headers[frame.index()];
        if !T::COOLS || !header.cooling.load(SeqCst) {
            return Some(version);
        }
        let latched = header.latch_at(version)?;
        // A frame that cools again before the latch is acquired needs no reviving.
        header.cooling.store(false, SeqCst);
        let version = latched.changed();
        let still = || header.is_still(version) && !header.cooling.load(SeqCst);
        self.policy_host.revive(self.frames(), frame, still);
        Some(version)
    }

    fn touched(&self, frame: FrameId, version: u64, access: &Access, ring: &mut Vec<Told>) {
        let times = if self.hit_on == HitOn::Both { 2 } else { 1 };
        for _ in 0..times {
            if T::HIT != Hit::Nothing {
                T::on_hit(self.frames().meta(frame), &self.params, access);
            }
            if T::HIT == Hit::Central {
                let still = |f: FrameId, v: u64| self.headers[f.index()].is_still(v);
                self.policy_host.hit(self.frames(), (frame, version, *access), ring, still);
            }
        }
    }

    /// Delivers the hits that a thread still buffers.
    pub fn drain(&self, ring: &mut Vec<Told>) {
        let still = |f: FrameId, v: u64| self.headers[f.index()].is_still(v);
        self.policy_host.drain(self.frames(), ring, still);
    }

    fn load(&self, access: &Access) {
        let ghost_hit = self.policy_host.miss(access);
        let frame = self.free_frame(Some((access.page, ghost_hit)));
        let header = &self.headers[frame.index()];
        let mut tries = 0;
        let latched = loop {
            // A sampling evictor may hold the latch of a free frame for a moment.
            match header.try_latch() {
                Some(latched) => break latched,
                None if tries == TRIES_MAX => stalled("the latch of a free frame"),
                None => thread::yield_now(),
            }
            tries += 1;
        };
        assert!(!header.resident.load(SeqCst), "a free frame holds a page");
        assert!(header.children.lock().expect("no thread panicked").is_empty());
        header.page.store(access.page.0, SeqCst);
        header.dirty.store(access.mark.is_write(), SeqCst);
        header.writing.store(false, SeqCst);
        header.permanent.store(access.page.0 == 0, SeqCst);
        let access = &Access { now: self.access(access.page.0, access.mark, false).now, ..*access };
        T::reset(self.frames().meta(frame), &self.params, access);
        let publish = || header.resident.store(true, SeqCst);
        self.policy_host.admit(self.frames(), frame, access, ghost_hit, publish);
        self.swizzle(frame, access.page.0);
        // In the table before the latch is released: a thread that evicts the page must find it
        // there.
        let mut table = self.table.lock().expect("no thread panicked");
        table.insert(access.page.0, TableEntry::In(frame));
        drop(table);
        latched.changed();
    }

    /// Lets the parent, if it is there and hot, point to the page in `frame`, which is latched.
    fn swizzle(&self, frame: FrameId, page: u64) {
        if page == 0 {
            return;
        }
        let Some(TableEntry::In(above)) = self.find(page / FAN_OUT) else { return };
        let parent = &self.headers[above.index()];
        let Some(_latched) = parent.try_latch() else { return };
        let is_it = parent.page.load(SeqCst) == page / FAN_OUT && parent.resident.load(SeqCst);
        if is_it && !parent.cooling.load(SeqCst) {
            parent.children.lock().expect("no thread panicked").push(frame);
            self.headers[frame.index()].parent.store(above.0 + 1, SeqCst);
        }
    }

    /// Takes the page out of `frame`, which is latched and has no children. Says which it was.
    pub fn take_out(&self, frame: FrameId) -> u64 {
        let header = &self.headers[frame.index()];
        let parent = header.parent.swap(0, SeqCst);
        if parent > 0 {
            let above = &self.headers[parent as usize - 1];
            let mut children = above.children.lock().expect("no thread panicked");
            let at = children.iter().position(|c| *c == frame);
            children.swap_remove(at.expect("a parent knows its swizzled children"));
            assert!(above.resident.load(SeqCst), "a parent went before its child");
        }
        header.resident.store(false, SeqCst);
        header.cooling.store(false, SeqCst);
        header.permanent.store(false, SeqCst);
        header.dirty.store(false, SeqCst);
        let page = header.page.swap(NO_PAGE, SeqCst);
        let removed = self.table.lock().expect("no thread panicked").remove(&page);
        assert!(removed == Some(TableEntry::In(frame)), "page {page} was not where it was thought");
        page
    }

    fn free_frame(
        &self,
        incoming: Option<(PageId, millpond_policies::contract::GhostHit)>,
    ) -> FrameId {
        for _ in 0..TRIES_MAX {
            if let Some(frame) = self.free.lock().expect("no thread panicked").pop() {
                return frame;
            }
            if self.evict(1, incoming) == 0 {
                thread::yield_now();
            }
        }
        stalled("no victim");
    }

    pub fn free_frames(&self) -> usize {
        self.free.lock().expect("no thread panicked").len()
    }

    /// Evicts up to `frames` frames; begins and ends the writes that this takes.
    pub fn evict(
        &self,
        frames: u32,
        incoming: Option<(PageId, millpond_policies::contract::GhostHit)>,
    ) -> u32 {
        let now = self.access(0, Mark::READ, false).now;
        let steps_max = 4 * self.headers.len() as u32 + 64;
        let request = EvictRequest { frames, steps_max, now, incoming };
        let mut host = LiveHost { pool: self, taken: Vec::new(), writes: Vec::new() };
        let said = self.policy_host.evict(self.frames(), &request, &mut host);
        let LiveHost { taken, writes, .. } = host;
        assert_eq!(said as usize, taken.len(), "a policy must say how many were taken");
        assert!(said <= frames, "{said} taken, {frames} wanted");
        if T::TICK == TickSource::PerEviction {
            let before = self.evictions.fetch_add(u64::from(said), SeqCst);
            let each = self.evictions_per_tick;
            let ticks = (before + u64::from(said)) / each - before / each;
            self.now.fetch_add(ticks as u32, SeqCst);
        }
        self.free.lock().expect("no thread panicked").extend(taken);
        for frame in writes {
            self.end_write(frame);
        }
        said
    }

    /// The write of the page in `frame`, which was begun, has ended.
    fn end_write(&self, frame: FrameId) {
        let header = &self.headers[frame.index()];
        thread::yield_now();
        let version = loop {
            let Some(latched) = header.try_latch() else {
                thread::yield_now();
                continue;
            };
            if !header.writing.swap(false, SeqCst) || !header.resident.load(SeqCst) {
                return;
            }
            header.dirty.store(false, SeqCst);
            break latched.changed();
        };
        self.policy_host.cleaned(self.frames(), frame, || header.is_still(version));
    }

    /// Drops `page`, if it is resident and not pinned. The frame is free only after the policy has
    /// forgotten it.
    pub fn drop_page(&self, page: u64) {
        let Some(TableEntry::In(frame)) = self.find(page) else { return };
        let header = &self.headers[frame.index()];
        let Some(latched) = header.try_latch() else { return };
        let is_it = header.resident.load(SeqCst) && header.page.load(SeqCst) == page;
        let is_needed = header.pins.load(SeqCst) > 0
            || !header.children.lock().expect("no thread panicked").is_empty();
        if !is_it || is_needed {
            return;
        }
        self.take_out(frame);
        latched.changed();
        self.policy_host.forget(self.frames(), frame);
        self.free.lock().expect("no thread panicked").push(frame);
    }

    /// Verifies the pool while no thread is at work.
    pub fn check(&self) -> Result<(), String> {
        let table = self.table.lock().expect("no thread panicked").clone();
        let mut owners = vec![0u32; self.headers.len()];
        for (page, place) in &table {
            let TableEntry::In(frame) = place else { return Err(format!("{page} loads for ever")) };
            let header = &self.headers[frame.index()];
            if header.page.load(SeqCst) != *page || !header.resident.load(SeqCst) {
                return Err(format!("page {page} is not in frame {}", frame.0));
            }
            owners[frame.index()] += 1;
        }
        for frame in self.free.lock().expect("no thread panicked").iter() {
            owners[frame.index()] += 1;
        }
        if let Some(frame) = owners.iter().position(|n| *n != 1) {
            return Err(format!("frame {frame} is lost, or belongs to two"));
        }
        let mut resident: Vec<FrameId> = Vec::new();
        for (i, header) in self.headers.iter().enumerate() {
            for child in header.children.lock().expect("no thread panicked").iter() {
                let below = &self.headers[child.index()];
                if below.parent.load(SeqCst) != i as u32 + 1 || !below.resident.load(SeqCst) {
                    return Err(format!("frame {i} points to a child that is not its own"));
                }
            }
            if header.resident.load(SeqCst) {
                resident.push(FrameId(i as u32));
            }
        }
        self.policy_host.check(self.frames(), &resident)
    }

    /// Empties the pool: every page must be found, children first, the root last.
    pub fn empty(&self) {
        for _ in 0..TRIES_MAX {
            if self.free_frames() == self.headers.len() {
                return;
            }
            let only_root = self.free_frames() + 1 == self.headers.len();
            if only_root && self.find(0).is_some() {
                self.drop_page(0);
            } else {
                self.evict(2, None);
            }
        }
        stalled("the pool does not empty");
    }
}
