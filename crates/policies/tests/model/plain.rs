//! A host that refuses nothing: demand paging, one frame at a time, as the simulator does it.

use std::collections::HashMap;

use millpond_base::{FrameId, Mark, PageId};
use millpond_policies::contract::{
    Access, Cooled, EvictRequest, HitOn, Host, NEVER, OfferOutcome, PageState, RefusalReason,
    TickSource,
};

use super::subject::{Kind, Subject};

/// The outcome of one reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The page was there.
    Hit,
    /// The page was loaded into a free frame.
    Loaded,
    /// The page was loaded, and this other page went.
    Replaced(u64),
}

#[derive(Clone, Copy, Default)]
struct Held {
    page: Option<PageId>,
    dirty: bool,
    cooling: bool,
}

struct PlainHost {
    frames: Vec<Held>,
    taken: Vec<(FrameId, PageId)>,
}

impl Host for PlainHost {
    fn offer(&mut self, frame: FrameId) -> OfferOutcome {
        match self.frames[frame.index()].page {
            None => OfferOutcome::Refused(RefusalReason::Absent),
            Some(page) => {
                self.frames[frame.index()] = Held::default();
                self.taken.push((frame, page));
                OfferOutcome::Taken(page)
            }
        }
    }

    fn cool(&mut self, frame: FrameId) -> Cooled {
        let held = &mut self.frames[frame.index()];
        match held.page {
            None => Cooled::Refused(RefusalReason::Absent),
            Some(_) if held.cooling => Cooled::Refused(RefusalReason::Changed),
            Some(_) => {
                held.cooling = true;
                Cooled::Yes
            }
        }
    }

    fn state(&self, frame: FrameId) -> PageState {
        if self.frames[frame.index()].dirty { PageState::Dirty } else { PageState::Clean }
    }
}

/// `len` references to `pages` pages: a skewed choice whose centre moves, a loop, a scan, and
/// immediate repetitions, in turns; three in ten write.
pub fn mixed_trace(seed: u64, len: usize, pages: u64) -> Vec<(u64, Mark)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut trace, mut last) = (Vec::new(), 0);
    while trace.len() < len {
        let (phase, start) = (random.u32(..4), random.u64(..pages));
        let (length, span) = (random.usize(1..60), random.u64(1..=pages));
        for i in 0..length as u64 {
            let page = match phase {
                0 => (start + (random.f64().powi(4) * pages as f64) as u64) % pages,
                1 => (start + i % span.min(12)) % pages,
                2 => (start + i) % pages,
                _ => (random.f64().powi(3) * pages as f64) as u64,
            };
            let page = if random.u32(..8) == 0 { last } else { page };
            last = page;
            trace.push((page, if random.u32(..10) < 3 { Mark::WRITE } else { Mark::READ }));
        }
    }
    trace.truncate(len);
    trace
}

/// The positions of each reference's page's next reference and next read.
fn future_of(trace: &[(u64, Mark)]) -> Vec<(u64, u64)> {
    let mut seen: HashMap<u64, (u64, u64)> = HashMap::new();
    let mut future = vec![(NEVER, NEVER); trace.len()];
    for (i, (page, mark)) in trace.iter().enumerate().rev() {
        let next = seen.entry(*page).or_insert((NEVER, NEVER));
        future[i] = *next;
        *next = (i as u64, if mark.is_write() { next.1 } else { i as u64 });
    }
    future
}

/// Runs `trace` through `subject`, as the simulator would.
pub fn run_plain(
    kind: &Kind,
    subject: &mut dyn Subject,
    frames: u32,
    trace: &[(u64, Mark)],
) -> Vec<Outcome> {
    let mut host = PlainHost { frames: vec![Held::default(); frames as usize], taken: Vec::new() };
    let (mut table, mut free) = (HashMap::new(), (0..frames).rev().collect::<Vec<u32>>());
    let (hit_on, future) = (subject.hit_on(), future_of(trace));
    let (mut now, mut until_tick) = (0u32, subject.evictions_per_tick().max(1));
    let mut outcomes = Vec::new();
    for (&(page, mark), &(next, next_read)) in trace.iter().zip(&future) {
        now = now.wrapping_add(u32::from(kind.tick == TickSource::PerAccess));
        let (next, next_read) = if kind.needs_future { (next, next_read) } else { (0, 0) };
        let mut access = Access { page: PageId(page), mark, now, next, next_read };
        if let Some(&frame) = table.get(&page) {
            let held = &mut host.frames[FrameId(frame).index()];
            held.dirty |= mark.is_write();
            if std::mem::take(&mut held.cooling) {
                subject.revive(FrameId(frame));
            }
            subject.hit(FrameId(frame), &access);
            if hit_on == HitOn::Both {
                subject.hit(FrameId(frame), &access);
            }
            outcomes.push(Outcome::Hit);
            continue;
        }
        let ghost_hit = subject.miss(&access);
        let mut outcome = Outcome::Loaded;
        if free.is_empty() {
            let steps_max = (4 * frames).max(1 << 16);
            let incoming = Some((PageId(page), ghost_hit));
            let said =
                subject.evict(&EvictRequest { frames: 1, steps_max, now, incoming }, &mut host);
            let (frame, victim) = host.taken.pop().expect("no victim where nothing is refused");
            assert_eq!((said, host.taken.len()), (1, 0));
            table.remove(&victim.0);
            free.push(frame.0);
            outcome = Outcome::Replaced(victim.0);
            if kind.tick == TickSource::PerEviction {
                until_tick -= 1;
                if until_tick == 0 {
                    (now, until_tick) = (now.wrapping_add(1), subject.evictions_per_tick().max(1));
                }
            }
        }
        let frame = free.pop().expect("a frame is free now");
        table.insert(page, frame);
        let held = Held { page: Some(PageId(page)), dirty: mark.is_write(), cooling: false };
        host.frames[FrameId(frame).index()] = held;
        access.now = now;
        subject.load(FrameId(frame), &access, ghost_hit);
        if hit_on != HitOn::Fix {
            subject.hit(FrameId(frame), &access);
        }
        outcomes.push(outcome);
    }
    outcomes
}
