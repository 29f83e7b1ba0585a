//! One eviction by a sample's least value.

use millpond_base::FrameId;

use super::drawn::{Best, PASS, Pass};
use super::hunted::{Hunted, Plan};
use crate::contract::{EvictRequest, Frames, Host};

/// Frames examined together, so that their cache lines load together.
const BATCH: usize = 64;
/// Lines of the next pass to prefetch before each offer; a core would stall on more than it loads
/// at once.
const LINES_PER_OFFER: usize = 12;
/// State of one eviction: its inputs, its remaining steps, its results.
struct Hunt<'a, T: Hunted, H: ?Sized> {
    hunted: &'a T,
    plan: Plan,
    frames: Frames<'a, T::Hook>,
    host: &'a mut H,
    random: fastrand::Rng,
    steps_left: u32,
    wanted: u32,
    taken: u32,
    /// Last result of the host's `has_enough`.
    has_enough: bool,
    /// Frames of a sample with its candidates; 0 if they cannot be drawn ahead.
    pass: u32,
    /// Frames examined last, and their values.
    drawn: [u32; BATCH],
    values: [f32; BATCH],
}

impl<T: Hunted, H: Host + ?Sized> Hunt<'_, T, H> {
    /// Draws `count` frames at random, or takes those from `start` on. Their cache lines load
    /// together while each is valued, live or not.
    #[inline(always)]
    fn draw(&mut self, count: usize, start: Option<u32>) {
        let (frames, len) = (self.frames, self.frames.len());
        let drawn = &mut self.drawn[..count];
        for (i, frame) in (0..).zip(drawn.iter_mut()) {
            *frame = match start {
                Some(start) => start + i,
                None => self.random.u32(0..len),
            };
            frames.prefetch(FrameId(*frame));
        }
        let values = &mut self.values[..count];
        self.hunted.values(self.plan.now, values, |i| frames.meta(FrameId(drawn[i])));
    }

    /// Examines up to `count` frames, random ones or those from `start` on, until `each` has
    /// enough. `each` gets a frame, which may not be live, and its value.
    #[inline(always)]
    fn look(
        &mut self,
        count: u32,
        start: Option<u32>,
        mut each: impl FnMut(&mut Self, u32, f32) -> bool,
    ) {
        let count = count.min(self.steps_left);
        self.steps_left -= count;
        let mut done = 0;
        while done < count {
            let batch = (BATCH as u32).min(count - done);
            self.draw(batch as usize, start.map(|start| start + done));
            for i in 0..batch as usize {
                if each(self, self.drawn[i], self.values[i]) {
                    return;
                }
            }
            done += batch;
        }
    }

    #[inline(always)]
    fn is_live(&self, frame: u32) -> bool {
        T::is_live(self.frames.meta(FrameId(frame)))
    }

    #[inline(always)]
    fn sample(&mut self) -> Best {
        let mut best = Best::NONE;
        let len = self.frames.len();
        let start = (self.plan.sample >= len).then_some(0);
        self.look(self.plan.sample.min(len), start, |hunt, frame, value| {
            if hunt.is_live(frame) {
                best.add(value, frame);
            }
            false
        });
        best
    }

    /// Draws the frames of the next pass, unless they were drawn already. The generator keeps its
    /// state, since the frames may not be used.
    #[inline(always)]
    fn draw_ahead(&self, pass: &mut Pass) {
        let state = self.random.get_seed();
        if pass.len > 0 && pass.states[0] == state {
            return;
        }
        let (mut random, len) = (fastrand::Rng::with_seed(state), self.frames.len());
        let (sample, all) = (self.plan.sample as usize, self.pass as usize);
        for frame in &mut pass.frames[..sample] {
            *frame = random.u32(0..len);
        }
        let after_sample = random.get_seed();
        for frame in &mut pass.frames[sample..all] {
            *frame = random.u32(0..len);
        }
        pass.states = [state, after_sample, random.get_seed()];
        (pass.len, pass.unasked) = (all, 0);
    }

    /// Prefetches the next lines of `pass`.
    #[inline(always)]
    fn ask(&self, pass: &mut Pass, lines: usize) {
        let end = (pass.unasked + lines).min(pass.len);
        for frame in &pass.frames[pass.unasked.min(end)..end] {
            self.frames.prefetch(FrameId(*frame));
        }
        pass.unasked = end;
    }

    /// Draws a sample and candidates and offers those with values up to the sample's least. The
    /// result is that of [`Hunt::sample`] and [`Hunt::look`], but the next pass loads at the same
    /// time.
    #[inline(always)]
    fn pass(&mut self, passes: &mut [Pass; 2]) -> Best {
        let [pass, next] = passes;
        self.draw_ahead(pass);
        self.ask(pass, PASS);
        self.steps_left -= self.pass;
        let (frames, values) = (&pass.frames[..pass.len], &mut pass.values[..pass.len]);
        let lines = self.frames;
        self.hunted.values(self.plan.now, values, |i| lines.meta(FrameId(frames[i])));
        let mut best = Best::NONE;
        let sample = self.plan.sample as usize;
        for (frame, value) in frames[..sample].iter().zip(&values[..sample]) {
            if self.is_live(*frame) {
                best.add(*value, *frame);
            }
        }
        let state = if best.len > 0 { pass.states[2] } else { pass.states[1] };
        self.random = fastrand::Rng::with_seed(state);
        if best.len == 0 {
            self.steps_left += self.pass - self.plan.sample;
            return best;
        }
        let threshold = best.found[0].0;
        let mut chosen = [0u32; PASS];
        let mut count = 0;
        for (frame, value) in frames[sample..].iter().zip(&values[sample..]) {
            chosen[count] = *frame;
            count += usize::from(*value <= threshold);
        }
        self.draw_ahead(next);
        for (at, frame) in chosen[..count].iter().enumerate() {
            // Check that it is still live: it may have been drawn twice.
            if !self.is_live(*frame) {
                continue;
            }
            if let Some(soon) = chosen[..count].get(at + 2) {
                self.host.will_offer(FrameId(*soon));
            }
            self.ask(next, LINES_PER_OFFER);
            if self.offer(*frame) && self.taken == self.wanted || self.has_enough {
                break;
            }
        }
        passes.swap(0, 1);
        best
    }

    /// Offers `frame`; returns `true` if a frame was taken.
    #[inline(always)]
    fn offer(&mut self, frame: u32) -> bool {
        let meta = self.frames.meta(FrameId(frame));
        // The frame is hidden first: once it is taken, others may load a page into it at any time.
        let kept = T::vanish(meta);
        match self.host.take(FrameId(frame)) {
            Ok((went, _page)) => {
                if went.0 != frame {
                    T::stay(meta, kept, None);
                }
                self.taken += 1;
                return true;
            }
            // `Absent` may concern a child that must be evicted first, so it is no reason to forget
            // the frame.
            Err(why) => T::stay(meta, kept, Some(why)),
        }
        self.has_enough = self.host.has_enough();
        false
    }

    /// Offers every live frame once, from a random one on, until one is taken.
    #[cold]
    fn sweep(&mut self) -> bool {
        let len = self.frames.len();
        let start = self.random.u32(0..len);
        for at in 0..len {
            if self.steps_left == 0 {
                return false;
            }
            self.steps_left -= 1;
            let frame = ((u64::from(start) + u64::from(at)) % u64::from(len)) as u32;
            if self.is_live(frame) && (self.offer(frame) || self.has_enough) {
                return !self.has_enough;
            }
        }
        false
    }

    /// Examines a sample and, if more than one frame is wanted, candidates; returns the sample's
    /// best.
    #[inline(always)]
    fn step(&mut self, passes: &mut Option<[Pass; 2]>) -> Best {
        let is_last = self.wanted - self.taken <= 1;
        if let Some(passes) = passes
            && !is_last
            && self.steps_left >= self.pass
        {
            return self.pass(passes);
        }
        let best = self.sample();
        if !is_last && best.len > 0 {
            let threshold = best.found[0].0;
            self.look(self.plan.candidates, None, |hunt, frame, value| {
                // Check that it is still live: it may have been drawn twice.
                value <= threshold
                    && hunt.is_live(frame)
                    && (hunt.offer(frame) && hunt.taken == hunt.wanted || hunt.has_enough)
            });
        }
        best
    }

    #[inline(always)]
    fn run(&mut self, passes: &mut Option<[Pass; 2]>) -> u32 {
        let mut idle_from = self.steps_left;
        while self.taken < self.wanted && self.steps_left > 0 && !self.has_enough {
            let before = self.taken;
            let best = self.step(passes);
            if self.taken == before && !self.has_enough {
                let _ = best.found[..best.len]
                    .iter()
                    .any(|(_, frame)| self.offer(*frame) || self.has_enough);
            }
            if self.taken > before {
                idle_from = self.steps_left;
            } else if idle_from - self.steps_left >= self.frames.len() {
                if !self.sweep() {
                    break;
                }
                idle_from = self.steps_left;
            }
        }
        self.taken
    }
}

/// Returns the frames of a sample with its candidates, if they can be drawn ahead; else 0.
fn pass_of(plan: &Plan, request: &EvictRequest, frames: u32) -> u32 {
    let all = plan.sample + plan.candidates;
    let is_small = all as usize <= PASS && plan.sample < frames;
    if request.frames > 1 && is_small { all } else { 0 }
}

/// Evicts for `request`, with random numbers from `bits` on; returns the number of taken frames.
#[inline(always)]
pub fn hunt<T: Hunted, H: Host + ?Sized>(
    hunted: &T,
    plan: Plan,
    frames: Frames<'_, T::Hook>,
    request: &EvictRequest,
    host: &mut H,
) -> u32 {
    if frames.is_empty() {
        return 0;
    }
    let mut hunt = Hunt {
        hunted,
        frames,
        host,
        random: fastrand::Rng::with_seed(plan.bits),
        steps_left: request.steps_max,
        wanted: request.frames,
        taken: 0,
        has_enough: false,
        pass: pass_of(&plan, request, frames.len()),
        plan,
        drawn: [0; BATCH],
        values: [0.0; BATCH],
    };
    // A request for one frame, as in a simulator, pays for no draws ahead.
    let mut passes = (hunt.pass > 0).then_some([Pass::NONE, Pass::NONE]);
    let taken = hunt.run(&mut passes);
    let looked = request.steps_max - hunt.steps_left;
    hunt.host.count_examined(looked);
    taken
}
