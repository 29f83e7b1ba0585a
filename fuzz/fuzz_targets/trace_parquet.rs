//! Any bytes between Parquet's magic numbers:
//! never a panic, and the same outcome for every batch size.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../bodies/trace.rs"]
#[allow(dead_code, reason = "each target runs one of the bodies")]
mod body;

fuzz_target!(|data: &[u8]| body::parquet(data));
