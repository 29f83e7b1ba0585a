//! Page values, many at a time, by the vector instructions of the machine (watt 5.2).
//!
//! One line of stamps is one vector of AVX-512, or two of AVX2. Ages, rates and products of both
//! rings come from one subtraction, conversion, division and multiplication of the whole line, for
//! any variant of the log. Loops over candidates are compiled per instruction set, so that only
//! their start is a call.
//!
//! # Invariant
//! All instruction sets give the same bits as [`Worth::value`]: the same operations in the same
//! order, exact divisions, nothing fused. The maximum of numbers that are never negative does not
//! depend on the order of comparisons.
//!
//! Other threads write the line at any time. It is read by one instruction of assembly. To the
//! language, that is a series of relaxed loads, which [`Stamps::copy`] makes one by one.

#[cfg(all(target_arch = "x86_64", not(any(feature = "model", miri, tsan))))]
use super::instructions::Instructions;
use super::stamps::Stamps;
use super::worth::Worth;

impl Worth {
    /// Computes the values at `now` of the pages with the logs `line(0)`, `line(1)`, …, filling
    /// `values`. Each is bitwise equal to the result of [`Worth::value`].
    #[inline]
    pub fn values<'a>(&self, now: u32, values: &mut [f32], line: impl Fn(usize) -> &'a Stamps) {
        #[cfg(all(target_arch = "x86_64", not(any(feature = "model", miri, tsan))))]
        match self.instructions() {
            // SAFETY: `Worth` selects only instructions that were found on this machine.
            Instructions::Avx2 => return unsafe { x86::by_avx2(self, now, values, line) },
            // SAFETY: as above.
            Instructions::Avx512 => return unsafe { x86::by_avx512(self, now, values, line) },
            Instructions::Portable => {}
        }
        for (at, value) in values.iter_mut().enumerate() {
            *value = self.value(line(at), now);
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(any(feature = "model", miri, tsan))))]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::*;

    use super::{Stamps, Worth};
    use crate::parts::stamps::Lanes;

    /// Least age, used for a stamp of this tick or a later one.
    const LEAST: f32 = 1e-30;

    /// Loads the line as one vector; the last lane is no stamp.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load_512(stamps: &Stamps) -> __m512i {
        let line: __m512i;
        // SAFETY: `Stamps` is 64 bytes, aligned to 64, and borrowed: the address is mapped.
        unsafe {
            asm!("vmovdqa32 {}, zmmword ptr [{}]", out(zmm_reg) line,
                 in(reg) std::ptr::from_ref(stamps),
                 options(nostack, readonly, preserves_flags));
        }
        line
    }

    /// Loads the line as two vectors; the last lane is no stamp.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load_256(stamps: &Stamps) -> [__m256i; 2] {
        let (low, high): (__m256i, __m256i);
        // SAFETY: as in `load_512`; the second half begins 32 bytes into the line.
        unsafe {
            asm!("vmovdqa {0}, ymmword ptr [{2}]", "vmovdqa {1}, ymmword ptr [{2} + 32]",
                 out(ymm_reg) low, out(ymm_reg) high,
                 in(reg) std::ptr::from_ref(stamps),
                 options(nostack, readonly, preserves_flags));
        }
        [low, high]
    }

    /// Returns the greatest lane of each of two vectors.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn greatest(first: __m256, second: __m256) -> (f32, f32) {
        let fold = |of| _mm_max_ps(_mm256_castps256_ps128(of), _mm256_extractf128_ps::<1>(of));
        let (first, second) = (fold(first), fold(second));
        let both = _mm_max_ps(_mm_unpacklo_ps(first, second), _mm_unpackhi_ps(first, second));
        let both = _mm_max_ps(both, _mm_movehl_ps(both, both));
        (_mm_cvtss_f32(both), _mm_cvtss_f32(_mm_movehdup_ps(both)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn halves(lanes: &Lanes) -> [__m256; 2] {
        // SAFETY: sixteen numbers: eight, and eight more.
        unsafe { [_mm256_loadu_ps(lanes.as_ptr()), _mm256_loadu_ps(lanes.as_ptr().add(8))] }
    }

    /// Returns a mask with all bits set in the lanes that `lanes` selects.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn mask_256(lanes: u16) -> [__m256; 2] {
        let mut mask: Lanes = [0.0; 16];
        for (lane, mask) in mask.iter_mut().enumerate() {
            *mask = f32::from_bits(if lanes >> lane & 1 == 1 { u32::MAX } else { 0 });
        }
        halves(&mask)
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn by_avx2<'a>(
        worth: &Worth,
        now: u32,
        values: &mut [f32],
        line: impl Fn(usize) -> &'a Stamps,
    ) {
        let terms = worth.terms(now);
        let (tick, at) = (_mm256_set1_epi32(now as i32), terms.aged_from as i32);
        let (at, least, one) = (_mm256_set1_epi32(at), _mm256_set1_ps(LEAST), _mm256_set1_ps(1.0));
        let masks = terms.lanes.map(|lanes| mask_256(lanes));
        for (i, value) in values.iter_mut().enumerate() {
            let stamps = line(i);
            let (log, heads) = (load_256(stamps), stamps.heads());
            let [first, second] = worth.numerators(heads).map(|lanes| halves(lanes));
            let (mut of_first, mut of_second) = (_mm256_setzero_ps(), _mm256_setzero_ps());
            let mut is_now = 0;
            for half in 0..2 {
                let same = _mm256_castsi256_ps(_mm256_cmpeq_epi32(log[half], tick));
                is_now |= (_mm256_movemask_ps(same) as u32) << (8 * half);
                let age = _mm256_cvtepi32_ps(_mm256_sub_epi32(at, log[half]));
                let rate = _mm256_div_ps(one, _mm256_max_ps(age, least));
                let never = _mm256_cmpeq_epi32(log[half], _mm256_setzero_si256());
                let rate = _mm256_andnot_ps(_mm256_castsi256_ps(never), rate);
                // A slot is in one ring; in the other one its numerator is 0.
                let numerator = _mm256_or_ps(first[half], second[half]);
                let product = _mm256_mul_ps(numerator, rate);
                of_first = _mm256_max_ps(of_first, _mm256_and_ps(product, masks[0][half]));
                of_second = _mm256_max_ps(of_second, _mm256_and_ps(product, masks[1][half]));
            }
            let (reads, writes) = greatest(of_first, of_second);
            let found = reads + terms.weight * writes;
            *value = if is_now & terms.heads(heads) != 0 { f32::INFINITY } else { found };
        }
    }

    #[target_feature(enable = "avx512f", enable = "avx2")]
    pub(super) fn by_avx512<'a>(
        worth: &Worth,
        now: u32,
        values: &mut [f32],
        line: impl Fn(usize) -> &'a Stamps,
    ) {
        let terms = worth.terms(now);
        let tick = _mm512_set1_epi32(now as i32);
        let at = _mm512_set1_epi32(terms.aged_from as i32);
        let (least, one) = (_mm512_set1_ps(LEAST), _mm512_set1_ps(1.0));
        let load = |lanes: &Lanes| {
            // SAFETY: sixteen numbers.
            unsafe { _mm512_loadu_ps(lanes.as_ptr()) }
        };
        let fold = |of| {
            let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(of)));
            _mm256_max_ps(_mm512_castps512_ps256(of), high)
        };
        for (i, value) in values.iter_mut().enumerate() {
            let stamps = line(i);
            let (log, heads) = (load_512(stamps), stamps.heads());
            let [first, second] = worth.numerators(heads).map(load);
            let is_now = u32::from(_mm512_cmpeq_epi32_mask(log, tick));
            let age = _mm512_cvtepi32_ps(_mm512_sub_epi32(at, log));
            let logged = _mm512_test_epi32_mask(log, log);
            let rate = _mm512_maskz_div_ps(logged, one, _mm512_max_ps(age, least));
            let numerator = _mm512_mask_mov_ps(first, terms.lanes[1], second);
            let product = _mm512_mul_ps(numerator, rate);
            let of_ring = terms.lanes.map(|lanes| fold(_mm512_maskz_mov_ps(lanes, product)));
            let (reads, writes) = greatest(of_ring[0], of_ring[1]);
            let found = reads + terms.weight * writes;
            *value = if is_now & terms.heads(heads) != 0 { f32::INFINITY } else { found };
        }
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::Mark;

    use super::*;
    use crate::parts::stamps::SLOTS;
    use crate::parts::worth::{Aggregate, StampLog, Tracking, stamp};

    /// Makes a page's log after some references, in bursts, occasionally across the clock's end.
    fn random_log(rng: &mut fastrand::Rng, tracking: Tracking) -> (Stamps, u32) {
        let stamps = Stamps::default();
        let mut now =
            if rng.u8(0..4) == 0 { u32::MAX - rng.u32(0..60) } else { rng.u32(0..1 << 20) };
        let longest = [2, 9, 1 << 10, 1 << 30][rng.usize(0..4)];
        for _ in 0..rng.u32(0..24) {
            let mark = if rng.u8(0..3) == 0 { Mark::WRITE } else { Mark::READ };
            tracking.track(&stamps, now, mark);
            now = now.wrapping_add(rng.u32(0..longest));
        }
        // A clock that a slow evictor read some time ago, or one far ahead.
        let now = match rng.u8(0..5) {
            0 => now.wrapping_sub(rng.u32(0..3)),
            1 => now.wrapping_add(rng.u32(0..1 << 31)),
            _ => now.wrapping_add(rng.u32(0..longest)),
        };
        (stamps, stamp(now))
    }

    fn random_worth(rng: &mut fastrand::Rng) -> (Worth, Tracking) {
        let log = [StampLog::Both, StampLog::Strict][rng.usize(0..2)];
        let accesses = rng.u32(1..=SLOTS as u32);
        let tracking = Tracking::new(log, accesses, rng.u32(0..=8));
        let dampening = [0.0, -0.0, 0.1, 1.0, rng.f32()][rng.usize(0..5)];
        let weight = [0.0, 1.0, 4.0, 1e6, 100.0 * rng.f32()][rng.usize(0..5)];
        let age_from = rng.u32(0..=1);
        (Worth::new(tracking, Aggregate::Max, dampening, weight, age_from), tracking)
    }

    #[test]
    fn all_instructions_of_this_machine_give_the_same_bits() {
        let mut rng = fastrand::Rng::with_seed(1);
        for round in 0..4_000 {
            let (worth, tracking) = random_worth(&mut rng);
            let logs: Vec<(Stamps, u32)> =
                (0..rng.usize(1..20)).map(|_| random_log(&mut rng, tracking)).collect();
            let now = logs[0].1;
            let scalar: Vec<u32> =
                logs.iter().map(|(log, _)| worth.value(log, now).to_bits()).collect();
            for set in Instructions::ALL.into_iter().filter(|set| set.are_here()) {
                let worth = worth.clone().by(set);
                assert_eq!(worth.instructions(), set);
                let mut values = vec![f32::NAN; logs.len()];
                worth.values(now, &mut values, |i| &logs[i].0);
                let bits: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
                assert_eq!(bits, scalar, "round {round}, {set:?}, {tracking:?}");
            }
        }
    }

    #[test]
    fn the_line_s_last_lane_is_never_taken_for_a_stamp() {
        // Heads and state, read as a stamp, would be young: 0x0001_0000 and more.
        let tracking = Tracking::new(StampLog::Both, 8, 4);
        let worth = Worth::new(tracking, Aggregate::Max, 0.1, 4.0, 0);
        let stamps = Stamps::default();
        stamps.appear();
        tracking.track(&stamps, 5, Mark::READ);
        for now in [6, 0x0001_0001, 0x0001_0002, 0x0001_0101] {
            let scalar = worth.value(&stamps, now);
            for set in Instructions::ALL.into_iter().filter(|set| set.are_here()) {
                let mut values = [0.0];
                worth.clone().by(set).values(now, &mut values, |_| &stamps);
                assert_eq!(values[0].to_bits(), scalar.to_bits(), "{set:?} at {now}");
            }
        }
    }

    #[test]
    fn what_the_machine_lacks_and_what_is_no_maximum_is_done_portably() {
        let tracking = Tracking::default();
        for aggregate in [Aggregate::Min, Aggregate::Mean, Aggregate::Median] {
            let worth = Worth::new(tracking, aggregate, 0.1, 4.0, 0);
            assert_eq!(worth.instructions(), Instructions::Portable);
        }
        let bits = Tracking::new(StampLog::Bit, 8, 0);
        let worth = Worth::new(bits, Aggregate::Max, 0.1, 4.0, 0);
        assert_eq!(worth.by(Instructions::best()).instructions(), Instructions::Portable);
        for set in Instructions::ALL {
            let worth = Worth::new(tracking, Aggregate::Max, 0.1, 4.0, 0).by(set);
            assert_eq!(worth.instructions() == set, set.are_here());
        }
    }
}
