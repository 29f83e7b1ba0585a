//! Any bytes are read as a page without a panic.
#![no_main]

#[path = "../bodies/engine.rs"]
#[allow(dead_code, reason = "each target runs one of the bodies")]
mod body;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| body::page(data));
