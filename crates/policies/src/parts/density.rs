//! Frames by reference density: references / (now − load), whose order changes even without
//! references.
//!
//! A knock-out tournament over the frames. While neither of two frames is referenced, their order
//! changes at most once, at a moment that can be computed. Each match stores the first moment at
//! which its result, or one below it, is out of date, and only outdated matches are played again.
//! The final then gives exactly the result of a search of all frames: the least density, and among
//! equals the lowest frame.
//!
//! Hits do not touch the tournament, which knows a lower bound of each frame's references. A winner
//! with more references is corrected, which costs at most one walk up the tree per hit.
//!
//! Invariants: (1) the references known of a frame are no more than it has; (2) every match that is
//! not out of date names the less dense of its two winners.

use millpond_base::{FrameId, Tick};

use crate::contract::{EvictRequest, Host, RefusalReason};
use crate::zeroed::zeroed;

choice! {
    /// The method of finding the least dense frame; every method finds the same frame.
    pub enum Search {
        /// With the tournament.
        Tournament = "tournament",
        /// With a look at every frame, as in gilbert's algorithm 1.14.
        Linear = "linear",
    }
}

/// No frame takes part here.
const ABSENT: u32 = u32::MAX;
/// Counts of references above this are treated as equal, so that products fit.
const REFERENCES_MAX: u32 = (1 << 31) - 1;
/// Ages above this are treated as equal.
const AGE_MAX: u64 = (1 << 32) - 1;
/// Moment of a result that never changes.
const NEVER: u64 = u64::MAX;

/// A stored match, in complements, so that zeros are a match that nobody ever wins.
#[derive(Clone, Copy)]
struct Stored {
    not_until: u64,
    not_winner: u32,
}

zeros!(Stored { not_until, not_winner });

#[derive(Clone, Copy)]
struct Match {
    winner: u32,
    /// First moment at which this result or one below may be wrong.
    until: u64,
}

impl From<Match> for Stored {
    #[inline(always)]
    fn from(of: Match) -> Stored {
        Stored { not_until: !of.until, not_winner: !of.winner }
    }
}

impl From<Stored> for Match {
    #[inline(always)]
    fn from(of: Stored) -> Match {
        Match { winner: !of.not_winner, until: !of.not_until }
    }
}

/// One frame's entry in the tournament; zeros mean an absent frame.
#[derive(Clone, Copy)]
struct Entrant {
    loaded: u64,
    /// Complement of the references.
    not_references: u32,
}

zeros!(Entrant { loaded, not_references });

impl Entrant {
    #[inline(always)]
    fn references(self) -> u32 {
        !self.not_references
    }
}

/// The tournament.
pub struct Tournament {
    /// A heap-shaped tree: match `i` is between the winners of `2i` and `2i + 1`, and match 1 is
    /// the final. Frames are the leaves from `leaves` on, which are not stored.
    matches: Vec<Stored>,
    entrants: Vec<Entrant>,
    leaves: u32,
    search: Search,
    now: u64,
    /// Last tick received, and moment of the last load.
    tick: Tick,
    time: u64,
    last_load: u64,
    /// Frame that left while matches still name it. It may come back before they matter.
    gap: Option<u32>,
    refused: Vec<(u32, RefusalReason)>,
}

impl Tournament {
    /// Creates an empty tournament for frames below `frames`.
    pub fn new(frames: u32, search: Search) -> Tournament {
        let leaves = frames.max(2).next_power_of_two();
        Tournament {
            matches: zeroed(leaves as usize),
            entrants: zeroed(frames as usize),
            leaves,
            search,
            now: 0,
            tick: 0,
            time: 0,
            last_load: 0,
            gap: None,
            refused: Vec::new(),
        }
    }

    /// Returns `true` if `frame` takes part.
    #[inline(always)]
    pub fn has(&self, frame: u32) -> bool {
        self.references(frame) != ABSENT
    }

    /// Returns the known references of `frame`.
    #[inline(always)]
    pub fn references(&self, frame: u32) -> u32 {
        self.entrants[frame as usize].references()
    }

    /// Returns the moment at which the page of `frame` was loaded.
    #[inline(always)]
    pub fn loaded(&self, frame: u32) -> u64 {
        self.entrants[frame as usize].loaded
    }

    /// Returns the moment of tick `now`; ticks wrap, moments do not.
    #[inline(always)]
    pub fn moment(&mut self, now: Tick) -> u64 {
        let passed = now.wrapping_sub(self.tick);
        if passed < 1 << 31 {
            self.time += u64::from(passed);
            self.tick = now;
        }
        self.time
    }

    /// Enters the page that was loaded into `frame` now, with its references.
    #[inline]
    pub fn load(&mut self, frame: u32, references: u32, now: Tick) {
        let now = self.moment(now);
        self.last_load = now;
        self.enter(frame, references, now, now);
    }

    /// Enters `frame`, again or for the first time, with its references and load. `now` must not be
    /// before any moment received so far.
    #[inline]
    fn enter(&mut self, frame: u32, references: u32, loaded: u64, now: u64) {
        self.close_gap(Some(frame));
        self.advance(now);
        let not_references = !references.min(REFERENCES_MAX);
        self.entrants[frame as usize] = Entrant { loaded, not_references };
        self.replay(frame);
    }

    /// Removes `frame`.
    #[inline]
    pub fn leave(&mut self, frame: u32) {
        self.close_gap(Some(frame));
        self.entrants[frame as usize].not_references = !ABSENT;
        self.gap = Some(frame);
    }

    /// Plays the matches of the frame that left, unless it is `but`.
    #[inline(always)]
    fn close_gap(&mut self, but: Option<u32>) {
        if let Some(frame) = self.gap.take()
            && Some(frame) != but
        {
            self.replay(frame);
        }
    }

    /// Changes every entrant's references at once.
    pub fn revise(&mut self, mut references: impl FnMut(u32) -> u32) {
        for (frame, entrant) in self.entrants.iter_mut().enumerate() {
            if entrant.references() != ABSENT {
                entrant.not_references = !references(frame as u32).min(REFERENCES_MAX);
            }
        }
        self.gap = None;
        for at in (1..self.leaves).rev() {
            self.play(at);
        }
    }

    /// Returns the least dense frame by the known references. `now` must be after every load, since
    /// a page without age has no density.
    #[inline]
    fn least(&mut self, now: u64) -> Option<u32> {
        self.close_gap(None);
        self.advance(now);
        if self.search == Search::Linear {
            return self.scan();
        }
        let Match { winner, .. } = self.matches[1].into();
        (winner != ABSENT).then_some(winner)
    }

    /// Finds the least dense frame by a search of all frames.
    fn scan(&self) -> Option<u32> {
        let mut least = None;
        for frame in (0..self.entrants.len() as u32).filter(|&f| self.has(f)) {
            if least.is_none_or(|least| self.is_below(frame, least)) {
                least = Some(frame);
            }
        }
        least
    }

    /// Evicts by least density until `request` is met. `live` returns a frame's present references.
    /// `refused` changes those of a refused frame, which is not offered again in this call.
    pub fn evict<H: Host + ?Sized>(
        &mut self,
        request: &EvictRequest,
        host: &mut H,
        live: impl Fn(FrameId) -> u32,
        refused: impl Fn(FrameId, RefusalReason, u64),
    ) -> u32 {
        let now = self.moment(request.now).max(self.last_load + 1);
        let (mut taken, mut steps) = (0, 0);
        while taken < request.frames && steps < request.steps_max {
            let Some(offered) = self.least(now) else { break };
            steps += 1;
            let references = live(FrameId(offered)).min(REFERENCES_MAX);
            if references > self.references(offered) {
                self.enter(offered, references, self.loaded(offered), now);
                continue;
            }
            match host.take(FrameId(offered)) {
                Ok((FrameId(frame), _page)) => {
                    // A child that was refused before has been removed already.
                    if self.has(frame) {
                        self.leave(frame);
                    } else {
                        self.refused.retain(|&(f, _)| f != frame);
                    }
                    taken += 1;
                }
                Err(why) => {
                    self.leave(offered);
                    self.refused.push((offered, why));
                }
            }
        }
        while let Some((frame, why)) = self.refused.pop() {
            refused(FrameId(frame), why, now);
            self.enter(frame, live(FrameId(frame)), self.loaded(frame), now);
        }
        taken
    }

    /// Returns `true` if `a` is less dense than `b` now: a/(now − a₀) < b/(now − b₀), without
    /// division.
    #[inline(always)]
    fn is_below(&self, a: u32, b: u32) -> bool {
        let (ahead, _) = self.lead(a, b);
        ahead < 0
    }

    /// Returns the excess of `a`'s density over `b`'s now, times both ages, and its growth per
    /// tick.
    #[inline(always)]
    fn lead(&self, a: u32, b: u32) -> (i64, i64) {
        let (a, b) = (self.entrants[a as usize], self.entrants[b as usize]);
        let age = |e: Entrant| self.now.saturating_sub(e.loaded).min(AGE_MAX) as i64;
        let (ra, rb) = (i64::from(a.references()), i64::from(b.references()));
        (ra * age(b) - rb * age(a), ra - rb)
    }

    /// Returns the first moment at which the result of match `at`, or one below it, may be wrong.
    #[inline(always)]
    fn until(&self, at: u32) -> u64 {
        Match::from(self.matches[at as usize]).until
    }

    #[inline]
    fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
        if self.until(1) <= self.now {
            self.refresh(1);
        }
    }

    /// Plays again the outdated matches at `at` and below; the recursion is at most 32 levels deep.
    fn refresh(&mut self, at: u32) {
        for below in [2 * at, 2 * at + 1] {
            if below < self.leaves && self.until(below) <= self.now {
                self.refresh(below);
            }
        }
        self.play(at);
    }

    /// Plays the matches from `frame` up to the final.
    #[inline]
    fn replay(&mut self, frame: u32) {
        if self.search == Search::Linear {
            return;
        }
        let mut at = (self.leaves + frame) / 2;
        while at >= 1 {
            self.play(at);
            at /= 2;
        }
    }

    /// Returns the winner of `at`, and the moment until which it is known.
    #[inline(always)]
    fn result(&self, at: u32) -> Match {
        if at < self.leaves {
            return self.matches[at as usize].into();
        }
        let frame = at - self.leaves;
        let there = (frame as usize) < self.entrants.len() && self.has(frame);
        Match { winner: if there { frame } else { ABSENT }, until: NEVER }
    }

    #[inline(always)]
    fn play(&mut self, at: u32) {
        let (left, right) = (self.result(2 * at), self.result(2 * at + 1));
        let until = left.until.min(right.until);
        // A winner that left does not count. Its successor is found when its matches are played
        // again.
        let gone = |m: Match| m.winner == ABSENT || !self.has(m.winner);
        let played = match (gone(left), gone(right)) {
            (_, true) => Match { winner: left.winner, until },
            (true, false) => Match { winner: right.winner, until },
            (false, false) => {
                let (lead, per_tick) = self.lead(left.winner, right.winner);
                let (winner, ticks) = if lead <= 0 {
                    // Left wins until its lead is above 0.
                    (left.winner, (per_tick > 0).then(|| -lead / per_tick + 1))
                } else {
                    // Right wins until left has come down to it.
                    (right.winner, (per_tick < 0).then(|| (lead - per_tick - 1) / -per_tick))
                };
                let own = ticks.map_or(NEVER, |t| self.now.saturating_add(t as u64));
                Match { winner, until: until.min(own) }
            }
        };
        self.matches[at as usize] = played.into();
    }

    /// Verifies that exactly `resident` take part.
    ///
    /// # Errors
    /// A description of the fault.
    pub fn check(&self, resident: &[FrameId]) -> Result<(), String> {
        let inside = self.entrants.iter().filter(|e| e.references() != ABSENT).count();
        if inside != resident.len() || resident.iter().any(|f| !self.has(f.0)) {
            return Err(format!("{inside} frames take part, {} are resident", resident.len()));
        }
        Ok(())
    }

    /// Returns the bytes held.
    pub fn bytes(&self) -> usize {
        self.matches.capacity() * size_of::<Stored>()
            + self.entrants.capacity() * size_of::<Entrant>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_final_is_what_a_search_of_all_frames_finds_at_every_moment() {
        for (frames, seed) in [(1, 1), (2, 2), (3, 3), (37, 4), (64, 5)] {
            let mut rng = fastrand::Rng::with_seed(seed);
            let (mut all, mut now) = (Tournament::new(frames, Search::Tournament), 0u64);
            for _ in 0..20_000 {
                now += rng.u64(0..4) * rng.u64(0..20);
                let frame = rng.u32(0..frames);
                match rng.u8(0..8) {
                    0 => all.leave(frame),
                    1 => {
                        let seed = rng.u32(0..9);
                        all.revise(|f| f * seed % 11);
                    }
                    2..4 if all.has(frame) => {
                        let more = all.references(frame) + rng.u32(0..5);
                        all.enter(frame, more, all.loaded(frame), now);
                    }
                    _ => {
                        all.leave(frame);
                        all.enter(frame, rng.u32(0..9), now, now);
                    }
                }
                now += 1;
                let found = all.least(now);
                assert_eq!(found, all.scan(), "{frames} frames, moment {now}");
            }
        }
    }
}
