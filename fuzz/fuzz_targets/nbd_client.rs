//! Any bytes of a server: the client has an error, or what they mean; it never panics or hangs.
#![no_main]

#[path = "../bodies/nbd.rs"]
#[allow(dead_code, reason = "the targets share their body with tests")]
mod body;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| drop(body::to_client(data.to_vec())));
