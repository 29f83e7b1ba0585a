//! Instruction sets for page values, and the terms of a log that all of them need.

// Where only the portable instructions exist, the terms are unused.
#![cfg_attr(any(feature = "model", miri, tsan, not(target_arch = "x86_64")), allow(dead_code))]

/// Instruction set for computing values.
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
    /// All instruction sets.
    pub const ALL: [Instructions; 3] =
        [Instructions::Portable, Instructions::Avx2, Instructions::Avx512];

    /// Returns `true` if this machine has these instructions. Model checkers and interpreters have
    /// only the portable ones.
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

    /// Returns the widest instruction set of this machine.
    pub fn best() -> Instructions {
        let widest_first = Instructions::ALL.into_iter().rev();
        widest_first.into_iter().find(|set| set.are_here()).unwrap_or(Instructions::Portable)
    }
}

/// Common terms of a batch of values: the shape of the log, and ticks of the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Tick from which ages are computed.
    pub(super) aged_from: u32,
    /// Weight of the second ring's value.
    pub(super) weight: f32,
    /// The lanes of each ring.
    pub(super) lanes: [u16; 2],
    /// Lane of each ring's slot 0, as a bit; none if stamps of the current tick have a finite
    /// value, or nothing is logged.
    pub(super) firsts: [u32; 2],
}

impl Terms {
    /// Returns the lanes of both rings' heads.
    #[inline(always)]
    pub(super) fn heads(&self, heads: [u8; 2]) -> u32 {
        (self.firsts[0] << (heads[0] & 15)) | (self.firsts[1] << (heads[1] & 15))
    }
}
