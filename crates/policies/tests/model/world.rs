//! The model pool at work: it carries out operations and blames the policy for what it does wrong.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use millpond_base::{FrameId, Mark, PageId, Tick};
use millpond_policies::contract::{
    Access, EvictRequest, GhostHit, HitOn, Host, NEVER, Shape, TickSource,
};

use super::bytes::{Case, Op};
use super::host::{Frame, ModelHost};
use super::subject::Subject;

/// A load in flight.
struct Load {
    frame: FrameId,
    access: Access,
    ghost_hit: GhostHit,
}

/// A policy and its pool.
pub struct World<'a> {
    case: &'a Case,
    pub subject: Box<dyn Subject>,
    pub host: ModelHost,
    hit_on: HitOn,
    table: HashMap<PageId, FrameId>,
    free: Vec<FrameId>,
    fresh: u32,
    loads: Vec<Load>,
    /// Fixed frames with the access that fixed them, one entry for each pin.
    fixed: Vec<(FrameId, Access)>,
    now: Tick,
    until_tick: u32,
    position: usize,
    /// Of each reference: the positions of its page's next reference and next read.
    future: Vec<(u64, u64)>,
    /// References that hit.
    pub hits: u64,
    /// Pages evicted, in order.
    pub victims: Vec<PageId>,
    /// `true` if every step is followed by `check()`.
    pub checks: bool,
}

/// Carries out `ops` and empties the pool; returns the log of all calls and their results, or what
/// the policy did wrong, a panic included.
pub fn drive(case: &Case, ops: &[Op]) -> Result<u64, String> {
    let run = || -> Result<u64, String> {
        let mut world = World::new(case, ops);
        for (i, op) in ops.iter().enumerate() {
            world.step(op).map_err(|e| format!("operation {i}, {op:?}: {e}"))?;
        }
        world.drain().map_err(|e| format!("emptying the pool: {e}"))?;
        Ok(world.host.log)
    };
    quietly(|| catch_unwind(AssertUnwindSafe(run))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `run` with its panics unprinted: they are caught and reported, shrunk, at the end.
fn quietly<T>(run: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
    QUIET.set(true);
    let result = run();
    QUIET.set(false);
    result
}

impl<'a> World<'a> {
    pub fn new(case: &'a Case, ops: &[Op]) -> World<'a> {
        let pages_dense = case.dense.then_some(u64::from(case.pages()));
        let shape = Shape { frames: case.frames, pages_dense, seed: case.seed };
        let subject = case.kind.make(&case.spec, &shape);
        let absent = case.kind.may_offer_absent();
        World {
            hit_on: subject.hit_on(),
            until_tick: subject.evictions_per_tick().max(1),
            host: ModelHost::new(case.frames, case.takes_dirty, absent, case.seed),
            case,
            subject,
            table: HashMap::new(),
            free: Vec::new(),
            fresh: 0,
            loads: Vec::new(),
            fixed: Vec::new(),
            now: 0,
            position: 0,
            future: future_of(ops),
            hits: 0,
            victims: Vec::new(),
            checks: true,
        }
    }

    /// Ids are dense, or far apart and beyond 32 bits.
    fn page_id(&self, page: u32) -> PageId {
        let far = u64::from(page).wrapping_mul(0xffff_ffff_0000_1001);
        PageId(if self.case.dense { u64::from(page) } else { far })
    }

    /// Carries out one operation.
    pub fn step(&mut self, op: &Op) -> Result<(), String> {
        match *op {
            Op::Reference { page, mark } => {
                if let Some((frame, access)) = self.reference(page, mark, false)? {
                    self.unfix(frame, &access);
                }
            }
            Op::Fix { page, mark } => {
                if let Some((frame, access)) = self.reference(page, mark, false)? {
                    self.host.frames[frame.index()].pins += 1;
                    self.fixed.push((frame, access));
                }
            }
            Op::StartLoad { page, mark } => {
                if let Some((frame, access)) = self.reference(page, mark, true)? {
                    self.unfix(frame, &access);
                }
            }
            Op::EndLoad { which, fails } if !self.loads.is_empty() => {
                self.end_load(usize::from(which) % self.loads.len(), fails);
            }
            Op::Unfix { which } if !self.fixed.is_empty() => {
                self.unfix_one(usize::from(which) % self.fixed.len());
            }
            Op::UnfixAll => {
                while !self.fixed.is_empty() {
                    self.unfix_one(0);
                }
            }
            Op::Forget { frame } => self.drop_page(u32::from(frame) % self.case.frames),
            Op::Evict { frames, steps, latched } => {
                self.evict_ahead(u32::from(frames), u32::from(steps), latched)?;
            }
            Op::EndWrites => self.end_writes(),
            Op::Trouble { changes, vanishes } => {
                (self.host.changes, self.host.vanishes) = (changes, vanishes);
            }
            _ => self.arrange(op),
        }
        self.check()
    }

    /// Operations of which the policy is not notified, but for a page that was cleaned.
    fn arrange(&mut self, op: &Op) {
        let at = |frame: u8| u32::from(frame) % self.case.frames;
        match *op {
            Op::Clean { frame } => {
                let frame = FrameId(at(frame));
                let held = &mut self.host.frames[frame.index()];
                if held.is_resident() && held.dirty {
                    (held.dirty, held.writing) = (false, false);
                    self.subject.cleaned(frame);
                }
            }
            Op::Swizzle { child, parent } => self.swizzle(at(child), at(parent)),
            Op::Unswizzle { child } => self.host.unswizzle(at(child)),
            Op::Permanent { frame } => {
                let permanent = self.host.frames.iter().filter(|f| f.permanent).count() as u32;
                let held = &mut self.host.frames[at(frame) as usize];
                held.permanent |= held.is_resident() && permanent < self.case.frames / 4;
            }
            _ => {}
        }
    }

    fn check(&mut self) -> Result<(), String> {
        if let Some(fault) = self.host.fault.take() {
            return Err(fault);
        }
        if !self.checks {
            return Ok(());
        }
        self.subject.check(&self.host.resident()).map_err(|e| format!("check(): {e}"))
    }

    /// References a page. Says in which frame it is now, unless it was passed by or is in flight.
    fn reference(
        &mut self,
        page: u32,
        mark: Mark,
        stays_in_flight: bool,
    ) -> Result<Option<(FrameId, Access)>, String> {
        if self.case.kind.tick == TickSource::PerAccess {
            self.now = self.now.wrapping_add(1);
        }
        let known = self.case.kind.needs_future;
        let (next, next_read) = if known { self.future[self.position] } else { (0, 0) };
        self.position += 1;
        let access = Access { page: self.page_id(page), mark, now: self.now, next, next_read };
        if let Some(load) = self.loads.iter().position(|l| l.access.page == access.page) {
            self.end_load(load, false);
        }
        if let Some(&frame) = self.table.get(&access.page) {
            self.hit(frame, &access);
            return Ok(Some((frame, access)));
        }
        if self.case.bypasses && !self.subject.wants(&access) {
            self.host.note(5);
            return Ok(None);
        }
        let ghost_hit = self.subject.miss(&access);
        self.host.note(u64::from(ghost_hit.0) << 8 | 6);
        let frame = self.free_frame(&access, ghost_hit)?;
        self.host.frames[frame.index()] =
            Frame { page: Some(access.page), loading: true, ..Frame::default() };
        let access = Access { now: self.now, ..access };
        self.loads.push(Load { frame, access, ghost_hit });
        if stays_in_flight {
            return Ok(None);
        }
        self.end_load(self.loads.len() - 1, false);
        Ok(Some((frame, access)))
    }

    fn hit(&mut self, frame: FrameId, access: &Access) {
        self.hits += 1;
        let held = &mut self.host.frames[frame.index()];
        held.dirty |= access.mark.is_write();
        if std::mem::take(&mut held.cooling) {
            self.subject.revive(frame);
        }
        if self.hit_on != HitOn::Unfix {
            self.subject.hit(frame, access);
        }
    }

    /// The end of an access.
    fn unfix(&mut self, frame: FrameId, access: &Access) {
        if self.hit_on != HitOn::Fix {
            self.subject.hit(frame, access);
        }
    }

    fn unfix_one(&mut self, which: usize) {
        let (frame, access) = self.fixed.swap_remove(which);
        self.host.frames[frame.index()].pins -= 1;
        self.unfix(frame, &access);
    }

    fn end_load(&mut self, which: usize, fails: bool) {
        let Load { frame, access, ghost_hit } = self.loads.swap_remove(which);
        let held = &mut self.host.frames[frame.index()];
        if fails {
            *held = Frame::default();
            self.free.push(frame);
            return;
        }
        (held.loading, held.dirty) = (false, access.mark.is_write());
        self.table.insert(access.page, frame);
        self.subject.load(frame, &Access { now: self.now, ..access }, ghost_hit);
    }

    /// A frame for a page that missed: a free one, or one that the policy gives up.
    fn free_frame(&mut self, access: &Access, ghost_hit: GhostHit) -> Result<FrameId, String> {
        for attempt in 0..4 {
            if self.fresh < self.case.frames {
                self.fresh += 1;
                return Ok(FrameId(self.fresh - 1));
            }
            if let Some(frame) = self.free.pop() {
                return Ok(frame);
            }
            if !self.host.has_takeable() {
                self.relent(attempt);
            } else {
                self.evict_surely(1 + access.page.0 as u32 % 3, Some((access.page, ghost_hit)))?;
            }
        }
        Err("the model itself found no frame".to_string())
    }

    /// Gives way, because no frame can go: more and more at each attempt.
    fn relent(&mut self, attempt: u32) {
        self.end_writes();
        while !self.fixed.is_empty() {
            self.unfix_one(0);
        }
        if attempt > 0 {
            // Permanent pages and loads in flight hold all frames: a load fails, or a page is
            // dropped after all.
            if !self.loads.is_empty() {
                self.end_load(0, true);
            } else if let Some(frame) = (0..self.case.frames).find(|f| self.can_drop(*f)) {
                self.drop_page(frame);
            }
        }
    }

    /// Evicts at least one frame: there is one that can be evicted, so the policy must find it, the
    /// sooner the fewer frames are refused.
    fn evict_surely(
        &mut self,
        frames: u32,
        incoming: Option<(PageId, GhostHit)>,
    ) -> Result<(), String> {
        let (changes, vanishes) = (self.host.changes, self.host.vanishes);
        let pool = self.case.frames;
        let attempts = [(frames, 2 * pool + 16), (1, 64 * pool + 256), (1, 1 << 16), (1, 1 << 22)];
        for (frames, steps_max) in attempts {
            if self.evict(frames, steps_max, incoming)? > 0 || !self.host.has_takeable() {
                (self.host.changes, self.host.vanishes) = (changes, vanishes);
                return Ok(());
            }
            (self.host.changes, self.host.vanishes) = (0, 0);
        }
        let stuck: Vec<String> = self.host.frames.iter().map(|f| format!("{f:?}")).collect();
        Err(format!("no victim within 2^22 steps, though one can go:\n  {}", stuck.join("\n  ")))
    }

    fn evict_ahead(&mut self, frames: u32, steps: u32, latched: u8) -> Result<(), String> {
        for (i, frame) in self.host.frames.iter_mut().enumerate() {
            frame.latched = frame.is_resident() && i % 8 == usize::from(latched) % 16;
        }
        self.evict(frames.min(self.case.frames), 1 + steps, None)?;
        self.host.frames.iter_mut().for_each(|f| f.latched = false);
        Ok(())
    }

    /// One call of the policy's `evict`, with all that it must not do.
    fn evict(
        &mut self,
        frames: u32,
        steps_max: u32,
        incoming: Option<(PageId, GhostHit)>,
    ) -> Result<u32, String> {
        let request = EvictRequest { frames, steps_max, now: self.now, incoming };
        self.host.begin();
        let said = self.subject.evict(&request, &mut self.host);
        let taken = self.host.taken.clone();
        for frame in &taken {
            let left = self.table.iter().find(|(_, f)| *f == frame).map(|(page, _)| *page);
            self.table.remove(&left.ok_or("the model lost a page")?);
            self.victims.extend(left);
            self.free.push(*frame);
        }
        for frame in self.host.revived.clone() {
            // What left or cools again by now needs no reviving.
            let held = &self.host.frames[frame.index()];
            if held.is_resident() && !held.vanished && !held.cooling && !taken.contains(&frame) {
                self.subject.revive(frame);
            }
        }
        for frame in self.host.vanished.clone() {
            self.host.frames[frame.index()].vanished = false;
            self.drop_page(frame.0);
        }
        if let Some(fault) = self.host.fault.take() {
            return Err(fault);
        }
        self.tick(taken.len() as u32);
        if said as usize != taken.len() || said > frames {
            return Err(format!("said {said} of {frames} were taken, it was {}", taken.len()));
        }
        let (offers, coolings, most) = (self.host.offers, self.host.coolings, u64::from(steps_max));
        if offers > most || coolings > 2 * most {
            return Err(format!("{offers} offers, {coolings} coolings in {most} steps"));
        }
        self.check()?;
        Ok(said)
    }

    fn tick(&mut self, evicted: u32) {
        if self.case.kind.tick != TickSource::PerEviction {
            return;
        }
        for _ in 0..evicted {
            self.until_tick -= 1;
            if self.until_tick == 0 {
                self.until_tick = self.subject.evictions_per_tick().max(1);
                self.now = self.now.wrapping_add(1);
            }
        }
    }

    fn can_drop(&self, frame: u32) -> bool {
        let held = &self.host.frames[frame as usize];
        held.is_resident() && held.pins == 0 && held.children.is_empty()
    }

    /// The page in `frame` is dropped, if it is not pinned.
    fn drop_page(&mut self, frame: u32) {
        if !self.can_drop(frame) {
            return;
        }
        if let Some(page) = self.host.frames[frame as usize].page {
            self.table.remove(&page);
        }
        self.host.clear(frame);
        self.free.push(FrameId(frame));
        self.subject.forget(FrameId(frame));
    }

    fn end_writes(&mut self) {
        for frame in self.host.resident() {
            let held = &mut self.host.frames[frame.index()];
            if std::mem::take(&mut held.writing) {
                held.dirty = false;
                self.subject.cleaned(frame);
            }
        }
    }

    fn swizzle(&mut self, child: u32, parent: u32) {
        let frames = &mut self.host.frames;
        let mut above = Some(parent);
        while let Some(frame) = above {
            if frame == child {
                return;
            }
            above = frames[frame as usize].parent;
        }
        let both = frames[child as usize].is_resident() && frames[parent as usize].is_resident();
        // A hot child under a cooling parent cannot be.
        let parent_cools = frames[parent as usize].cooling;
        if both && !parent_cools && frames[child as usize].parent.is_none() {
            frames[child as usize].parent = Some(parent);
            frames[parent as usize].children.push(child);
        }
    }

    /// Nothing is refused any more: every page must be evicted, and none may be lost.
    pub fn drain(&mut self) -> Result<(), String> {
        self.step(&Op::UnfixAll)?;
        (self.host.changes, self.host.vanishes) = (0, 0);
        while !self.loads.is_empty() {
            self.end_load(0, false);
        }
        self.check()?;
        for frame in 0..self.case.frames {
            if self.host.frames[frame as usize].permanent {
                self.host.unswizzle(frame);
                for child in self.host.frames[frame as usize].children.clone() {
                    self.host.unswizzle(child);
                }
                self.drop_page(frame);
            }
        }
        while !self.host.resident().is_empty() {
            self.step(&Op::EndWrites)?;
            for frame in self.host.resident() {
                self.step(&Op::Clean { frame: frame.0 as u8 })?;
            }
            self.evict_surely(3, None)?;
        }
        let free = self.free.len() + (self.case.frames - self.fresh) as usize;
        if free != self.case.frames as usize {
            return Err(format!("{free} of {} frames are free at the end", self.case.frames));
        }
        Ok(())
    }
}

/// Positions of the next reference and of the next read of each reference's page.
fn future_of(ops: &[Op]) -> Vec<(u64, u64)> {
    let references: Vec<(u32, Mark)> = ops
        .iter()
        .filter_map(|op| match *op {
            Op::Reference { page, mark }
            | Op::Fix { page, mark }
            | Op::StartLoad { page, mark } => Some((page, mark)),
            _ => None,
        })
        .collect();
    let mut next: HashMap<u32, (u64, u64)> = HashMap::new();
    let mut future = vec![(NEVER, NEVER); references.len()];
    for (i, (page, mark)) in references.iter().enumerate().rev() {
        let seen = next.entry(*page).or_insert((NEVER, NEVER));
        future[i] = *seen;
        *seen = (i as u64, if mark.is_write() { seen.1 } else { i as u64 });
    }
    future
}
