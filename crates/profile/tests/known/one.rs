//! Work of the first kind.

use std::hint::black_box;

#[inline(always)]
fn mixed(sum: u64, i: u64) -> u64 {
    black_box((sum ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17))
}

/// Burns CPU time, and returns something that depends on it.
#[inline(never)]
pub fn work(rounds: u64) -> u64 {
    (0..rounds).fold(1, mixed)
}
