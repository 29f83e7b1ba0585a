//! Any bytes as a log: errors, or a log that works, and never a panic.
#![no_main]

#[path = "../bodies/log.rs"]
#[allow(dead_code, reason = "the targets share their body with tests")]
mod body;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| body::log(data));
