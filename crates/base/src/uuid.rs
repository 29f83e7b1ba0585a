//! New ids of stores and of pairs of devices.

use std::hash::{BuildHasher, RandomState};

/// Returns 128 bits that no other store has, from the standard library's hash keys, which the
/// system draws.
pub fn new_uuid() -> [u8; 16] {
    let moment = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
    let seed = (moment, std::process::id());
    let halves = [RandomState::new().hash_one(seed), RandomState::new().hash_one(seed)];
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&halves[0].to_le_bytes());
    uuid[8..].copy_from_slice(&halves[1].to_le_bytes());
    // Version 4 (random), variant 1, as RFC 9562 has them.
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}
