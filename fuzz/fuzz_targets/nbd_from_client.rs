//! Any bytes of a client, to the parser alone: an error, or messages, which are the same again.
#![no_main]

#[path = "../bodies/nbd_messages.rs"]
#[allow(dead_code, reason = "the targets share their body with tests")]
mod body;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = body::from_client(data);
});
