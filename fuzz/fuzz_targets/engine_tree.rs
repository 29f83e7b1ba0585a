//! Operations on a tree of tiny pages are those of a map.
#![no_main]

#[path = "../bodies/engine.rs"]
#[allow(dead_code, reason = "each target runs one of the bodies")]
mod body;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| body::tree(data));
