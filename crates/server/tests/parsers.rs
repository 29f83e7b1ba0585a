//! The parsers alone, over changed bytes of conversations: many more inputs than over sockets. With
//! `--deep`, ten million for each.

#[path = "../../../fuzz/bodies/nbd_messages.rs"]
mod body;

use millpond_base::rounds::rounds;

use crate::hostile::{mutate, server_side, session};

/// Parses `count` inputs; returns the number of messages in them.
fn read(
    inputs: u64,
    make: impl Fn(&mut fastrand::Rng) -> Vec<u8>,
    parse: impl Fn(&[u8]) -> usize,
) -> usize {
    /// Inputs derived from one conversation.
    const EACH: u64 = 16;
    let mut messages = 0;
    for seed in 0..inputs.div_ceil(EACH) {
        let mut random = fastrand::Rng::with_seed(seed);
        let whole = make(&mut random);
        let understood = parse(&whole);
        assert!(understood > 0, "the conversation itself is understood");
        messages += understood;
        for _ in 1..EACH {
            let mut bytes = whole.clone();
            mutate(&mut bytes, &mut random);
            messages += parse(&bytes);
        }
    }
    messages
}

#[test]
fn any_bytes_of_a_client_are_messages_or_an_error() {
    let inputs = rounds(20_000, 10_000_000);
    let messages = read(inputs, session, body::from_client);
    assert!(messages as u64 > inputs, "{messages} messages in {inputs} inputs");
}

#[test]
fn any_bytes_of_a_server_are_messages_or_an_error() {
    let inputs = rounds(20_000, 10_000_000);
    let messages = read(inputs, server_side, body::from_server);
    assert!(messages as u64 > inputs, "{messages} messages in {inputs} inputs");
}
