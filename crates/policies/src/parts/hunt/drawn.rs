//! Frames that a hunt (the search for victims in `mod.rs`) has drawn: the best of a sample, and
//! those ahead.

/// Number of remembered frames of a sample, in case better ones are refused.
const BEST: usize = 8;

/// The least valued frames of a sample, least first.
pub(super) struct Best {
    pub found: [(f32, u32); BEST],
    pub len: usize,
}

impl Best {
    pub const NONE: Best = Best { found: [(0.0, 0); BEST], len: 0 };

    #[inline(always)]
    /// Adds a frame of the sample, unless it is there.
    pub fn add(&mut self, value: f32, frame: u32) {
        let mut at = self.len;
        let is_no_better = at == BEST && value >= self.found[BEST - 1].0;
        if is_no_better || self.found[..at].iter().any(|(_, f)| *f == frame) {
            return;
        }
        while at > 0 && value < self.found[at - 1].0 {
            if at < BEST {
                self.found[at] = self.found[at - 1];
            }
            at -= 1;
        }
        if at < BEST {
            self.found[at] = (value, frame);
            self.len = (self.len + 1).min(BEST);
        }
    }
}

/// Frames of a pass, sample and candidates, that can be drawn ahead.
pub(super) const PASS: usize = 128;

/// Frames drawn ahead: a sample, then its candidates. Their lines load while others are offered.
pub(super) struct Pass {
    pub frames: [u32; PASS],
    pub values: [f32; PASS],
    pub len: usize,
    /// First frame whose line was not prefetched.
    pub unasked: usize,
    /// States of the generator: before the draws, which must still be its present one; after the
    /// sample; after the candidates.
    pub states: [u64; 3],
}

impl Pass {
    pub const NONE: Pass =
        Pass { frames: [0; PASS], values: [0.0; PASS], len: 0, unasked: 0, states: [0; 3] };
}
