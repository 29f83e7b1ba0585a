//! The instruction sets that page values are computed with, and what all of them need of a log.

// Where only the portable instructions exist, the terms are unused.
#![cfg_attr(any(feature = "model", miri, tsan, not(target_arch = "x86_64")), allow(dead_code))]

/// The instruction set that values are computed with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instructions {
    /// The instructions of every machine of the target.
    Portable,
    /// AVX2: eight stamps at a time, as in watt's listing 3.
    Avx2,
    /// AVX-512: a whole line at a time.
    Avx512,
}

impl Instructions {
    /// All there are.
    pub const ALL: [Instructions; 3] =
        [Instructions::Portable, Instructions::Avx2, Instructions::Avx512];

    /// Returns `true` if this machine has these instructions. Model checkers and interpreters have
    /// none but the portable.
    pub fn are_here(self) -> bool {
        match self {
            Instructions::Portable => true,
            #[cfg(all(target_arch = "x86_64", not(any(feature = "model", miri, tsan))))]
            Instructions::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(all(target_arch = "x86_64", not(any(feature = "model", miri, tsan))))]
            Instructions::Avx512 => is_x86_feature_detected!("avx512f"),
            #[cfg(not(all(target_arch = "x86_64", not(any(feature = "model", miri, tsan)))))]
            Instructions::Avx2 | Instructions::Avx512 => false,
        }
    }

    /// The widest of this machine.
    pub fn best() -> Instructions {
        let widest_first = Instructions::ALL.into_iter().rev();
        widest_first.into_iter().find(|set| set.are_here()).unwrap_or(Instructions::Portable)
    }
}

/// The terms that a batch of values has in common: the shape of the log, and ticks of the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// The tick that ages are taken at.
    pub(super) aged_from: u32,
    /// Weight of the second ring's value.
    pub(super) weight: f32,
    /// The lanes of each ring.
    pub(super) lanes: [u16; 2],
    /// The lane of each ring's slot 0, as a bit; none if stamps of now are not invaluable, or
    /// nothing is logged.
    pub(super) firsts: [u32; 2],
}

impl Terms {
    /// The lanes of both rings' heads.
    #[inline(always)]
    pub(super) fn heads(&self, heads: [u8; 2]) -> u32 {
        (self.firsts[0] << (heads[0] & 15)) | (self.firsts[1] << (heads[1] & 15))
    }
}
